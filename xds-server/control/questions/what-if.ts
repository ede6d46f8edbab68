import { WardropError } from '../../errors.js';
import type { Fleet } from '../../fleet/fleet.js';
import { type Demand, type EngineState, effectiveCapacity } from '../../fleet/fleet-state.js';
import { knownId, knownPoolId } from '../../fleet/known-id.js';
import { lastResortsOf, withoutLastResorts } from '../../fleet/last-resort.js';
import { rowKey } from '../../fleet/row-key.js';
import type { OptimizerInput, Solution } from '../../optimizer/solution.js';
import type { Solver } from '../../plan/make-plan.js';

/** Of requests of no class. */
const DEFAULT_PRIORITY = 0;

/** What is imagined to be different. */
export interface Changes {
  /** Ids of engines that are gone. */
  readonly without: readonly string[];
  readonly demand: readonly DemandChange[];
}

/**
 * A frontend's demand, of one pool or of all, multiplied or replaced. Replacing needs a pool if there are several; the
 * classes of the pool keep their shares of it.
 */
export interface DemandChange {
  readonly frontendId: string;
  readonly poolId?: string;
  readonly factor?: number;
  readonly requestsPerSecond?: number;
}

export interface WhatIf {
  readonly rows: readonly {
    readonly frontendId: string;
    readonly poolId: string;
    readonly demandRps: { readonly before: number; readonly after: number };
    /** Requests per second that are refused. */
    readonly refusedRps: { readonly before: number; readonly after: number };
    readonly weights: readonly {
      readonly engineId: string;
      readonly before: number;
      readonly after: number;
    }[];
  }[];
  readonly engines: readonly {
    readonly engineId: string;
    readonly rho: { readonly before: number; readonly after: number };
  }[];
  /** User-seconds of latency per second, of what is served. */
  readonly objectiveSeconds: { readonly before: number; readonly after: number };
  /** What any weights would come to at least, as proven. */
  readonly lowerBoundSeconds: { readonly before: number; readonly after: number };
  /** What is missing in the objective because it takes requests of an engine at their mean size. */
  readonly mixErrorSeconds: { readonly before: number; readonly after: number };
  /** What of the changed input was bounded or not followed, and why. */
  readonly warnings: readonly string[];
}

/** Solves as things are and as they would be. Both solves charge moves from the weights in force. */
export async function whatIf(solver: Solver, input: OptimizerInput, changes: Changes): Promise<WhatIf> {
  const changed = applyChanges(input, changes);
  const before = await solver.solve({ ...input, isTrial: true });
  const after = await solver.solve(changed);
  const beforeRows = rowsByKey(before);
  return {
    rows: after.rows.map((row) => {
      const old = beforeRows.get(rowKey(row))!;
      const oldWeights = weightsOf(old);
      const newWeights = weightsOf(row);
      const engineIds = [...new Set([...oldWeights.keys(), ...newWeights.keys()])].sort();
      return {
        frontendId: row.frontendId,
        poolId: row.poolId,
        demandRps: { before: old.demandRps, after: row.demandRps },
        refusedRps: { before: refusedRps(old), after: refusedRps(row) },
        weights: engineIds.map((engineId) => ({
          engineId,
          before: oldWeights.get(engineId) ?? 0,
          after: newWeights.get(engineId) ?? 0,
        })),
      };
    }),
    engines: after.engines.map(({ engineId, rho }) => ({
      engineId,
      rho: { before: before.engines.find((engine) => engine.engineId === engineId)!.rho, after: rho },
    })),
    objectiveSeconds: { before: before.objectiveSeconds, after: after.objectiveSeconds },
    lowerBoundSeconds: { before: before.lowerBoundSeconds, after: after.lowerBoundSeconds },
    mixErrorSeconds: { before: before.mixErrorSeconds, after: after.mixErrorSeconds },
    warnings: after.warnings,
  };
}

/**
 * The input as it would be, marked as a trial.
 *
 * @throws {WardropError} WARDROP_QUERY_INVALID for names that are not in the fleet
 */
export function applyChanges(input: OptimizerInput, { without, demand }: Changes): OptimizerInput {
  const { state } = input;
  for (const id of without) knownId('engine', id, state.fleet.engines);
  const gone = new Set(without);
  const engines = state.engines.map((engine) =>
    gone.has(engine.id)
      ? { ...engine, replicas: engine.replicas.map((replica) => ({ ...replica, ready: false })) }
      : engine,
  );
  const demands = demand.reduce(applyDemand, state.demands);
  const fleet = withLastStand(state.fleet, engines);
  return { ...input, state: { ...state, fleet, engines, demands }, isTrial: true };

  function applyDemand(demands: readonly Demand[], change: DemandChange): readonly Demand[] {
    const { frontendId, factor = 1, requestsPerSecond } = change;
    knownId('frontend', frontendId, state.fleet.frontends);
    const poolId = change.poolId === undefined ? undefined : knownPoolId(change.poolId, state.fleet);
    if (poolId === undefined && requestsPerSecond !== undefined && state.fleet.pools.length > 1) {
      throw new WardropError(
        'WARDROP_QUERY_INVALID',
        `demand of ${frontendId}: say for which pool (${frontendId}/POOL), or by how much in percent; pools: ${state.fleet.pools.map(({ id }) => id).join(', ')}`,
      );
    }
    const isMeant = (entry: Demand) =>
      entry.frontendId === frontendId && (poolId === undefined || entry.poolId === poolId);
    const total = demands.filter(isMeant).reduce((sum, entry) => sum + entry.requestsPerSecond, 0);
    const replaced = (entry: Demand, rps: number) => {
      if (total > 0) return (rps / total) * entry.requestsPerSecond;
      return entry.priority === DEFAULT_PRIORITY ? rps : 0;
    };
    return demands.map((entry) => {
      if (!isMeant(entry)) return entry;
      const rps =
        requestsPerSecond === undefined
          ? entry.requestsPerSecond * factor
          : replaced(entry, requestsPerSecond);
      return { ...entry, requestsPerSecond: rps };
    });
  }
}

/** Engines of the last resort serve pools of which nobody else is left. */
function withLastStand(fleet: Fleet, engines: readonly EngineState[]): Fleet {
  const able = new Set(engines.filter((engine) => effectiveCapacity(engine) > 0).map(({ id }) => id));
  const served = new Set(
    fleet.pools.filter(({ engineIds }) => engineIds.some((id) => able.has(id))).map(({ id }) => id),
  );
  return withoutLastResorts(fleet, new Map([...lastResortsOf(fleet)].filter(([id]) => served.has(id))));
}

/** Requests per second of a row that are refused. */
export function refusedRps({ demandRps, flows }: Solution['rows'][number]): number {
  const served = flows.reduce((sum, { rps }) => sum + rps, 0);
  const refused = demandRps - served;
  return refused > 1e-6 * demandRps ? refused : 0;
}

function rowsByKey(solution: Solution): ReadonlyMap<string, Solution['rows'][number]> {
  return new Map(solution.rows.map((row) => [rowKey(row), row]));
}

function weightsOf(row: Solution['rows'][number]): ReadonlyMap<string, number> {
  return new Map(row.weights.map(({ engineId, weight }) => [engineId, weight]));
}
