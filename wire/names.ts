// Names that the control server, the filter and Envoy's configuration share. Plain constants: this file is compiled
// by both TypeScript and AssemblyScript.

/** Route `cluster_header`: the pool's cluster. Set or removed by the filter on every request. */
export const CLUSTER_HEADER = 'x-wardrop-cluster';
/** Ordered endpoints for `override_host`; attempt i takes entry i. The endpoint-picker convention. */
export const DESTINATION_HEADER = 'x-gateway-destination-endpoint';
/** Retries granted by the budget; Envoy's own header. */
export const RETRIES_HEADER = 'x-envoy-max-retries';

/** Static cluster of every bootstrap that leads to the control server's sync address. */
export const SYNC_CLUSTER = 'wardrop-sync';
/** Static cluster of every bootstrap that leads to the control server's xDS address. */
export const XDS_CLUSTER = 'wardrop-xds';

export const SYNC_PATH = '/v1/sync';
export const SYNC_NODE_HEADER = 'x-wardrop-node';
export const SYNC_FRONTEND_HEADER = 'x-wardrop-frontend';
/** Version of the snapshot that the caller holds, decimal; 0 for none. */
export const SYNC_SNAPSHOT_HEADER = 'x-wardrop-snapshot';

/** Answered by the filter itself: 200 once a snapshot is installed, 503 before. */
export const READY_PATH = '/wardrop/ready';

/** Response headers that explain the decision. */
export const ENGINE_HEADER = 'x-wardrop-engine';
export const PLAN_HEADER = 'x-wardrop-plan';
export const REASON_HEADER = 'x-wardrop-reason';
