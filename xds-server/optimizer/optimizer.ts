import { WardropError } from '../errors.js';
import type { OptimizerInput, Solution } from './solution.js';
import { type Executor, LocalExecutor, ThreadExecutor } from './thread/executor.js';
import type { Outcome } from './thread/task.js';

export interface OptimizerOptions {
  /** Longest time for one solve, in seconds. Default 10. */
  readonly deadlineSeconds?: number;
  /** Where solves run; a worker thread by default. Called again after each failure. */
  readonly executor?: () => Executor;
}

/** Answers that leave the solver in order: the fault lies in the question. */
const HARMLESS = new Set(['WARDROP_INPUT_INVALID', 'WARDROP_PROFILE_INVALID']);

/** Turns input into solutions, one at a time. After any failure it starts afresh, with a new HiGHS. */
export class Optimizer {
  readonly #deadlineSeconds: number;
  readonly #start: () => Executor;
  #executor: Executor | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #closed = false;
  #memoryBytes = 0;

  constructor({ deadlineSeconds = 10, executor = defaultExecutor }: OptimizerOptions = {}) {
    this.#deadlineSeconds = deadlineSeconds;
    this.#start = executor;
  }

  /** Wasm memory of the solver after the last solve; it ends at 2 GiB. */
  get memoryBytes(): number {
    return this.#memoryBytes;
  }

  /**
   * The same input always gives the same solution, whatever was solved before.
   * @throws WardropError WARDROP_INPUT_INVALID, WARDROP_PROFILE_INVALID, WARDROP_SOLVER_FAILED, WARDROP_SOLVER_TIMEOUT.
   */
  solve(input: OptimizerInput): Promise<Solution> {
    return this.#enqueue(input, false);
  }

  /**
   * The same, where the solution has passed the independent checks, in the solver's thread as well.
   * @throws WardropError as `solve`, and WARDROP_PLAN_REJECTED, which quotes what is wrong.
   */
  solveChecked(input: OptimizerInput): Promise<Solution> {
    return this.#enqueue(input, true);
  }

  #enqueue(input: OptimizerInput, isChecked: boolean): Promise<Solution> {
    const next = this.#last.then(() => this.#solve(input, isChecked));
    this.#last = next.catch(() => {});
    return next;
  }

  /** Ends the solver's thread; a solve in progress fails. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#discard();
  }

  async #solve(input: OptimizerInput, isChecked: boolean): Promise<Solution> {
    if (this.#closed) throw new WardropError('WARDROP_SOLVER_FAILED', 'the optimizer is closed');
    this.#executor ??= this.#start();
    let outcome: Outcome;
    try {
      outcome = await this.#executor.run({ input, deadlineSeconds: this.#deadlineSeconds, isChecked });
    } catch (error) {
      await this.#discard();
      throw error;
    }
    if (outcome.ok) {
      this.#memoryBytes = outcome.memoryBytes;
      return outcome.solution;
    }
    if (!HARMLESS.has(outcome.code)) await this.#discard();
    throw new WardropError(outcome.code, outcome.message);
  }

  async #discard(): Promise<void> {
    const executor = this.#executor;
    this.#executor = undefined;
    await executor?.close();
  }
}

/** A thread where there is translated code for it to load, which is everywhere but in tests on the sources. */
export function defaultExecutor(): Executor {
  const translated = import.meta.url.endsWith('.js');
  return translated
    ? new ThreadExecutor(new URL('./thread/worker.js', import.meta.url))
    : new LocalExecutor();
}
