import type { Highs } from 'highs';
import { type ErrorCode, WardropError } from '../../errors.js';
import { checkSolution } from '../check/check.js';
import { believedInput } from '../input.js';
import { LinearSolver } from '../program/linear-program.js';
import { refuseFaults } from '../refusal.js';
import type { Solution, SolverInput } from '../solution.js';
import { solveFleet } from '../solve.js';

/** One piece of work for the solver; plain data, so that it can go to another thread. */
export interface Task {
  readonly input: SolverInput;
  /** All runs of HiGHS for this task together. */
  readonly deadlineSeconds: number;
  /** Whether the solution must pass the independent checks. */
  readonly isChecked: boolean;
}

export type Outcome =
  | { readonly ok: true; readonly solution: Solution; readonly memoryBytes: number }
  | { readonly ok: false; readonly code: ErrorCode; readonly message: string };

/** Runs tasks on one HiGHS, one at a time. */
export class TaskRunner {
  readonly #solver: LinearSolver;
  readonly #solve: typeof solveFleet;

  constructor(highs: Highs, solve = solveFleet) {
    this.#solver = new LinearSolver(highs);
    this.#solve = solve;
  }

  run({ input, deadlineSeconds, isChecked }: Task): Outcome {
    try {
      this.#solver.startDeadline(deadlineSeconds);
      const solution = this.#solve(this.#solver, input);
      if (isChecked) refuseFaults('the solution', checkSolution(believedInput(input), solution));
      return { ok: true, solution, memoryBytes: this.#solver.memoryBytes };
    } catch (error) {
      if (error instanceof WardropError) return { ok: false, code: error.code, message: error.message };
      const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
      return { ok: false, code: 'WARDROP_SOLVER_FAILED', message: reason };
    }
  }
}
