import type { Policy } from '../fleet/policy.js';
import { rowKey } from '../fleet/row-key.js';
import type { Solution, SolutionRow } from '../optimizer/solution.js';
import type { EngineWork } from './engine-work.js';
import type { PlanEngine, PlanRow, ShedEntry, Weight } from './plan.js';
import type { PlanContent } from './plan-id.js';
import type { Steps } from './steps.js';
import type { Usability } from './usability.js';

/** A row keeps its weights while the solution would move less than this share of its traffic. */
const WEIGHT_DEAD_BAND = 0.01;
/** An engine without traffic gets some once the solution gives it this weight, whatever the dead band. */
const ENTRY_WEIGHT = 0.005;
/** Relative excess over the hard utilisation limit that kept weights may cause. */
const KEPT_CAPACITY_SLACK = 0.0005;
/** Where somebody is refused, engines that could serve them are filled this far, of the hard limit; shed fractions are rounded up. */
const KEPT_FILL = 0.955;
/** Demands and capacities that a plan states may be this far, relative, from those of the latest solve. */
const STATED_DEAD_BAND = 0.1;
/** The same of utilisations, which depend on both and on the work of a request; those below 0.1 count as 0.1. */
const STATED_RHO_DEAD_BAND = 0.2;
/** How far a weight may be from an operator's bound, relative: weights are rounded. */
const BOUND_TOLERANCE = 0.001;

export interface KeepInput {
  /** Rows in force by `rowKey`. */
  readonly before: ReadonlyMap<string, PlanRow>;
  readonly solution: Solution;
  /** What the new plan sheds, by `rowKey`. */
  readonly shed: ReadonlyMap<string, readonly ShedEntry[]>;
  readonly usability: Usability;
  readonly work: EngineWork;
  readonly policy: Policy;
}

/**
 * Keys of the rows whose weights in force are as good as the solution's: the change is within the dead band, all
 * owners can still serve, operators' bounds hold, and no engine exceeds its hard limit because of it. A step is
 * a row, or a look at all loads.
 */
export function* rowsToKeep(input: KeepInput): Steps<Set<string>> {
  const { before, solution } = input;
  const keep = new Set<string>();
  for (const row of solution.rows) {
    const previous = before.get(rowKey(row));
    if (previous !== undefined && isNear(previous, row, input)) keep.add(rowKey(row));
    yield;
  }
  yield* relieve(keep, input);
  return keep;
}

function isNear(previous: PlanRow, solved: SolutionRow, { usability }: KeepInput): boolean {
  const wanted = weightMap(solved.weights);
  const current = weightMap(previous.weights);
  if (wanted.size === 0 || current.size === 0) return wanted.size === current.size;
  for (const engineId of current.keys()) {
    if (!usability.canServe(solved.frontendId, solved.poolId, engineId)) return false;
  }
  for (const [engineId, weight] of wanted) {
    if (weight >= ENTRY_WEIGHT && !current.has(engineId)) return false;
  }
  if (totalVariation(current, wanted) > WEIGHT_DEAD_BAND) return false;
  return solved.bounds.every(({ engineId, min, max }) => {
    const weight = current.get(engineId) ?? 0;
    return weight >= min * (1 - BOUND_TOLERANCE) && weight <= max * (1 + BOUND_TOLERANCE);
  });
}

/**
 * Drops rows from `keep` until no engine is over its hard limit by more than the slack because of kept weights, and nobody is
 * refused while kept weights leave empty all that could serve them: what is within a large row's dead band may be all the traffic of
 * a small engine.
 */
function* relieve(keep: Set<string>, { before, solution, shed, work, policy }: KeepInput): Steps<void> {
  const capacities = work.capacities();
  for (;;) {
    const rows = solution.rows.map((row) => ({
      frontendId: row.frontendId,
      poolId: row.poolId,
      shed: shed.get(rowKey(row))!,
      weights: keep.has(rowKey(row)) ? before.get(rowKey(row))!.weights : row.weights,
    }));
    const loads = work.loads(rows);
    const over = new Set<string>();
    const roomy = new Set<string>();
    for (const [engineId, capacity] of capacities) {
      const load = loads.get(engineId) ?? 0;
      const limit = policy.maxUtilization * capacity;
      if (load > limit * (1 + KEPT_CAPACITY_SLACK)) over.add(engineId);
      if (load < limit * KEPT_FILL) roomy.add(engineId);
    }
    const empty = new Set<string>();
    rows.forEach(({ shed, weights }, at) => {
      const isRefused =
        shed.length > 0 &&
        solution.rows[at]!.bounds.length === 0 &&
        weights.every(({ engineId }) => roomy.has(engineId));
      if (isRefused) for (const { engineId } of weights) empty.add(engineId);
    });
    if (over.size === 0 && empty.size === 0) return;
    const guilty = solution.rows.filter((row) => {
      const key = rowKey(row);
      if (!keep.has(key)) return false;
      const wanted = weightMap(row.weights);
      const kept = weightMap(before.get(key)!.weights);
      return (
        [...over].some((engineId) => (kept.get(engineId) ?? 0) > (wanted.get(engineId) ?? 0)) ||
        [...empty].some((engineId) => (kept.get(engineId) ?? 0) < (wanted.get(engineId) ?? 0))
      );
    });
    if (guilty.length === 0) return;
    for (const row of guilty) keep.delete(rowKey(row));
    yield;
  }
}

/** Whether a plan in force tells filters and operators the same as new content, but for the stated dead band. */
export function describesTheSame(previous: PlanContent, next: PlanContent): boolean {
  return (
    previous.rows.length === next.rows.length &&
    previous.rows.every((row, index) => sameRow(row, next.rows[index]!)) &&
    previous.engines.length === next.engines.length &&
    previous.engines.every((engine, index) => sameEngine(engine, next.engines[index]!))
  );
}

function sameRow(a: PlanRow, b: PlanRow): boolean {
  return (
    rowKey(a) === rowKey(b) &&
    a.isPlain === b.isPlain &&
    a.retryRatio === b.retryRatio &&
    isStatedNear(a.demandRps, b.demandRps) &&
    a.shed.length === b.shed.length &&
    a.shed.every(
      (entry, i) => entry.priority === b.shed[i]!.priority && entry.fraction === b.shed[i]!.fraction,
    ) &&
    a.segments.length === b.segments.length &&
    a.segments.every((segment, i) => {
      const other = b.segments[i]!;
      return (
        segment.start === other.start &&
        segment.ownerId === other.ownerId &&
        segment.backupId === other.backupId
      );
    })
  );
}

function sameEngine(a: PlanEngine, b: PlanEngine): boolean {
  return (
    a.engineId === b.engineId &&
    isStatedNear(a.effectiveCapacity, b.effectiveCapacity) &&
    Math.abs(a.rho - b.rho) <= STATED_RHO_DEAD_BAND * Math.max(a.rho, b.rho, 0.1)
  );
}

function isStatedNear(a: number, b: number): boolean {
  return Math.abs(a - b) <= STATED_DEAD_BAND * Math.max(a, b);
}

function weightMap(weights: readonly Weight[]): Map<string, number> {
  return new Map(
    weights.filter(({ weight }) => weight > 0).map(({ engineId, weight }) => [engineId, weight]),
  );
}

function totalVariation(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): number {
  let sum = 0;
  for (const id of new Set([...a.keys(), ...b.keys()])) sum += Math.abs((a.get(id) ?? 0) - (b.get(id) ?? 0));
  return sum / 2;
}
