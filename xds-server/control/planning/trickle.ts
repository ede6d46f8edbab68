import { groupBy, sum } from '../../collections.js';
import { type Demand, effectiveCapacity, type FleetState } from '../../fleet/fleet-state.js';
import type { Policy, WeightBound } from '../../fleet/policy.js';
import { rowKey } from '../../fleet/row-key.js';

/** Requests per second that a penalised engine gets at least, so that its recovery is seen. */
const TRICKLE_RPS = 2;
/** But no more than this share of a row, and all penalised engines of a row together no more than this one. */
const MOST_SHARE = 0.1;
const MOST_TOGETHER = 0.2;
/** Least weights may add up to this without rounding taking them above 1. */
const WHOLE = 1 - 1e-9;

/**
 * The policy with a least weight for every penalised engine, in the row of each of its pools that is nearest to it. Where the
 * operator bounds that weight it is left alone, and what the operator wants others of the row to have at least stays theirs.
 */
export function withTrickle(policy: Policy, state: FleetState): Policy {
  const wanted = state.engines.flatMap((engine, at) =>
    engine.latencyFactor > 1 && effectiveCapacity(engine) > 0 ? trickles(policy, state, at) : [],
  );
  const bounds = [...groupBy(wanted, rowKey).values()].flatMap((row) => fitted(row, policy));
  return bounds.length === 0 ? policy : { ...policy, bounds: [...policy.bounds, ...bounds] };
}

/** The trickles of one row, scaled down to the room that there is for all of them. */
function fitted(row: readonly WeightBound[], policy: Policy): readonly WeightBound[] {
  const key = rowKey(row[0]!);
  const taken = sum(policy.bounds.map((bound) => (rowKey(bound) === key ? bound.min : 0)));
  const room = Math.min(MOST_TOGETHER, WHOLE - taken);
  const scale = Math.min(1, room / sum(row.map(({ min }) => min)));
  return scale > 0 ? row.map((bound) => ({ ...bound, min: bound.min * scale })) : [];
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
