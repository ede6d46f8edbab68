import { parentPort } from 'node:worker_threads';
import { loadHighs } from '../program/highs.js';
import { packOutcome } from './message.js';
import { type Task, TaskRunner } from './task.js';

// The thread in which HiGHS and all around it runs: its calls block, and its faults end a thread instead of a server.
const runner = new TaskRunner(await loadHighs());
parentPort!.on('message', (task: Task) => parentPort!.postMessage(packOutcome(runner.run(task))));
