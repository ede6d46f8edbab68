import { checkSnapshot } from '../../wire/snapshot-rules.js';
import { WardropError } from '../errors.js';
import type { FleetState } from '../fleet/fleet-state.js';
import type { Policy } from '../fleet/policy.js';
import { refuseFaults } from '../optimizer/index.js';
import type { OptimizerInput, Solution } from '../optimizer/solution.js';
import type { Profile } from '../profiles/profile.js';
import { checkingPlan } from './check-plan.js';
import { handingOver } from './emergency.js';
import { evolvingPlan } from './evolve.js';
import { fallingBack } from './fallback.js';
import type { Plan } from './plan.js';
import { SnapshotViews } from './snapshot-view.js';
import { atOnce, inSteps, type Steps } from './steps.js';

/** The part of the optimizer that answers questions. */
export interface Solver {
  solve(input: OptimizerInput): Promise<Solution>;
}

/** The part of the optimizer that planning needs: solutions that have passed the independent checks. */
export interface PlanSolver {
  solveChecked(input: OptimizerInput): Promise<Solution>;
}

/** What a plan is made of. */
export interface PlanInput {
  /** The plan in force; null before the first. */
  readonly previous: Plan | null;
  readonly state: FleetState;
  readonly profiles: ReadonlyMap<string, Profile>;
  readonly policy: Policy;
}

export interface PlanOutcome {
  /** What should be in force now; null when there was no plan and none could be made, not even a plain one. */
  readonly plan: Plan | null;
  readonly input: OptimizerInput;
  readonly solution?: Solution;
  /** Why `plan` is not a fresh optimum. */
  readonly failure?: WardropError;
}

/**
 * Solves, evolves the plan in force, and checks the plan as well as the solution. What lost engines had is handed to their backups first,
 * as filters have done already: a conversation that moved there moves again only for a gain that pays for it. When
 * the solve or a check fails, that is what stays, and what it says nothing of is placed plainly. Waits for `pause` between steps that
 * are short however large the fleet is.
 */
export async function makePlan(
  solver: PlanSolver,
  planInput: PlanInput,
  now: () => number,
  pause: () => Promise<void> = async () => {},
): Promise<PlanOutcome> {
  const { previous: last, state, profiles, policy } = planInput;
  const previous =
    last &&
    (await inSteps(handingOver({ previous: last, state, profiles, policy, createdAtMs: now() }), pause));
  const input = optimizerInput({ ...planInput, previous });
  try {
    const solution = await solver.solveChecked(input);
    const steps = evolvingPlan({ previous, solution, state, profiles, policy, createdAtMs: now() });
    const evolved = await inSteps(steps, pause);
    const plan = evolved === last ? evolved : { ...evolved, sequence: (last?.sequence ?? 0) + 1 };
    const violations = await inSteps(checkingPlan({ plan, state, profiles, policy }), pause);
    refuseFaults(
      'the plan',
      violations.map(({ code, message }) => `${code}: ${message}`),
    );
    await inSteps(checkingSnapshots(plan, state), pause);
    return { plan, input, solution };
  } catch (error) {
    const failure =
      error instanceof WardropError
        ? error
        : new WardropError('WARDROP_SOLVER_FAILED', `planning failed: ${String(error)}`, { cause: error });
    return { ...(await fallback({ ...planInput, previous }, failure, now, pause)), input };
  }
}

async function fallback(
  input: PlanInput,
  failure: WardropError,
  now: () => number,
  pause: () => Promise<void>,
): Promise<Pick<PlanOutcome, 'plan' | 'failure'>> {
  try {
    const plan = await inSteps(fallingBack({ ...input, createdAtMs: now() }), pause);
    await inSteps(checkingSnapshots(plan, input.state), pause);
    return { plan, failure };
  } catch (error) {
    const { code, message } = failure;
    const both = `${message}; nor is there a plain plan: ${(error as Error).message}`;
    return { plan: input.previous, failure: new WardropError(code, both, { cause: failure }) };
  }
}

/**
 * Makes sure that a snapshot can be written for every frontend.
 *
 * @throws {WardropError} WARDROP_SNAPSHOT_INVALID
 */
export function checkSnapshots(plan: Plan, state: FleetState): void {
  atOnce(checkingSnapshots(plan, state));
}

function* checkingSnapshots(plan: Plan, { fleet, engines }: FleetState): Steps<void> {
  const views = new SnapshotViews({ plan, fleet, engines, version: 1, salt: 'any', issuedAtMs: 0 });
  for (const { id } of fleet.frontends) {
    checkSnapshot(views.of(id));
    yield;
  }
}

export function optimizerInput({ previous, state, profiles, policy }: PlanInput): OptimizerInput {
  return {
    state,
    profiles,
    policy,
    previousWeights: (previous?.rows ?? []).map(({ frontendId, poolId, weights }) => ({
      frontendId,
      poolId,
      weights: new Map(weights.map(({ engineId, weight }) => [engineId, weight])),
    })),
    // Without a measured mix the optimizer takes that of the demand an engine may serve.
    referenceMix: new Map(),
  };
}
