import { fromBinary, type Message } from '@bufbuild/protobuf';
import type { GenMessage } from '@bufbuild/protobuf/codegenv2';
import { type Any, AnySchema, anyPack, anyUnpack } from '@bufbuild/protobuf/wkt';
import { INLINE_SNAPSHOT_VERSION } from '../../wire/names.js';
import type { SnapshotView } from '../../wire/snapshot-view.js';
import { encodeSnapshot } from '../../wire/snapshot-writer.js';
import {
  type Cluster,
  Cluster_DiscoveryType,
  ClusterSchema,
} from '../gen/envoy/config/cluster/v3/cluster_pb.js';
import { TypedExtensionConfigSchema } from '../gen/envoy/config/core/v3/extension_pb.js';
import { ClusterLoadAssignmentSchema } from '../gen/envoy/config/endpoint/v3/endpoint_pb.js';
import { type Listener, ListenerSchema } from '../gen/envoy/config/listener/v3/listener_pb.js';
import { RouteConfigurationSchema } from '../gen/envoy/config/route/v3/route_pb.js';
import { HttpConnectionManagerSchema } from '../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js';
import type { Resource, View } from './protocol/resource.js';
import {
  CLUSTER_TYPE,
  ENDPOINTS_TYPE,
  EXTENSION_TYPE,
  LISTENER_TYPE,
  ROUTE_TYPE,
} from './protocol/type-url.js';
import { LISTENER_NAME } from './resources/listener.js';
import { ROUTES_NAME } from './resources/routes.js';

/** What a bootstrap has in it so that Envoy can serve without a control server. */
export interface StaticResources {
  readonly clusters: Cluster[];
  readonly listeners: Listener[];
}

/**
 * Envoy never updates a static cluster. They have names of their own, so that the control server can bring the pools'
 * real clusters, and snapshots that name these, when it is there.
 */
const PREFIX = 'static/';

/** The snapshot for a bootstrap: it leads to the clusters below, and any other snapshot replaces it. */
export function inlineSnapshot(view: SnapshotView): Uint8Array {
  return encodeSnapshot({
    ...view,
    version: INLINE_SNAPSHOT_VERSION,
    pools: view.pools.map((pool) => ({ ...pool, cluster: PREFIX + pool.cluster })),
  });
}

/** The clusters of a view with their endpoints, and its listeners with filter and routes. */
export function staticResources(view: View): StaticResources {
  const of = (type: string) => [...view.get(type)!.resources.values()];
  const assignments = view.get(ENDPOINTS_TYPE)!.resources;
  const routes = view.get(ROUTE_TYPE)!.resources.get(ROUTES_NAME)!;
  const filters = view.get(EXTENSION_TYPE)!.resources;
  return {
    clusters: of(CLUSTER_TYPE).map((cluster) => staticCluster(cluster, assignments.get(cluster.name)!)),
    listeners: [staticListener(view.get(LISTENER_TYPE)!.resources.get(LISTENER_NAME)!, routes, filters)],
  };
}

function staticCluster(resource: Resource, endpoints: Resource): Cluster {
  const cluster = decode(ClusterSchema, resource);
  const name = PREFIX + cluster.name;
  cluster.name = name;
  cluster.altStatName = PREFIX + cluster.altStatName;
  cluster.clusterDiscoveryType = { case: 'type', value: Cluster_DiscoveryType.STATIC };
  delete cluster.edsClusterConfig;
  cluster.loadAssignment = decode(ClusterLoadAssignmentSchema, endpoints);
  cluster.loadAssignment.clusterName = name;
  return cluster;
}

function staticListener(
  resource: Resource,
  routes: Resource,
  filters: ReadonlyMap<string, Resource>,
): Listener {
  const listener = decode(ListenerSchema, resource);
  const routeConfig = decode(RouteConfigurationSchema, routes);
  for (const filter of listener.filterChains.flatMap(({ filters }) => filters)) {
    if (filter.configType.case !== 'typedConfig') continue;
    const manager = anyUnpack(filter.configType.value, HttpConnectionManagerSchema);
    if (manager === undefined) continue;
    manager.routeSpecifier = { case: 'routeConfig', value: routeConfig };
    for (const httpFilter of manager.httpFilters) {
      if (httpFilter.configType.case !== 'configDiscovery') continue;
      const { typedConfig } = decode(TypedExtensionConfigSchema, filters.get(httpFilter.name)!);
      httpFilter.configType = { case: 'typedConfig', value: typedConfig! };
    }
    filter.configType.value = anyPack(HttpConnectionManagerSchema, manager);
  }
  return listener;
}

function decode<T extends Message>(schema: GenMessage<T>, { any }: Resource): T {
  const packed: Any = fromBinary(AnySchema, any);
  return anyUnpack(packed, schema)!;
}
