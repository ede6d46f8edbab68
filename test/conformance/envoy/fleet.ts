import type { Engine, Fleet } from '../../../xds-server/fleet/fleet.js';
import type { EngineState } from '../../../xds-server/fleet/fleet-state.js';
import { engineStates } from '../../../xds-server/fleet/testing/engine-states.js';
import type { Plan } from '../../../xds-server/plan/plan.js';

/** A fleet with one frontend `west`, these engines, and a pool per model. */
export function fleetOf(
  listen: string,
  endpoints: Readonly<Record<string, readonly string[]>>,
  models: readonly string[] = ['m1'],
): Fleet {
  const engines: Engine[] = Object.entries(endpoints).map(([id, addresses]) => ({
    id,
    region: `region-of-${id}`,
    models,
    labels: {},
    profile: 'p',
    endpoints: [...addresses].sort(),
    metrics: { kind: 'none', path: '/metrics' },
    healthPath: '/health',
  }));
  return {
    frontends: [{ id: 'west', region: 'westeurope', listen }],
    engines,
    pools: models.map((model) => ({ id: model, model, needs: [], engineIds: engines.map(({ id }) => id) })),
    networkSeconds: [engines.map(() => 0.001)],
  };
}

/** All replicas ready, nothing drained. */
export function statesOf(fleet: Fleet, notReady: readonly string[] = []): EngineState[] {
  return engineStates(fleet, ({ endpoints }, replica) => !notReady.includes(endpoints[replica]!));
}

/** A plan with these weights in every pool; only what resources are built from is filled in. */
export function planOf(fleet: Fleet, weights: Readonly<Record<string, number>>): Plan {
  return {
    id: '0'.repeat(16),
    sequence: 1,
    createdAtMs: 0,
    rows: fleet.pools.map((pool) => ({
      frontendId: 'west',
      poolId: pool.id,
      demandRps: 1,
      weights: Object.entries(weights).map(([engineId, weight]) => ({ engineId, weight })),
      segments: [],
      retryRatio: 0,
      shed: [],
    })),
    engines: [],
    objectiveSeconds: 0,
  };
}
