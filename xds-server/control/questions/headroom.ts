import { sum } from '../../collections.js';
import type { OptimizerInput, Solution } from '../../optimizer/solution.js';
import type { Solver } from '../../plan/make-plan.js';
import { applyChanges, type Changes, refusedRps } from './what-if.js';

export interface Headroom {
  /** Requests per second that are refused as things are; what the loss of an engine refuses includes them. */
  readonly refusedRps: number;
  /** What happens when an engine dies. */
  readonly engines: readonly {
    readonly engineId: string;
    /** Whose requests are refused then, and how many a second. */
    readonly refused: readonly {
      readonly frontendId: string;
      readonly poolId: string;
      readonly rps: number;
      /** The same by priority, from high to low; only those that lose something. */
      readonly byPriority: readonly { readonly priority: number; readonly rps: number }[];
    }[];
    /** Pools that have nobody then, but for engines of the last resort, with or without demand. */
    readonly lostPools: readonly string[];
    /** The fullest engine that is left. */
    readonly fullest: { readonly engineId: string; readonly rho: number } | null;
  }[];
  /** How much the demand of a frontend alone can grow before any request is refused. */
  readonly frontends: readonly ({
    readonly frontendId: string;
    /** Its requests per second that are refused as things are. */
    readonly refusedRps: number;
  } & Growth)[];
  /** How much that of all frontends can grow together. */
  readonly together: Growth;
}

export interface Growth {
  /** Present demand in requests/s. */
  readonly rps: number;
  /** Multiple of it, rounded down to a percent; null without demand or above `MOST_GROWTH`. */
  readonly growth: number | null;
}

/** Growth is not searched beyond this multiple. */
export const MOST_GROWTH = 64;

/** Tries every loss of an engine and every growth of a frontend; one solve each for engines, up to 13 for frontends and for all, and one of now. */
export async function headroom(solver: Solver, input: OptimizerInput): Promise<Headroom> {
  const { fleet } = input.state;
  const now = await solver.solve({ ...input, isTrial: true });
  const engines: Headroom['engines'][number][] = [];
  for (const { id } of fleet.engines) engines.push(await lossOf(solver, input, id));
  const frontends: Headroom['frontends'][number][] = [];
  for (const { id } of fleet.frontends) {
    const own = now.rows.filter(({ frontendId }) => frontendId === id);
    const growth = await growthOf(solver, input, [id]);
    frontends.push({ frontendId: id, refusedRps: sum(own.map(refusedRps)), ...growth });
  }
  const ids = fleet.frontends.map(({ id }) => id);
  // One frontend alone is all of them.
  const together = frontends.length === 1 ? frontends[0]! : await growthOf(solver, input, ids);
  return {
    refusedRps: sum(now.rows.map(refusedRps)),
    engines,
    frontends,
    together: { rps: together.rps, growth: together.growth },
  };
}

async function lossOf(
  solver: Solver,
  input: OptimizerInput,
  engineId: string,
): Promise<Headroom['engines'][number]> {
  const solution = await solver.solve(applyChanges(input, { without: [engineId], demand: [] }));
  const refused = solution.rows
    .map((row) => ({
      frontendId: row.frontendId,
      poolId: row.poolId,
      rps: refusedRps(row),
      byPriority: refusedByPriority(row, input),
    }))
    .filter(({ rps }) => rps > 0);
  const left = solution.engines.filter(
    (engine) => engine.engineId !== engineId && engine.effectiveCapacity > 0,
  );
  const fullest = left.reduce<(typeof left)[number] | undefined>(
    (most, engine) => (most === undefined || engine.rho > most.rho ? engine : most),
    undefined,
  );
  const able = new Set(left.map((engine) => engine.engineId));
  const lostPools = input.state.fleet.pools.filter(
    ({ engineIds }) => engineIds.includes(engineId) && !engineIds.some((id) => able.has(id)),
  );
  return {
    engineId,
    refused,
    lostPools: lostPools.map(({ id }) => id),
    fullest: fullest === undefined ? null : { engineId: fullest.engineId, rho: fullest.rho },
  };
}

function refusedByPriority(
  { frontendId, poolId, shed }: Solution['rows'][number],
  { state }: OptimizerInput,
): { priority: number; rps: number }[] {
  return shed
    .map(({ priority, fraction }) => {
      const demand = state.demands.find(
        (each) => each.frontendId === frontendId && each.poolId === poolId && each.priority === priority,
      );
      return { priority, rps: fraction * (demand?.requestsPerSecond ?? 0) };
    })
    .filter(({ rps }) => rps > 0)
    .sort((a, b) => b.priority - a.priority);
}

async function growthOf(
  solver: Solver,
  input: OptimizerInput,
  frontendIds: readonly string[],
): Promise<Growth> {
  const own = input.state.demands.filter(({ frontendId }) => frontendIds.includes(frontendId));
  const rps = sum(own.map(({ requestsPerSecond }) => requestsPerSecond));
  return { rps, growth: rps === 0 ? null : await mostGrowth(solver, input, frontendIds) };
}

async function mostGrowth(
  solver: Solver,
  input: OptimizerInput,
  frontendIds: readonly string[],
): Promise<number | null> {
  const fitsAt = async (factor: number) => {
    const demand = frontendIds.map((frontendId) => ({ frontendId, factor }));
    const changes: Changes = { without: [], demand };
    const solution = await solver.solve(applyChanges(input, changes));
    return solution.rows.every((row) => refusedRps(row) === 0);
  };
  if (!(await fitsAt(1))) return 1;
  let low = 1;
  let high = 2;
  while (await fitsAt(high)) {
    if (high >= MOST_GROWTH) return null;
    low = high;
    high *= 2;
  }
  while (high - low > 0.005 * low) {
    const middle = (low + high) / 2;
    if (await fitsAt(middle)) low = middle;
    else high = middle;
  }
  return Math.floor(low * 100) / 100;
}
