const prefix = 'type.googleapis.com/envoy.config.';

export const CLUSTER_TYPE = `${prefix}cluster.v3.Cluster`;
export const ENDPOINTS_TYPE = `${prefix}endpoint.v3.ClusterLoadAssignment`;
export const EXTENSION_TYPE = `${prefix}core.v3.TypedExtensionConfig`;
export const LISTENER_TYPE = `${prefix}listener.v3.Listener`;
export const ROUTE_TYPE = `${prefix}route.v3.RouteConfiguration`;
export const RUNTIME_TYPE = 'type.googleapis.com/envoy.service.runtime.v3.Runtime';

/**
 * Make before break: clusters, then their endpoints, then filters, then the listeners that use these, then the routes
 * that lead to the clusters; runtime values depend on nothing. Other types follow in the order in which the client asked for them.
 */
export const sendOrder: readonly string[] = [
  CLUSTER_TYPE,
  ENDPOINTS_TYPE,
  EXTENSION_TYPE,
  LISTENER_TYPE,
  ROUTE_TYPE,
  RUNTIME_TYPE,
];

/**
 * Types whose state-of-the-world responses are complete, so that absence means deletion, and whose first request
 * without names asks for everything.
 */
export const isFullState = (typeUrl: string): boolean =>
  typeUrl === CLUSTER_TYPE || typeUrl === LISTENER_TYPE;

/**
 * Types of which a client keeps what it has, whatever there is: it is never told that one is gone. Without its filter, a
 * listener answers 500, also one that drains, and no client says when that has ended.
 */
export const isKept = (typeUrl: string): boolean => typeUrl === EXTENSION_TYPE;

/** Where the references of a resource point: a cluster names its endpoints, a listener its routes. */
export const referencedType: ReadonlyMap<string, string> = new Map([
  [CLUSTER_TYPE, ENDPOINTS_TYPE],
  [LISTENER_TYPE, ROUTE_TYPE],
]);

/** Break last: a resource may leave only when nothing that can name it waits for the client any more. */
export const removalWaitsFor: ReadonlyMap<string, readonly string[]> = new Map([
  [CLUSTER_TYPE, [LISTENER_TYPE, ROUTE_TYPE]],
  [ENDPOINTS_TYPE, [CLUSTER_TYPE]],
  [ROUTE_TYPE, [LISTENER_TYPE]],
]);

/** Last part of a type URL, to call the type by. */
export function shortType(typeUrl: string): string {
  return typeUrl.slice(typeUrl.lastIndexOf('.') + 1);
}
