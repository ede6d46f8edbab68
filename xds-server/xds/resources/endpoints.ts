import type { Engine } from '../../fleet/fleet.js';
import type { EngineState } from '../../fleet/fleet-state.js';
import { HealthStatus } from '../../gen/envoy/config/core/v3/health_check_pb.js';
import { createResource, type Resource } from '../protocol/resource.js';
import { encodeAssignment, type Locality } from './assignment-writer.js';

/** An engine as Envoys see it, the same in every pool. */
export interface EngineHosts {
  readonly engine: Engine;
  /** As many as endpoints. */
  readonly health: readonly HealthStatus[];
  /** Replicas among which the engine's weight is divided. */
  readonly sharers: number;
}

export interface PoolEngine extends EngineHosts {
  /** 0..1, share of this frontend's traffic of the pool. */
  readonly weight: number;
}

/**
 * Sum of the host weights of a pool. Envoy adds the weights of a locality in 32 bits; this leaves room for rounding,
 * and 1 % of the traffic on 1 000 replicas still has four digits a host.
 */
const WEIGHT_SCALE = 1_000_000_000;

/**
 * Endpoints of a pool for one frontend: an engine is a locality, its replicas are the hosts. The filter chooses hosts
 * by address and `override_host` ignores health, priority and weight; these matter for requests it leaves open, and
 * for operators who look at Envoy.
 *
 * Replicas that are not ready stay listed, as unhealthy: an endpoint must be known before a snapshot names it, and
 * removing and adding hosts would cut connections and lose statistics at every hiccup. Engines without weight stay
 * reachable at priority 1. Drained and departed replicas are `DRAINING`: never chosen by Envoy itself.
 */
export function endpointsOf(poolId: string, engines: readonly PoolEngine[]): Resource {
  const planned = engines.filter(({ weight }) => weight > 0);
  const spare = engines.filter(({ weight }) => !(weight > 0));
  // Priorities must not have gaps: without any weight, all are equal.
  const sparePriority = planned.length > 0 ? 1 : 0;
  const any = encodeAssignment(poolId, [
    ...planned.map((entry) => localityOf(entry, 0, hostWeight(entry))),
    ...spare.map((entry) => localityOf(entry, sparePriority, 1)),
  ]);
  return createResource(poolId, any);
}

/** The engine's weight, divided among the replicas that can take it; at least 1, as Envoy refuses 0. */
export function hostWeight({ sharers, weight }: PoolEngine): number {
  return Math.max(1, Math.round((weight * WEIGHT_SCALE) / sharers));
}

/** The hosts of an engine; without a state it has left, and only older snapshots may still name it. */
export function hostsOf(engine: Engine, state: EngineState | undefined): EngineHosts {
  const ready = new Map(state?.replicas.map((replica) => [replica.address, replica.ready]));
  const readyCount = state?.replicas.filter((replica) => replica.ready).length ?? 0;
  return {
    engine,
    health: engine.endpoints.map((address) => healthOf(state, ready.get(address))),
    sharers: readyCount > 0 ? readyCount : engine.endpoints.length,
  };
}

function localityOf({ engine, health }: PoolEngine, priority: number, weight: number): Locality {
  return { engine, priority, hostWeight: weight, health };
}

function healthOf(state: EngineState | undefined, ready: boolean | undefined): HealthStatus {
  if (state === undefined || state.drain === 0 || ready === undefined) return HealthStatus.DRAINING;
  return ready ? HealthStatus.HEALTHY : HealthStatus.UNHEALTHY;
}
