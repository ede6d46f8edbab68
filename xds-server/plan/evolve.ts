import type { FleetState } from '../fleet/fleet-state.js';
import type { Policy } from '../fleet/policy.js';
import { rowKey } from '../fleet/row-key.js';
import type { BackupShares, EngineWeight, Solution, SolutionRow } from '../optimizer/solution.js';
import type { Profile } from '../profiles/profile.js';
import { EngineWork } from './engine-work.js';
import { assignBackups } from './partition/backups.js';
import { evolvePartition, type Partition } from './partition/partition.js';
import { quantise } from './partition/quantise.js';
import { runsOf } from './partition/segments.js';
import { HASH_SPACE, type Plan, type PlanEngine, type PlanRow, type Weight } from './plan.js';
import { identifying } from './plan-id.js';
import { pooledUtilization, retryRatio } from './protection/retry-ratio.js';
import { shedEntries } from './protection/shed.js';
import { describesTheSame, rowsToKeep } from './steadiness.js';
import { atOnce, type Steps } from './steps.js';
import { Usability } from './usability.js';

/**
 * Digits of a weight that count. Solutions to nearly the same question differ by some parts in a hundred thousand;
 * rounded they are the same, so that an engine that returns finds exactly the map that it left.
 */
const WEIGHT_DIGITS = 4;
/** Utilisations of plan and solution that differ by no more than this, relative, are the same; those below the least count as that. */
const SAME_RHO = 0.05;
const LEAST_RHO = 0.1;

export interface EvolveInput {
  /** Null before the first plan. */
  readonly previous: Plan | null;
  readonly solution: Solution;
  /** What the solution was made for. */
  readonly state: FleetState;
  /** By profile id. */
  readonly profiles: ReadonlyMap<string, Profile>;
  readonly policy: Policy;
  readonly createdAtMs: number;
}

/**
 * Makes the plan that follows `previous` from a solution. When nothing really changes (see steadiness.ts), `previous`
 * itself is returned, so that its id stays and nothing is pushed.
 */
export function evolvePlan(input: EvolveInput): Plan {
  return atOnce(evolvingPlan(input));
}

/** `evolvePlan`, row by row. */
export function* evolvingPlan(input: EvolveInput): Steps<Plan> {
  const { previous, solution, createdAtMs } = input;
  const work = new EngineWork(input.state, input.profiles);
  const rows = yield* evolvingRows(input, work);
  const content = {
    rows,
    engines: statedEngines(solution, work, rows),
    objectiveSeconds: solution.objectiveSeconds,
  };
  if (previous !== null && describesTheSame(previous, content)) return previous;
  const id = yield* identifying(content);
  return { id, sequence: (previous?.sequence ?? 0) + 1, createdAtMs, ...content };
}

/**
 * What the solution says of engines, but for the utilisation of those that weights kept in force make another one: what a dead
 * band leaves out of a large row's weights may be all the traffic of a small engine.
 */
function statedEngines(solution: Solution, work: EngineWork, rows: readonly PlanRow[]): PlanEngine[] {
  const loads = work.loads(rows);
  return solution.engines.map((engine) => {
    const { engineId, effectiveCapacity, rho } = engine;
    const planned = effectiveCapacity > 0 ? (loads.get(engineId) ?? 0) / effectiveCapacity : 0;
    const isAsSolved = Math.abs(planned - rho) <= SAME_RHO * Math.max(planned, rho, LEAST_RHO);
    return { ...engine, rho: isAsSolved ? rho : planned };
  });
}

/** The rows of a solution as those of the plan that follows. */
export function* evolvingRows(
  { previous, solution, state, policy }: EvolveInput,
  work: EngineWork,
): Steps<PlanRow[]> {
  const before = new Map((previous?.rows ?? []).map((row) => [rowKey(row), row]));
  const usability = new Usability(state);
  const pools = new Map(state.fleet.pools.map((pool) => [pool.id, pool]));
  const loads = new Map(solution.engines.map((load) => [load.engineId, load]));
  const shed = new Map(
    solution.rows.map((row) => [rowKey(row), shedEntries(row.shed, before.get(rowKey(row))?.shed ?? [])]),
  );
  const keep = yield* rowsToKeep({
    before,
    solution,
    shed,
    usability,
    work,
    policy,
  });

  const rows: PlanRow[] = [];
  for (const solved of solution.rows) {
    const key = rowKey(solved);
    const engineIds = pools.get(solved.poolId)?.engineIds ?? [];
    const utilization = pooledUtilization(engineIds.flatMap((id) => loads.get(id) ?? []));
    const row = before.get(key);
    rows.push({
      frontendId: solved.frontendId,
      poolId: solved.poolId,
      demandRps: solved.demandRps,
      ...weightsAndPartition(solved, row, keep.has(key), engineIds.length, usability),
      retryRatio: retryRatio(utilization, policy.maxUtilization, policy.retries, row?.retryRatio),
      shed: shed.get(key)!,
    });
    yield;
  }
  return rows;
}

function weightsAndPartition(
  solved: SolutionRow,
  before: PlanRow | undefined,
  keep: boolean,
  eligibleCount: number,
  usability: Usability,
): Pick<PlanRow, 'weights' | 'segments' | 'former'> {
  const previous = before ?? { segments: [] };
  let weights: readonly Weight[];
  let partition: Partition;
  if (keep && before !== undefined) {
    weights = before.weights;
    partition = { runs: runsOf(before.segments), former: before.former ?? [] };
  } else {
    const lengths = lengthsOf(solved.weights);
    weights = [...lengths].map(([engineId, length]) => ({ engineId, weight: length / HASH_SPACE }));
    partition = evolvePartition(previous, lengths, eligibleCount);
  }
  const shares = backupShares(solved.backups, weights);
  const segments = assignBackups(partition.runs, previous.segments, shares, (id) =>
    usability.canServe(solved.frontendId, solved.poolId, id),
  );
  return { weights, segments, former: partition.former };
}

/**
 * Lengths above 0 by engine, sorted by engine id; empty when nobody can serve the row. Throws RangeError when a weight
 * is negative or no number.
 */
function lengthsOf(weights: readonly EngineWeight[]): Map<string, number> {
  const sorted = weights
    .filter(({ weight }) => weight !== 0)
    .sort((a, b) => (a.engineId < b.engineId ? -1 : 1));
  if (sorted.length === 0) return new Map();
  const lengths = quantise(
    sorted.map(({ weight }) => Number(weight.toPrecision(WEIGHT_DIGITS))),
    HASH_SPACE,
  );
  return new Map(
    sorted
      .map(({ engineId }, index) => [engineId, lengths[index]!] as const)
      .filter(([, length]) => length > 0),
  );
}

/**
 * The solution's shares; an owner that the solution gives no weight, and so no shares, but that the dead band keeps
 * falls back on the other owners of the row.
 */
function backupShares(solved: readonly BackupShares[], weights: readonly Weight[]): BackupShares[] {
  const known = new Set(solved.map(({ ownerId }) => ownerId));
  const missing = weights.filter(({ engineId }) => !known.has(engineId));
  return [
    ...solved,
    ...missing.map(({ engineId }) => ({
      ownerId: engineId,
      shares: weights.filter((other) => other.engineId !== engineId),
    })),
  ];
}
