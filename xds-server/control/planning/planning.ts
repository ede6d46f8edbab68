import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { WardropError } from '../../errors.js';
import type { OptimizerInput, Solution } from '../../optimizer/index.js';
import { plainRowsText } from '../../plan/fallback.js';
import { makePlan, type PlanInput, type PlanSolver } from '../../plan/make-plan.js';
import type { Plan } from '../../plan/plan.js';
import type { Alarms } from '../alarms/alarms.js';
import type { Recorders } from '../recording/recorders.js';
import { PlanHistory } from './plan-history.js';
import type { SolveSchedule } from './solve-schedule.js';

/** An alarm names this many things that were bounded or not followed, and counts the rest. */
const MOST_WARNINGS = 3;
/** So long a plan is worked on without a pause; then sockets and timers have their turn. */
const SLICE_MS = 20;

export interface PlanningOptions {
  readonly optimizer: PlanSolver;
  readonly schedule: SolveSchedule;
  readonly recorders: Recorders;
  readonly alarms: Alarms;
  readonly log: Pick<Logger, 'info' | 'error'>;
  /** What a plan is made of now, after this one. */
  readonly input: (previous: Plan | null) => PlanInput;
  /** Of the configuration; a plan for an older one is thrown away. */
  readonly generation: () => number;
  /** Whether plans made here are wanted; a plan is thrown away otherwise. */
  readonly isWanted: () => boolean;
  readonly onSolved: (seconds: number, failure: WardropError | undefined) => void;
  /** The plan that should be in force; the same as before when nothing should change. */
  readonly onPlan: (plan: Plan) => void;
  readonly now: () => number;
}

/** Makes one plan after the other; when one fails, the last good one stays, and an alarm says why. */
export class Planning {
  readonly history = new PlanHistory();
  readonly #options: PlanningOptions;
  #plan: Plan | null;
  #solved: { readonly input: OptimizerInput; readonly solution: Solution } | undefined;
  #failure: string | null = null;
  #isBusy = false;
  #isStopped = false;

  /** @param plan the last one, from before the start */
  constructor(options: PlanningOptions, plan: Plan | null) {
    this.#options = options;
    this.#plan = plan;
  }

  /** The last plan, published or not. */
  get plan(): Plan | null {
    return this.#plan;
  }

  /** The last good solve. */
  get solved(): { readonly input: OptimizerInput; readonly solution: Solution } | undefined {
    return this.#solved;
  }

  /** Why the last solve failed; null when it was good. */
  get failure(): string | null {
    return this.#failure;
  }

  /** Whether a plan is being made. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Goes on from a plan that was made elsewhere. */
  adopt(plan: Plan): void {
    this.#plan = plan;
  }

  /** Plans are made elsewhere: what was wrong with those made here is over. */
  rest(): void {
    this.#failure = null;
    this.#options.alarms.clear('planning');
    this.#options.alarms.clear('plan-input');
  }

  /** A plan that is under way comes to nothing. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Makes a plan; only one at a time. It rejects for faults that no plan is to be blamed for, and is due again after a pause. */
  async run(): Promise<void> {
    this.#isBusy = true;
    try {
      await this.#run();
    } catch (error) {
      this.#options.schedule.end(false);
      throw error;
    } finally {
      this.#isBusy = false;
    }
  }

  async #run(): Promise<void> {
    const { optimizer, schedule, recorders, log, now, generation, isWanted, onSolved, onPlan } =
      this.#options;
    const startedMs = now();
    const begun = generation();
    const times: number[] = [];
    const input = this.#options.input(this.#plan);
    schedule.begin(begun, input.state, startedMs);
    recorders.record({ kind: 'plan', atMs: startedMs });
    const outcome = await makePlan(optimizer, input, () => noted(times, now()), pauses(now));
    onSolved((now() - startedMs) / 1_000, outcome.failure);
    if (this.#isStopped || begun !== generation() || !isWanted()) return;
    const { plan, solution, failure } = outcome;
    recorders.record({ kind: 'solve', input, times, plan, ...(failure && { failure: failure.message }) });
    if (solution !== undefined) {
      this.#solved = { input: outcome.input, solution };
      this.#reportWarnings(solution.warnings);
    }
    this.#reportFailure(failure, plan);
    if (plan === null) return;
    if (plan !== this.#plan) {
      const { id: planId, sequence } = plan;
      log.info({ planId, sequence, solveMs: now() - startedMs }, 'a new plan is in force');
      this.history.add(plan, outcome.input, failure?.message ?? null);
      this.#plan = plan;
    }
    onPlan(plan);
  }

  #reportWarnings(warnings: readonly string[]): void {
    const { alarms } = this.#options;
    if (warnings.length === 0) {
      alarms.clear('plan-input');
      return;
    }
    const more = warnings.length - MOST_WARNINGS;
    const told = warnings.slice(0, MOST_WARNINGS).join('; ');
    alarms.raise('plan-input', more > 0 ? `${told}; and ${more} more` : told);
  }

  #reportFailure(failure: WardropError | undefined, plan: Plan | null): void {
    const { schedule, alarms, log } = this.#options;
    schedule.end(failure === undefined);
    this.#failure = failure?.message ?? null;
    if (failure === undefined) {
      alarms.clear('planning');
      return;
    }
    log.error({ code: failure.code, err: failure }, 'planning failed');
    alarms.raise('planning', `${failure.code}: ${failure.message}; ${inForceInstead(plan)}`);
  }
}

/** What holds after a failure. */
function inForceInstead(plan: Plan | null): string {
  if (plan === null) return 'there is no plan to fall back on';
  return plainRowsText(plan) ?? 'the last good plan stays in force';
}

/** Lets the event loop go on whenever it has waited for as long as it may. */
function pauses(now: () => number): () => Promise<void> {
  let sinceMs = now();
  return async () => {
    if (now() - sinceMs < SLICE_MS) return;
    await nextTurn();
    sinceMs = now();
  };
}

function noted(times: number[], nowMs: number): number {
  times.push(nowMs);
  return nowMs;
}
