import { byId } from '../../collections.js';
import { type Engine, type Fleet, indexById } from '../../fleet/fleet.js';
import type { EngineState } from '../../fleet/fleet-state.js';
import type { Upstream } from '../../fleet/upstream.js';
import type { PlanRow } from '../../plan/plan.js';
import type { ResourceSet } from '../protocol/control-plane.js';
import type { NodeIdentity } from '../protocol/node.js';
import { createCollection, type View } from '../protocol/resource.js';
import {
  CLUSTER_TYPE,
  ENDPOINTS_TYPE,
  EXTENSION_TYPE,
  LISTENER_TYPE,
  ROUTE_TYPE,
  RUNTIME_TYPE,
} from '../protocol/type-url.js';
import { clusterOf } from './clusters.js';
import { type EngineHosts, endpointsOf, hostsOf } from './endpoints.js';
import { type EnvoyFeatures, featuresOf, shortcomingsOf } from './envoy-features.js';
import {
  COMMON_FILTER_NAME,
  FILTER_NAME,
  type FilterInput,
  type FilterOptions,
  filterConfigFor,
  filtersOf,
} from './filter.js';
import { listenerOf } from './listener.js';
import { nextFilterListener } from './next-filter-listener.js';
import { listenOf } from './node-metadata.js';
import { DEFAULT_TIMEOUTS, ROUTE_RETRIES, routesOf, type Timeouts } from './routes.js';
import { runtimeOf } from './runtime.js';
import type { Steering } from './steering.js';

/** What of a plan Envoy itself is told. */
export interface WeightPlan {
  readonly rows: readonly Pick<PlanRow, 'frontendId' | 'poolId' | 'weights'>[];
}

/** How the Envoys of a frontend are set up, whatever the plan. */
export interface EnvoyOptions extends FilterOptions {
  /** Default `override-host`. Envoys that cannot do it are given the next best; see `shortcomingsOf`. */
  readonly steering?: Steering;
  /** Retry budget of Envoy's own, as a share of active requests; see `runtimeOf`. Default none. */
  readonly retryBackstop?: number;
  /** Default: 120 s for streams, 600 s for other answers. */
  readonly timeouts?: Timeouts;
  /** By the id of engines that are not spoken to in plain HTTP; those of one pool are equal. */
  readonly upstreams?: ReadonlyMap<string, Upstream>;
  /** Asks engines for load reports in their responses; default false. */
  readonly loadReports?: boolean;
  /** Where Envoy writes a line of JSON for each request: a path, `/dev/stdout` and `/dev/stderr` among them. Default none. */
  readonly accessLog?: string;
}

export interface ResourceInput extends FilterInput, EnvoyOptions {
  readonly fleet: Fleet;
  readonly frontendId: string;
  readonly plan: WeightPlan;
  /** How the engines of the fleet look now, in any order. */
  readonly engines: readonly EngineState[];
  /**
   * Fleets that filters may still have a snapshot of, the oldest first. Their pools and replicas that are gone stay reachable, and
   * are otherwise not used. Leave one out once no filter needs it.
   */
  readonly previousFleets?: readonly Fleet[];
}

/** What the Envoys of a frontend are given: a function of the input, byte for byte. */
export function buildResources(input: ResourceInput): ResourceSet {
  const frontend = input.fleet.frontends[indexById(input.fleet.frontends, input.frontendId)]!;
  const pools = union(
    input.fleet.pools,
    (input.previousFleets ?? []).flatMap(({ pools }) => pools),
  );
  const enginesOf = engineLookup(input);
  const assignments = createCollection(
    pools.map(({ id }) => {
      const weights = weightsOf(input, id);
      const engines = enginesOf(id).map((hosts) => ({ ...hosts, weight: weights.get(hosts.engine.id) ?? 0 }));
      return endpointsOf(id, engines);
    }),
  );
  const { accessLog, timeouts = DEFAULT_TIMEOUTS } = input;
  const steering = input.steering ?? 'override-host';
  const poolIds = pools.map(({ id }) => id);
  const runtime = createCollection([runtimeOf(poolIds, input.retryBackstop)]);
  const routeOptions = { ...input, models: modelNames(input.fleet) };
  const views = new Map<string, View>();
  return {
    shortcomingsOf: (node) => shortcomingsOf(node, steering, input.filter.readBodies),
    viewOf(node: NodeIdentity): View {
      const listen = listenOf(node) ?? frontend.listen;
      const features = featuresOf(node, steering);
      const key = JSON.stringify([listen, features]);
      let view = views.get(key);
      if (view === undefined) {
        const clusters = pools.map((pool) => {
          const upstream = input.upstreams?.get(pool.engineIds[0]!);
          return clusterOf(pool, { ...features, ...(upstream && { upstream }) });
        });
        const filter = { wasmModule: input.wasmModule, filter: filterConfigFor(input.filter, features) };
        const filters = [
          ...filtersOf(COMMON_FILTER_NAME, filter),
          ...filtersOf(FILTER_NAME, ofListener(filter, features)),
        ];
        view = new Map([
          [CLUSTER_TYPE, createCollection(clusters)],
          [ENDPOINTS_TYPE, assignments],
          [EXTENSION_TYPE, createCollection(filters)],
          [
            LISTENER_TYPE,
            createCollection([
              listenerOf({ frontendId: input.frontendId, listen, accessLog }),
              nextFilterListener(listen),
            ]),
          ],
          [ROUTE_TYPE, createCollection(routesOf(features.steering, timeouts, routeOptions))],
          [RUNTIME_TYPE, runtime],
        ]);
        views.set(key, view);
      }
      return view;
    },
  };
}

/** All names by which requests may ask for a model. */
function modelNames({ pools, aliases = [] }: Fleet): string[] {
  return [...new Set([...pools.map(({ model }) => model), ...aliases.map(({ name }) => name)])].sort();
}

/** The filter of our listener may rely on its routes. */
function ofListener({ wasmModule, filter }: FilterInput, { steering }: EnvoyFeatures): FilterInput {
  if (steering !== 'override-host') return { wasmModule, filter };
  return { wasmModule, filter: { ...filter, routeRetries: ROUTE_RETRIES } };
}

function weightsOf(input: ResourceInput, poolId: string): ReadonlyMap<string, number> {
  const row = input.plan.rows.find((row) => row.frontendId === input.frontendId && row.poolId === poolId);
  return new Map(row?.weights.map(({ engineId, weight }) => [engineId, weight]));
}

/** Finds the engines of a pool as this frontend sees them, sorted by id; those that it cannot reach are left out. */
function engineLookup(input: ResourceInput): (poolId: string) => EngineHosts[] {
  const { fleet, previousFleets = [], frontendId } = input;
  const states = new Map(input.engines.map((state) => [state.id, state]));
  const before = previousFleets.flatMap((previous) => reachableEngines(previous, frontendId));
  const departed = new Map(before.map((engine) => [engine.id, hostsOf(engine, undefined)]));
  const present = new Map(
    reachableEngines(fleet, frontendId).map((engine) => {
      const endpoints = new Set([...engine.endpoints, ...(departed.get(engine.id)?.engine.endpoints ?? [])]);
      const withDeparted =
        endpoints.size === engine.endpoints.length ? engine : { ...engine, endpoints: [...endpoints].sort() };
      return [engine.id, hostsOf(withDeparted, states.get(engine.id))];
    }),
  );
  return (poolId) => {
    // The last list wins: an engine that is still in the pool hasn't departed from it.
    const members = new Map([
      ...previousFleets.flatMap((previous) => membersOf(poolId, previous, departed)),
      ...membersOf(poolId, fleet, present),
    ]);
    return [...members.values()].sort((a, b) => (a.engine.id < b.engine.id ? -1 : 1));
  };
}

function membersOf(
  poolId: string,
  fleet: Fleet,
  engines: ReadonlyMap<string, EngineHosts>,
): [engineId: string, EngineHosts][] {
  const ids = fleet.pools.find(({ id }) => id === poolId)?.engineIds ?? [];
  return ids.flatMap((id) => {
    const hosts = engines.get(id);
    return hosts === undefined ? [] : [[id, hosts] as [string, EngineHosts]];
  });
}

function reachableEngines(fleet: Fleet, frontendId: string): Engine[] {
  const network = fleet.networkSeconds[fleet.frontends.findIndex(({ id }) => id === frontendId)];
  return fleet.engines.filter((_, index) => (network?.[index] ?? Infinity) < Infinity);
}

/** Both lists by id, the first one's elements where both have one; sorted by id. */
function union<T extends { readonly id: string }>(first: readonly T[], second: readonly T[]): T[] {
  const items = new Map([...second, ...first].map((item) => [item.id, item]));
  return [...items.values()].sort(byId);
}
