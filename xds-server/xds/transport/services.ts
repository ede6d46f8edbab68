import type { Protocol } from '../protocol/subscription.js';
import {
  CLUSTER_TYPE,
  ENDPOINTS_TYPE,
  EXTENSION_TYPE,
  LISTENER_TYPE,
  ROUTE_TYPE,
  RUNTIME_TYPE,
} from '../protocol/type-url.js';

/** A streaming method of an xDS service. */
export interface DiscoveryMethod {
  /** `/package.Service/Method`. */
  readonly path: string;
  readonly protocol: Protocol;
  /** The only type on this method; undefined where types are aggregated. */
  readonly typeUrl: string | undefined;
}

const services: readonly (readonly [service: string, methodSuffix: string, typeUrl: string | undefined])[] = [
  ['envoy.service.discovery.v3.AggregatedDiscoveryService', 'AggregatedResources', undefined],
  ['envoy.service.cluster.v3.ClusterDiscoveryService', 'Clusters', CLUSTER_TYPE],
  ['envoy.service.endpoint.v3.EndpointDiscoveryService', 'Endpoints', ENDPOINTS_TYPE],
  ['envoy.service.extension.v3.ExtensionConfigDiscoveryService', 'ExtensionConfigs', EXTENSION_TYPE],
  ['envoy.service.listener.v3.ListenerDiscoveryService', 'Listeners', LISTENER_TYPE],
  ['envoy.service.route.v3.RouteDiscoveryService', 'Routes', ROUTE_TYPE],
  ['envoy.service.runtime.v3.RuntimeDiscoveryService', 'Runtime', RUNTIME_TYPE],
];

/** Aggregated and separate discovery, each as state of the world and incremental. */
export const discoveryMethods: readonly DiscoveryMethod[] = services.flatMap(([service, suffix, typeUrl]) => [
  { path: `/${service}/Stream${suffix}`, protocol: 'sotw', typeUrl },
  { path: `/${service}/Delta${suffix}`, protocol: 'delta', typeUrl },
]);
