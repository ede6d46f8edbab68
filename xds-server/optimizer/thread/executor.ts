import { Worker } from 'node:worker_threads';
import { WardropError } from '../../errors.js';
import { loadHighs } from '../program/highs.js';
import { type PackedOutcome, unpackOutcome } from './packed-outcome.js';
import { packTask } from './packed-task.js';
import { type Outcome, type Task, TaskRunner } from './task.js';

/** Runs one task at a time somewhere. A rejection means that it must be discarded. */
export interface Executor {
  run(task: Task): Promise<Outcome>;
  close(): Promise<void>;
}

/** Seconds that a thread gets beyond the deadline for what it does outside HiGHS. */
const GRACE_SECONDS = 5;

/** In a worker thread, so that a solve neither blocks the caller's event loop nor takes it along when it crashes. */
export class ThreadExecutor implements Executor {
  readonly #worker: Worker;
  readonly #graceSeconds: number;
  /** Why it takes nothing any more. */
  #fault: WardropError | undefined;

  constructor(entry: URL, graceSeconds = GRACE_SECONDS) {
    this.#worker = new Worker(entry);
    this.#graceSeconds = graceSeconds;
    this.#worker.unref();
    this.#worker.on('error', (error) => {
      this.#fault = broken(error);
    });
    this.#worker.on('exit', (code) => {
      this.#fault ??= ended(code);
    });
  }

  async run(task: Task): Promise<Outcome> {
    if (this.#fault !== undefined) throw this.#fault;
    this.#worker.ref();
    const seconds = task.deadlineSeconds + this.#graceSeconds;
    let stop = (): void => {};
    try {
      return await new Promise<Outcome>((resolve, reject) => {
        const fail = (error: Error): void => reject(broken(error));
        const end = (code: number): void => reject(ended(code));
        const timer = setTimeout(() => {
          reject(new WardropError('WARDROP_SOLVER_TIMEOUT', `no answer from the solver within ${seconds} s`));
        }, seconds * 1000);
        const answer = (outcome: PackedOutcome): void => resolve(unpackOutcome(outcome));
        stop = () => {
          clearTimeout(timer);
          this.#worker.off('message', answer).off('error', fail).off('exit', end);
        };
        this.#worker.on('message', answer).on('error', fail).on('exit', end);
        this.#worker.postMessage(packTask(task));
      });
    } finally {
      stop();
      this.#worker.unref();
    }
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}

/** In the caller's thread: where the sources run untranslated, which a worker thread cannot load. */
export class LocalExecutor implements Executor {
  readonly #runner: Promise<TaskRunner>;

  /** @param solve what solves instead of the optimizer, in tests */
  constructor(solve?: ConstructorParameters<typeof TaskRunner>[1]) {
    this.#runner = loadHighs().then((highs) => new TaskRunner(highs, solve));
  }

  async run(task: Task): Promise<Outcome> {
    return (await this.#runner).run(task);
  }

  async close(): Promise<void> {}
}

function broken(error: Error): WardropError {
  return new WardropError('WARDROP_SOLVER_FAILED', `the solver's thread broke: ${error.message}`);
}

function ended(status: number): WardropError {
  return new WardropError('WARDROP_SOLVER_FAILED', `the solver's thread ended with status ${status}`);
}
