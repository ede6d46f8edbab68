import type { OptimizerInput, Solution } from '../../optimizer/solution.js';
import type { Solver } from '../../plan/make-plan.js';
import { applyChanges, type Changes, refusedRps } from './what-if.js';

export interface Headroom {
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
  readonly frontends: readonly {
    readonly frontendId: string;
    /** Multiple of the present demand, rounded down to a percent; null without demand or above `MOST_GROWTH`. */
    readonly growth: number | null;
  }[];
}

/** Growth is not searched beyond this multiple. */
export const MOST_GROWTH = 64;

/** Tries every loss of an engine and every growth of a frontend; one solve each for engines, up to 13 for frontends. */
export async function headroom(solver: Solver, input: OptimizerInput): Promise<Headroom> {
  const { fleet } = input.state;
  const engines: Headroom['engines'][number][] = [];
  for (const { id } of fleet.engines) engines.push(await lossOf(solver, input, id));
  const frontends: Headroom['frontends'][number][] = [];
  for (const { id } of fleet.frontends) {
    frontends.push({ frontendId: id, growth: await growthOf(solver, input, id) });
  }
  return { engines, frontends };
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

async function growthOf(solver: Solver, input: OptimizerInput, frontendId: string): Promise<number | null> {
  const own = input.state.demands.filter((demand) => demand.frontendId === frontendId);
  if (!own.some(({ requestsPerSecond }) => requestsPerSecond > 0)) return null;
  const fitsAt = async (factor: number) => {
    const changes: Changes = { without: [], demand: [{ frontendId, factor }] };
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
