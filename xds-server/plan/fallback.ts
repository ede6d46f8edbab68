import { compare, sum } from '../collections.js';
import type { FleetState } from '../fleet/fleet-state.js';
import type { Policy } from '../fleet/policy.js';
import { type RowName, rowKey } from '../fleet/row-key.js';
import { refuseFaults } from '../optimizer/index.js';
import type { Profile } from '../profiles/profile.js';
import { checkingPlan, type ViolationCode } from './check-plan.js';
import { engineEntries } from './emergency.js';
import { EngineWork } from './engine-work.js';
import { evolvingRows } from './evolve.js';
import { plainSolution } from './plain/plain-solution.js';
import type { Plan, PlanRow } from './plan.js';
import { identifying } from './plan-id.js';
import { describesTheSame } from './steadiness.js';
import type { Steps } from './steps.js';
import { Usability } from './usability.js';

export interface FallbackInput {
  /** The last good plan, without engines that died since; null before the first. */
  readonly previous: Plan | null;
  readonly state: FleetState;
  /** By profile id. */
  readonly profiles: ReadonlyMap<string, Profile>;
  readonly policy: Policy;
  readonly createdAtMs: number;
}

/** What may be wrong with rows that stay as they were, as demand has changed since; nothing else is known for them. */
const OUTDATED: ReadonlySet<ViolationCode> = new Set([
  'capacity-exceeded',
  'engines-invalid',
  'shed-needless',
]);

/**
 * What is in force while no plan can be had: the last good plan, and rows of which it says nothing are placed plainly, again and again
 * until there is a solve. Returns `previous` itself where it says something of all rows.
 *
 * @throws {WardropError} WARDROP_PLAN_REJECTED when what is placed does not pass the checks either
 */
export function* fallingBack(input: FallbackInput): Steps<Plan> {
  const { previous, state, profiles, policy, createdAtMs } = input;
  const before = new Map((previous?.rows ?? []).map((row) => [rowKey(row), row]));
  const usability = new Usability(state);
  const kept: PlanRow[] = [];
  const open: RowName[] = [];
  for (const { id: frontendId } of state.fleet.frontends) {
    for (const { id: poolId, engineIds } of state.fleet.pools) {
      const row = before.get(rowKey({ frontendId, poolId }));
      const isServed = row !== undefined && row.weights.length > 0;
      const isServable = engineIds.some((id) => usability.canServe(frontendId, poolId, id));
      if (row !== undefined && row.isPlain !== true && (isServed || !isServable)) kept.push(row);
      else open.push({ frontendId, poolId });
    }
  }
  if (open.length === 0 && previous !== null) return previous;

  const work = new EngineWork(state, profiles);
  const solution = yield* plainSolution({ rows: open, loads: work.loads(kept), state, profiles, policy });
  const placed = yield* evolvingRows({ previous, solution, state, profiles, policy, createdAtMs }, work);
  const rows = [...kept, ...placed.map((row): PlanRow => ({ ...row, isPlain: true }))].sort(
    (a, b) => compare(a.frontendId, b.frontendId) || compare(a.poolId, b.poolId),
  );
  const content = {
    rows,
    engines: engineEntries(state, work.loads(rows), previous),
    objectiveSeconds: previous?.objectiveSeconds ?? 0,
  };
  if (previous !== null && describesTheSame(previous, content)) return previous;
  const sequence = (previous?.sequence ?? 0) + 1;
  const plan = { id: yield* identifying(content), sequence, createdAtMs, ...content };
  const violations = yield* checkingPlan({ plan, state, profiles, policy });
  refuseFaults(
    'the plan without a solve',
    violations
      .filter(({ code }) => kept.length === 0 || !OUTDATED.has(code))
      .map(({ code, message }) => `${code}: ${message}`),
  );
  return plan;
}

/** What is to be known of a plan that is not all by a solve; undefined when it is. */
export function plainRowsText({ rows }: Pick<Plan, 'rows'>): string | undefined {
  const plain = sum(rows.map(({ isPlain }) => (isPlain === true ? 1 : 0)));
  if (plain === 0) return undefined;
  const which =
    plain === rows.length
      ? 'all weights are'
      : `the last good plan stays in force, ${plain} of ${rows.length} rows that it says nothing of are`;
  return `${which} plain until a solve succeeds: the nearest engines are filled first, what has no room is refused`;
}
