import { parentPort } from 'node:worker_threads';
import { loadHighs } from '../program/highs.js';
import { packOutcome } from './packed-outcome.js';
import { type PackedTask, unpackTask } from './packed-task.js';
import { TaskRunner } from './task.js';

// The thread in which HiGHS and all around it runs: its calls block, and its faults end a thread instead of a server.
const runner = new TaskRunner(await loadHighs());
parentPort!.on('message', (task: PackedTask) => {
  parentPort!.postMessage(packOutcome(runner.run(unpackTask(task))));
});
