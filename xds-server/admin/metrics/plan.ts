import type { SolutionRow } from '../../optimizer/index.js';
import { now } from '../../steady-clock.js';
import { ageSeconds } from '../age.js';
import type { ShownServer } from '../shown-server.js';
import { type Family, gauge } from './family.js';

export function registerPlan(server: ShownServer, families: Family[]): void {
  const one = (value: number | undefined) => (value === undefined ? [] : [[{}, value] as const]);
  const engines = (value: 'rho' | 'congestionPriceSeconds' | 'scarcityPriceSeconds') => () =>
    (server.plan?.engines ?? []).map((engine) => [{ engine: engine.engineId }, engine[value]] as const);
  gauge(families, 'wardrop_plan_sequence', 'Number of the plan in force.', [], () =>
    one(server.plan?.sequence),
  );
  gauge(families, 'wardrop_plan_age_seconds', 'Time since the plan in force was made.', [], () =>
    one(server.plan === null ? undefined : ageSeconds(server.plan.createdAtMs, now())),
  );
  gauge(
    families,
    'wardrop_plan_objective_seconds',
    'User-seconds per second under the plan, moves included.',
    [],
    () => one(server.plan?.objectiveSeconds),
  );
  gauge(
    families,
    'wardrop_plan_mix_error_seconds',
    'What is missing in the objective because it takes requests of an engine at their mean size.',
    [],
    () => one(server.solution?.mixErrorSeconds),
  );
  gauge(
    families,
    'wardrop_weight_bound',
    'Least and most that a weight may be, where an operator or the trickle of a penalised engine bounds it.',
    ['frontend', 'pool', 'engine', 'limit'],
    () => (server.solution?.rows ?? []).flatMap(boundsOf),
  );
  gauge(
    families,
    'wardrop_weight',
    'Share of the traffic of a frontend and pool for an engine.',
    ['frontend', 'pool', 'engine'],
    () => weightsOf(server),
  );
  gauge(
    families,
    'wardrop_shed_fraction',
    'Share of requests of a frontend, pool and priority that are refused.',
    ['frontend', 'pool', 'priority'],
    () =>
      (server.plan?.rows ?? []).flatMap((row) =>
        row.shed.map(
          ({ priority, fraction }) =>
            [{ frontend: row.frontendId, pool: row.poolId, priority: String(priority) }, fraction] as const,
        ),
      ),
  );
  gauge(families, 'wardrop_steered_share', 'Share of keys that filters are to steer.', [], () =>
    one(server.config.steered),
  );
  gauge(
    families,
    'wardrop_overflow_fraction',
    'Share of the keys of an engine that go elsewhere because it has too much in flight.',
    ['engine'],
    () => [...server.relief.engines].map(([engine, fraction]) => [{ engine }, fraction] as const),
  );
  gauge(
    families,
    'wardrop_replica_in_flight_limit',
    'Requests in flight that each Envoy may have per ready replica of an engine.',
    ['engine'],
    () => [...server.relief.limits].map(([engine, limit]) => [{ engine }, limit] as const),
  );
  gauge(families, 'wardrop_engine_rho', 'Planned utilisation of an engine.', ['engine'], engines('rho'));
  gauge(
    families,
    'wardrop_engine_congestion_price_seconds',
    'User-seconds that one more replica-second of work costs through queueing.',
    ['engine'],
    engines('congestionPriceSeconds'),
  );
  gauge(
    families,
    'wardrop_engine_scarcity_price_seconds',
    'User-seconds that one more replica-second of capacity would save at the hard limit.',
    ['engine'],
    engines('scarcityPriceSeconds'),
  );
}

type WeightSample = readonly [Readonly<Record<'frontend' | 'pool' | 'engine', string>>, number];

function* weightsOf({ plan }: ShownServer): Generator<WeightSample> {
  for (const { frontendId: frontend, poolId: pool, weights } of plan?.rows ?? []) {
    for (const { engineId: engine, weight } of weights) yield [{ frontend, pool, engine }, weight];
  }
}

type BoundSample = readonly [Readonly<Record<'frontend' | 'pool' | 'engine' | 'limit', string>>, number];

/** Without limits that bound nothing. */
function boundsOf({ frontendId: frontend, poolId: pool, bounds }: SolutionRow): BoundSample[] {
  return bounds.flatMap(({ engineId: engine, min, max }): BoundSample[] => [
    ...(min > 0 ? [[{ frontend, pool, engine, limit: 'min' }, min] as const] : []),
    ...(max < 1 ? [[{ frontend, pool, engine, limit: 'max' }, max] as const] : []),
  ]);
}
