import { type Address, type Engine, type Fleet, indexById, type Pool } from '../../fleet/fleet.js';
import type { EngineState } from '../../fleet/fleet-state.js';
import type { Plan } from '../../plan/plan.js';
import type { ResourceSet } from '../protocol/control-plane.js';
import type { NodeIdentity } from '../protocol/node.js';
import { type Collection, createCollection, type View } from '../protocol/resource.js';
import { CLUSTER_TYPE, ENDPOINTS_TYPE, LISTENER_TYPE, ROUTE_TYPE } from '../protocol/type-url.js';
import { clusterOf } from './clusters.js';
import { endpointsOf, type PoolEngine } from './endpoints.js';
import { listenerOf } from './listener.js';
import { listenOf } from './node-metadata.js';
import { routes } from './routes.js';

export interface ResourceInput {
  readonly fleet: Fleet;
  readonly frontendId: string;
  readonly plan: Plan;
  /** How the engines of the fleet look now, in any order. */
  readonly engines: readonly EngineState[];
  /** The compiled filter. */
  readonly wasmModule: Uint8Array;
  /** The filter's own configuration, as its codec writes it. */
  readonly filterConfig: string;
  /**
   * The fleet that filters may still have a snapshot of. Its pools and replicas that are gone stay reachable, and are
   * otherwise not used. Leave it out once no filter needs it.
   */
  readonly previousFleet?: Fleet;
  /**
   * The set that the frontend was given last. Weights that stayed within 0.02 of it are left as they are: the filter
   * steers by its snapshot, and every change makes Envoy build its tables anew.
   */
  readonly previous?: FrontendResources;
  /** Milliseconds to connect to an engine before the next one is tried; default 1000. */
  readonly connectTimeoutMs?: number;
  /** Writes a line per request to Envoy's standard output; default false. */
  readonly accessLog?: boolean;
}

/** Shares of a frontend's traffic by pool and engine, as EDS shows them. */
export type EdsWeights = ReadonlyMap<string, ReadonlyMap<string, number>>;

export interface FrontendResources extends ResourceSet {
  readonly weights: EdsWeights;
}

/** Largest difference of a weight that is not worth a push. */
const WEIGHT_TOLERANCE = 0.02;

/** What the Envoys of a frontend are given: a function of the input, byte for byte. */
export function buildResources(input: ResourceInput): FrontendResources {
  const frontend = input.fleet.frontends[indexById(input.fleet.frontends, input.frontendId)]!;
  const pools = union(input.fleet.pools, input.previousFleet?.pools ?? []);
  const weights: EdsWeights = new Map(
    pools.map(({ id }) => [id, steadied(plannedWeights(input, id), input.previous?.weights.get(id))]),
  );
  const endpoints = pools.map((pool) => endpointsOf(pool, enginesOf(pool, input, weights.get(pool.id)!)));
  const shared: [typeUrl: string, Collection][] = [
    [CLUSTER_TYPE, createCollection(pools.map((pool) => clusterOf(pool, input.connectTimeoutMs ?? 1000)))],
    [ENDPOINTS_TYPE, createCollection(endpoints)],
    [ROUTE_TYPE, createCollection([routes()])],
  ];
  const views = new Map<Address, View>();
  return {
    weights,
    viewOf(node: NodeIdentity): View {
      const listen = listenOf(node) ?? frontend.listen;
      let view = views.get(listen);
      if (view === undefined) {
        const { wasmModule, filterConfig, accessLog = false } = input;
        const listener = listenerOf({ listen, wasmModule, filterConfig, accessLog });
        view = new Map([...shared, [LISTENER_TYPE, createCollection([listener])]]);
        views.set(listen, view);
      }
      return view;
    },
  };
}

function plannedWeights(input: ResourceInput, poolId: string): ReadonlyMap<string, number> {
  const row = input.plan.rows.find((row) => row.frontendId === input.frontendId && row.poolId === poolId);
  return new Map(row?.weights.map(({ engineId, weight }) => [engineId, weight]));
}

function steadied(
  planned: ReadonlyMap<string, number>,
  published: ReadonlyMap<string, number> = new Map(),
): ReadonlyMap<string, number> {
  const engines = new Set([...planned.keys(), ...published.keys()]);
  const changes = [...engines].map((id) => Math.abs((planned.get(id) ?? 0) - (published.get(id) ?? 0)));
  return Math.max(...changes) > WEIGHT_TOLERANCE ? planned : published;
}

/** The pool's engines as this frontend sees them, sorted by id; those that it cannot reach are left out. */
function enginesOf(pool: Pool, input: ResourceInput, weights: ReadonlyMap<string, number>): PoolEngine[] {
  const { fleet, previousFleet } = input;
  const states = new Map(input.engines.map((state) => [state.id, state]));

  const now = reachable(fleet, pool.id, input.frontendId);
  const before = previousFleet === undefined ? [] : reachable(previousFleet, pool.id, input.frontendId);
  return union(now, before).map((engine) => {
    const departed = before.find(({ id }) => id === engine.id)?.endpoints ?? [];
    const endpoints = [...new Set([...engine.endpoints, ...departed])].sort();
    return {
      engine: { ...engine, endpoints },
      state: now.includes(engine) ? states.get(engine.id) : undefined,
      weight: weights.get(engine.id) ?? 0,
    };
  });
}

function reachable(fleet: Fleet, poolId: string, frontendId: string): Engine[] {
  const pool = fleet.pools.find(({ id }) => id === poolId);
  const network = fleet.networkSeconds[fleet.frontends.findIndex(({ id }) => id === frontendId)];
  return fleet.engines.filter(
    (engine, index) => pool?.engineIds.includes(engine.id) && (network?.[index] ?? Infinity) < Infinity,
  );
}

/** Both lists by id, the first one's elements where both have one; sorted by id. */
function union<T extends { readonly id: string }>(first: readonly T[], second: readonly T[]): T[] {
  const byId = new Map([...second, ...first].map((item) => [item.id, item]));
  return [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}
