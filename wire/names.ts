// Names that the control server, the filter and Envoy's configuration share. Plain constants: this file is compiled
// by both TypeScript and AssemblyScript.

/** Route `cluster_header`: the pool's cluster. Set or removed by the filter on every request. */
export const CLUSTER_HEADER = 'x-wardrop-cluster';
/** Ordered endpoints for `override_host`; attempt i takes entry i. The endpoint-picker convention. */
export const DESTINATION_HEADER = 'x-gateway-destination-endpoint';
/** Retries granted by the budget; Envoy's own header. */
export const RETRIES_HEADER = 'x-envoy-max-retries';
/** Native steering: what Envoy hashes, 16 hex digits made of key, tenant and salt; absent for requests without a key. */
export const HASH_HEADER = 'x-wardrop-hash';
/** Which time limits hold for a request: one of ROUTES, or absent. Set or removed by the filter on every request. */
export const ROUTE_HEADER = 'x-wardrop-route';
/** Streamed answers to short, medium and long prompts. */
export const ROUTES: string[] = ['stream-short', 'stream-medium', 'stream-long'];
/** Prompts of more tokens, as estimated, are medium and long. */
export const SHORT_PROMPT_TOKENS = 8192;
export const MEDIUM_PROMPT_TOKENS = 32768;
/**
 * Attempts made, in the response (`include_attempt_count_in_response` of the virtual host). Without it the filter
 * cannot see retries: it takes every granted one as used.
 */
export const ATTEMPTS_HEADER = 'x-envoy-attempt-count';

/** Names the model; needed when more than one is served and bodies are not read. */
export const MODEL_HEADER = 'x-wardrop-model';
/** `true`: the request begins a conversation, so that no engine has anything of it; for where its body does not tell. */
export const NEW_HEADER = 'x-wardrop-new';
/** The affinity key, before all other headers that may carry one. */
export const KEY_HEADER = 'x-wardrop-key';
/**
 * Headers that may carry the affinity key, unless configured; the first of this list that is present and not empty
 * counts.
 */
export const KEY_HEADERS: string[] = [
  KEY_HEADER,
  'x-session-id',
  'x-session-affinity',
  'x-claude-code-session-id',
  'session-id',
  'session_id',
  'x-dynamo-session-id',
  'x-litellm-session-id',
  'x-smg-routing-key',
  'x-parent-session-id',
];

/** Most headers that may be configured to carry the key. */
export const MAX_KEY_HEADERS = 16;
/** Fields of a body that may carry the key, in the order that counts unless configured; they come after the headers. */
export const KEY_FIELDS: string[] = [
  'prompt_cache_key',
  'conversation',
  'metadata.user_id',
  'session_id',
  'safety_identifier',
  'user',
];

/**
 * Request headers that steer Envoy, an inner picker or what stands before an engine (llm-d's sidecar connects to
 * whatever address they name), and that no client may set. Listeners of ours remove them
 * before any filter runs; the filter overwrites or removes them as well.
 */
export const CLIENT_STEERING_HEADERS: string[] = [
  CLUSTER_HEADER,
  DESTINATION_HEADER,
  RETRIES_HEADER,
  HASH_HEADER,
  'x-gateway-destination-endpoint-subset',
  'x-prefiller-host-port',
  'target-pod',
  'x-envoy-original-dst-host',
  'x-envoy-retry-on',
  'x-envoy-retry-grpc-on',
  'x-envoy-retriable-status-codes',
  'x-envoy-retriable-header-names',
  'x-envoy-hedge-on-per-try-timeout',
  'x-envoy-upstream-rq-timeout-ms',
  'x-envoy-upstream-rq-per-try-timeout-ms',
  'x-envoy-upstream-alt-stat-name',
  ROUTE_HEADER,
  'x-llm-d-prefiller-host-port',
  'x-encoder-hosts-ports',
  'x-llm-d-encoder-hosts-ports',
  'x-data-parallel-host-port',
  'x-kv-cache-source-host-port',
  'x-llm-d-kv-cache-source-host-port',
];

/** Static cluster of every bootstrap that leads to the control server's sync address. */
export const SYNC_CLUSTER = 'wardrop-sync';
/** Static cluster of every bootstrap that leads to the control server's xDS address. */
export const XDS_CLUSTER = 'wardrop-xds';

/**
 * Version of every snapshot that comes with a bootstrap: older than any that a control server issues, and the sign for
 * the server that this Envoy may still lack the clusters that newer ones name.
 */
export const INLINE_SNAPSHOT_VERSION = 1;

export const SYNC_PATH = '/v1/sync';
/** Tells Envoys whether a control server has a plan, without a token. */
export const SYNC_READY_PATH = '/ready';
export const SYNC_NODE_HEADER = 'x-wardrop-node';
export const SYNC_FRONTEND_HEADER = 'x-wardrop-frontend';
/** Version of the snapshot that the caller holds, decimal; 0 for none. */
export const SYNC_SNAPSHOT_HEADER = 'x-wardrop-snapshot';
/** Up to where the caller knows the keys that other Envoys have displaced, decimal; absent: it does not want to. */
export const SYNC_DISPLACED_HEADER = 'x-wardrop-displaced';

/** Answered by the filter itself: 200 once a snapshot is installed, 503 before. */
export const READY_PATH = '/wardrop/ready';

/** Prefix of the filter state that explains a request to access logs. */
export const LOG_STATE = 'wasm.wardrop.';

/**
 * Response header that explains the decision, as a structured field (RFC 8941, an item with parameters): the reason, who
 * served, by which plan, and the mode where the decision was not followed:
 * `planned; engine="a"; plan="0123456789abcdef"; mode=observe`. One header, as each costs.
 */
export const DECISION_HEADER = 'x-wardrop';
