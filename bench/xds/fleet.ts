import type { Engine, Fleet } from '../../xds-server/fleet/fleet.js';
import type { WeightPlan } from '../../xds-server/xds/index.js';

export interface FleetSize {
  readonly frontends: number;
  readonly clusters: number;
  /** Of each cluster. */
  readonly endpoints: number;
  /** Of each engine; default 25. */
  readonly replicas?: number;
}

/** A pool per cluster with engines of its own. */
export function fleetOf(
  { frontends, clusters, endpoints, replicas = 25 }: FleetSize,
  addressOf = plainAddress,
): Fleet {
  const engines: Engine[] = [];
  const pools = Array.from({ length: clusters }, (_, cluster) => {
    const engineIds: string[] = [];
    for (let at = 0; at < endpoints; at += replicas) {
      const id = `engine-${cluster}-${at}`;
      const count = Math.min(replicas, endpoints - at);
      const addresses = Array.from({ length: count }, (_, i) => addressOf(cluster * endpoints + at + i));
      engines.push(engineOf(id, addresses));
      engineIds.push(id);
    }
    return { id: `cluster-${cluster}`, model: `cluster-${cluster}`, needs: [], engineIds };
  });
  const ids = Array.from({ length: frontends }, (_, i) => `frontend-${i}`);
  return {
    frontends: ids.map((id) => ({ id, region: 'region', listen: '127.0.0.1:1' })),
    engines: [...engines].sort((a, b) => (a.id < b.id ? -1 : 1)),
    pools,
    networkSeconds: ids.map(() => engines.map(() => 0.001)),
  };
}

function plainAddress(index: number): string {
  return `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}:8000`;
}

function engineOf(id: string, endpoints: readonly string[]): Engine {
  return {
    id,
    region: 'westeurope',
    models: ['m'],
    labels: {},
    profile: 'p',
    endpoints,
    metrics: { kind: 'none', path: '/metrics' },
    healthPath: '/health',
  };
}

/** Weights of every pool for every frontend; each `turn` differs from the one before in every engine. */
export function weightsAt(fleet: Fleet, turn: number): WeightPlan {
  return {
    rows: fleet.frontends.flatMap(({ id: frontendId }, frontend) =>
      fleet.pools.map(({ id: poolId, engineIds }) => {
        const raw = engineIds.map((_, i) => 1 + ((i * 7 + turn * 3 + frontend) % 5));
        const sum = raw.reduce((total, each) => total + each, 0);
        return {
          frontendId,
          poolId,
          weights: engineIds.map((engineId, i) => ({ engineId, weight: raw[i]! / sum })),
        };
      }),
    ),
  };
}
