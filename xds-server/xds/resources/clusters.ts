import { CLUSTER_HEADER, DESTINATION_HEADER } from '../../../wire/names.js';
import type { Pool } from '../../fleet/fleet.js';
import { Cluster_DiscoveryType, ClusterSchema } from '../../gen/envoy/config/cluster/v3/cluster_pb.js';
import { RoutingPriority } from '../../gen/envoy/config/core/v3/base_pb.js';
import { ApiVersion } from '../../gen/envoy/config/core/v3/config_source_pb.js';
import { HeaderMutationSchema } from '../../gen/envoy/extensions/filters/http/header_mutation/v3/header_mutation_pb.js';
import { UpstreamCodecSchema } from '../../gen/envoy/extensions/filters/http/upstream_codec/v3/upstream_codec_pb.js';
import { MaglevSchema } from '../../gen/envoy/extensions/load_balancing_policies/maglev/v3/maglev_pb.js';
import { OverrideHostSchema } from '../../gen/envoy/extensions/load_balancing_policies/override_host/v3/override_host_pb.js';
import { HttpProtocolOptionsSchema } from '../../gen/envoy/extensions/upstreams/http/v3/http_protocol_options_pb.js';
import type { Resource } from '../protocol/resource.js';
import { removals } from './headers.js';
import { duration, extension, filter, pack, resource } from './pack.js';

/** Key of the options of upstream HTTP connections, in any cluster. */
export const HTTP_PROTOCOL_OPTIONS = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';

/**
 * Connections, requests and retries in parallel per cluster and Envoy. Envoy's defaults (1024, and 3 retries) are for
 * short requests; a stream of tokens holds its connection for minutes. Load is limited by the plan and retries by the
 * filter's budget, so this is only a bound against runaways.
 */
const MAX_PARALLEL = 100_000;

/**
 * Engines on uvicorn close idle connections after 5 s; a request sent at that moment would be lost. Ours go first.
 */
const UPSTREAM_IDLE_MS = 4000;

const built = new WeakMap<Pool, { readonly connectTimeoutMs: number; readonly cluster: Resource }>();

/** The cluster of a pool; built once for all frontends and plans. */
export function clusterOf(pool: Pool, connectTimeoutMs: number): Resource {
  const known = built.get(pool);
  if (known?.connectTimeoutMs === connectTimeoutMs) return known.cluster;
  const cluster = buildCluster(pool, connectTimeoutMs);
  built.set(pool, { connectTimeoutMs, cluster });
  return cluster;
}

/** The filter names the endpoint, and what it leaves open is spread by the weights of EDS. */
function buildCluster(pool: Pool, connectTimeoutMs: number): Resource {
  const maglev = extension('envoy.load_balancing_policies.maglev', MaglevSchema, {});
  const overrideHost = extension('envoy.load_balancing_policies.override_host', OverrideHostSchema, {
    overrideHostSources: [{ header: DESTINATION_HEADER }],
    fallbackPolicy: { policies: [{ typedExtensionConfig: maglev }] },
  });
  return resource(
    pool.id,
    ClusterSchema,
    {
      name: pool.id,
      clusterDiscoveryType: { case: 'type', value: Cluster_DiscoveryType.EDS },
      edsClusterConfig: {
        serviceName: pool.id,
        edsConfig: {
          resourceApiVersion: ApiVersion.V3,
          configSourceSpecifier: { case: 'ads', value: {} },
        },
      },
      connectTimeout: duration(connectTimeoutMs),
      loadBalancingPolicy: { policies: [{ typedExtensionConfig: overrideHost }] },
      // Nobody ready: trying one is better than refusing. All hosts of a pool are eligible, so that breaks no need.
      commonLbConfig: { healthyPanicThreshold: { value: 1 } },
      circuitBreakers: {
        thresholds: [RoutingPriority.DEFAULT, RoutingPriority.HIGH].map((priority) => ({
          priority,
          maxConnections: MAX_PARALLEL,
          maxPendingRequests: MAX_PARALLEL,
          maxRequests: MAX_PARALLEL,
          maxRetries: MAX_PARALLEL,
        })),
      },
      typedExtensionProtocolOptions: { [HTTP_PROTOCOL_OPTIONS]: httpOptions() },
    },
    [pool.id],
  );
}

/** HTTP/1.1 to engines, without the headers that steered the request here. */
function httpOptions() {
  return pack(HttpProtocolOptionsSchema, {
    commonHttpProtocolOptions: { idleTimeout: duration(UPSTREAM_IDLE_MS) },
    upstreamProtocolOptions: {
      case: 'explicitHttpConfig',
      value: { protocolConfig: { case: 'httpProtocolOptions', value: {} } },
    },
    // A route removes headers before the host is chosen, so that the override would be lost; this runs after.
    httpFilters: [
      filter('envoy.filters.http.header_mutation', HeaderMutationSchema, {
        mutations: { requestMutations: removals([CLUSTER_HEADER, DESTINATION_HEADER]) },
      }),
      filter('envoy.filters.http.upstream_codec', UpstreamCodecSchema, {}),
    ],
  });
}
