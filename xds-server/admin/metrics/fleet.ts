import { groupBy, sum } from '../../collections.js';
import { effectiveCapacity } from '../../fleet/fleet-state.js';
import { rowKey } from '../../fleet/row-key.js';
import type { ShownServer } from '../shown-server.js';
import { type Family, gauge } from './family.js';

export function registerFleet(server: ShownServer, families: Family[]): void {
  gauge(
    families,
    'wardrop_demand_requests_per_second',
    'Demand that plans are made for, by where it comes from.',
    ['frontend', 'pool', 'source'],
    () => demandSamples(server),
  );
  gauge(
    families,
    'wardrop_plans_made_here',
    '1 while this control server makes the plans that it publishes, 0 while it takes those of another.',
    [],
    () => [[{}, server.isPlanning ? 1 : 0]],
  );
  gauge(
    families,
    'wardrop_peer_age_seconds',
    'Time since another control server answered; absent before it ever did.',
    ['peer'],
    () =>
      server
        .peerViews()
        .flatMap(({ address, ageSeconds }) =>
          ageSeconds === null ? [] : [[{ peer: address }, ageSeconds] as const],
        ),
  );
  gauge(
    families,
    'wardrop_settled_seconds',
    'Time that demand and fleet count as having held, the least of all pools.',
    [],
    () => [[{}, server.view.state.settledSeconds]],
  );
  gauge(families, 'wardrop_engine_replicas', 'Replicas by readiness.', ['engine', 'ready'], () =>
    server.view.state.engines.flatMap(({ id, replicas }) => {
      const ready = replicas.filter((replica) => replica.ready).length;
      return [
        [{ engine: id, ready: 'true' }, ready] as const,
        [{ engine: id, ready: 'false' }, replicas.length - ready] as const,
      ];
    }),
  );
  gauge(
    families,
    'wardrop_engine_effective_capacity',
    'Ready replicas less health, ramp, drain and penalty.',
    ['engine'],
    () =>
      server.view.state.engines.map((engine) => [{ engine: engine.id }, effectiveCapacity(engine)] as const),
  );
  gauge(families, 'wardrop_alarms', 'Present alarms by kind.', ['kind'], () => {
    const kinds = new Map<string, number>();
    for (const { id } of server.alarms.list) {
      const kind = id.split(':')[0]!;
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    }
    return [...kinds].map(([kind, count]) => [{ kind }, count] as const);
  });
}

type DemandSample = readonly [Readonly<Record<'frontend' | 'pool' | 'source', string>>, number];

/** Over all priorities. */
function demandSamples({ view }: ShownServer): readonly DemandSample[] {
  const groups = groupBy(view.state.demands, (demand) => `${rowKey(demand)} ${demand.source}`);
  return [...groups.values()].map((demands) => {
    const { frontendId, poolId, source } = demands[0]!;
    const rate = sum(demands.map(({ requestsPerSecond }) => requestsPerSecond));
    return [{ frontend: frontendId, pool: poolId, source }, rate];
  });
}
