import { type Demand, effectiveCapacity, type FleetState } from '../../fleet/fleet-state.js';
import type { Policy, WeightBound } from '../../fleet/policy.js';

/** Requests per second that a penalised engine gets at least, so that its recovery is seen. */
const TRICKLE_RPS = 2;
/** But no more than this share of a row. */
const MOST_SHARE = 0.1;

/**
 * The policy with a least weight for every penalised engine, in the row of each of its pools that is nearest to it. Rows
 * that the operator bounds are left alone.
 */
export function withTrickle(policy: Policy, state: FleetState): Policy {
  const bounds = state.engines.flatMap((engine, at) =>
    engine.latencyFactor > 1 && effectiveCapacity(engine) > 0 ? trickles(policy, state, at) : [],
  );
  return bounds.length === 0 ? policy : { ...policy, bounds: [...policy.bounds, ...bounds] };
}

function trickles(policy: Policy, state: FleetState, at: number): readonly WeightBound[] {
  const engineId = state.engines[at]!.id;
  const isBound = ({ frontendId, poolId }: Demand) =>
    policy.bounds.some(
      (bound) => bound.frontendId === frontendId && bound.poolId === poolId && bound.engineId === engineId,
    );
  return state.fleet.pools
    .filter(({ engineIds }) => engineIds.includes(engineId) && engineIds.length > 1)
    .flatMap(({ id: poolId }) => {
      const row = nearest(state, poolId, at);
      if (row === undefined || isBound(row)) return [];
      const min = Math.min(MOST_SHARE, TRICKLE_RPS / row.requestsPerSecond);
      return [{ frontendId: row.frontendId, poolId, engineId, min, max: 1 }];
    });
}

/** The demand of a pool with the shortest way to an engine. */
function nearest({ fleet, demands }: FleetState, poolId: string, engine: number): Demand | undefined {
  let best: { demand: Demand; seconds: number } | undefined;
  for (const demand of demands) {
    if (demand.poolId !== poolId || demand.requestsPerSecond <= 0) continue;
    const frontend = fleet.frontends.findIndex(({ id }) => id === demand.frontendId);
    const seconds = fleet.networkSeconds[frontend]![engine]!;
    if (Number.isFinite(seconds) && (best === undefined || seconds < best.seconds))
      best = { demand, seconds };
  }
  return best?.demand;
}
