import type { MessageInitShape } from '@bufbuild/protobuf';
import { CLUSTER_HEADER, DESTINATION_HEADER, HASH_HEADER } from '../../../wire/names.js';
import type { Pool } from '../../fleet/fleet.js';
import type { Upstream, UpstreamAuth, UpstreamTls } from '../../fleet/upstream.js';
import { Cluster_DiscoveryType, ClusterSchema } from '../../gen/envoy/config/cluster/v3/cluster_pb.js';
import type { HeaderMutationSchema as MutationSchema } from '../../gen/envoy/config/common/mutation_rules/v3/mutation_rules_pb.js';
import { RoutingPriority } from '../../gen/envoy/config/core/v3/base_pb.js';
import { ApiVersion } from '../../gen/envoy/config/core/v3/config_source_pb.js';
import { HeaderMutationSchema } from '../../gen/envoy/extensions/filters/http/header_mutation/v3/header_mutation_pb.js';
import { UpstreamCodecSchema } from '../../gen/envoy/extensions/filters/http/upstream_codec/v3/upstream_codec_pb.js';
import { MaglevSchema } from '../../gen/envoy/extensions/load_balancing_policies/maglev/v3/maglev_pb.js';
import { OverrideHostSchema } from '../../gen/envoy/extensions/load_balancing_policies/override_host/v3/override_host_pb.js';
import {
  RingHash_HashFunction,
  RingHashSchema,
} from '../../gen/envoy/extensions/load_balancing_policies/ring_hash/v3/ring_hash_pb.js';
import { RoundRobinSchema } from '../../gen/envoy/extensions/load_balancing_policies/round_robin/v3/round_robin_pb.js';
import {
  SubjectAltNameMatcher_SanType,
  TlsParameters_TlsProtocol,
} from '../../gen/envoy/extensions/transport_sockets/tls/v3/common_pb.js';
import { UpstreamTlsContextSchema } from '../../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.js';
import { HttpProtocolOptionsSchema } from '../../gen/envoy/extensions/upstreams/http/v3/http_protocol_options_pb.js';
import type { Resource } from '../protocol/resource.js';
import type { EnvoyFeatures } from './envoy-features.js';
import { headerOf, removals } from './headers.js';
import { duration, extension, filter, pack, resource } from './pack.js';
import type { Steering } from './steering.js';

/** Key of the options of upstream HTTP connections, in any cluster. */
export const HTTP_PROTOCOL_OPTIONS = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';

/**
 * Connections, requests and retries in parallel per cluster and Envoy. Envoy's defaults (1024, and 3 retries) are for
 * short requests; a stream of tokens holds its connection for minutes. Load is limited by the plan and retries by the
 * filter's budget, so this is only a bound against runaways.
 */
const MAX_PARALLEL = 100_000;

/** Points of a ring; weights are kept to about one in as many. */
const RING_SIZE = 65_536n;

/**
 * Engines on uvicorn close idle connections after 5 s; a request sent at that moment would be lost. Ours go first.
 */
const UPSTREAM_IDLE_MS = 4000;

/** For so long an engine may not answer an attempt to connect before the next one is tried. */
const CONNECT_TIMEOUT_MS = 1000;

/**
 * Between two tokens, and before an answer that comes as a whole, nothing is sent for minutes. What translates addresses on the
 * way forgets such connections, some after four minutes, and a machine that is gone says nothing: both look like an engine that
 * thinks. So it is asked after a minute of silence, and is gone when it has not answered for another.
 */
const TCP_KEEPALIVE = { keepaliveTime: 60, keepaliveInterval: 15, keepaliveProbes: 4 };

export interface ClusterOptions extends Omit<EnvoyFeatures, 'wholeBodies'> {
  /** How its engines are spoken to; plain HTTP when absent. */
  readonly upstream?: Upstream;
}

const built = new WeakMap<Pool, Map<string, Resource>>();

/** The cluster of a pool; built once for all frontends and plans. */
export function clusterOf(pool: Pool, options: ClusterOptions): Resource {
  const { steering, retryBudgetInterval, upstream } = options;
  const key = JSON.stringify([steering, retryBudgetInterval, upstream]);
  let variants = built.get(pool);
  if (variants === undefined) {
    variants = new Map();
    built.set(pool, variants);
  }
  let cluster = variants.get(key);
  if (cluster === undefined) {
    cluster = buildCluster(pool, options);
    variants.set(key, cluster);
  }
  return cluster;
}

function buildCluster(pool: Pool, options: ClusterOptions): Resource {
  const isNative = options.steering !== 'override-host';
  return resource(
    pool.id,
    ClusterSchema,
    {
      name: pool.id,
      altStatName: statNameOf(pool.id),
      clusterDiscoveryType: { case: 'type', value: Cluster_DiscoveryType.EDS },
      edsClusterConfig: {
        serviceName: pool.id,
        edsConfig: {
          resourceApiVersion: ApiVersion.V3,
          configSourceSpecifier: { case: 'ads', value: {} },
        },
      },
      connectTimeout: duration(CONNECT_TIMEOUT_MS),
      upstreamConnectionOptions: { tcpKeepalive: TCP_KEEPALIVE },
      loadBalancingPolicy: policies(loadBalancers[options.steering]()),
      // Nobody ready: trying one is better than refusing. All hosts of a pool are eligible, so that breaks no need.
      // What is pushed within a second of another push would wait for that second to be over, readiness too (seen before 1.40).
      commonLbConfig: { healthyPanicThreshold: { value: 1 }, updateMergeWindow: duration(0) },
      circuitBreakers: {
        thresholds: [RoutingPriority.DEFAULT, RoutingPriority.HIGH].map((priority) => ({
          priority,
          maxConnections: MAX_PARALLEL,
          maxPendingRequests: MAX_PARALLEL,
          maxRequests: MAX_PARALLEL,
          ...(isNative ? { retryBudget: retryBudget(options) } : { maxRetries: MAX_PARALLEL }),
        })),
      },
      ...(isNative && { outlierDetection }),
      typedExtensionProtocolOptions: {
        [HTTP_PROTOCOL_OPTIONS]: httpOptions(options.steering, options.upstream?.auth),
      },
      ...(options.upstream?.tls && { transportSocket: tlsSocket(options.upstream.tls) }),
    },
    [pool.id],
  );
}

/**
 * Envoy's names of statistics end a cluster's name at its first dot, and many models have one: Prometheus would get
 * metrics that nobody knows, and pools that are alike before the dot under one label.
 */
function statNameOf(name: string): string {
  return name.replaceAll('.', '_');
}

const policies = (typedExtensionConfig: ReturnType<typeof extension>) => ({
  policies: [{ typedExtensionConfig }],
});

/**
 * With `override-host` the filter names the host; what it leaves open goes to a maglev table, which keeps the keys of
 * hosts that stay. Native steering leaves everything open.
 */
const loadBalancers: Record<Steering, () => ReturnType<typeof extension>> = {
  'override-host': () =>
    extension('envoy.load_balancing_policies.override_host', OverrideHostSchema, {
      overrideHostSources: [{ header: DESTINATION_HEADER }],
      fallbackPolicy: policies(loadBalancers.maglev()),
    }),
  maglev: () => extension('envoy.load_balancing_policies.maglev', MaglevSchema, {}),
  'ring-hash': () =>
    extension('envoy.load_balancing_policies.ring_hash', RingHashSchema, {
      minimumRingSize: RING_SIZE,
      // Envoy's default too, but gRPC clients want it said.
      hashFunction: RingHash_HashFunction.XX_HASH,
    }),
  'round-robin': () => extension('envoy.load_balancing_policies.round_robin', RoundRobinSchema, {}),
};

/** The filter has no say in native steering, so that Envoy itself must limit retries. */
function retryBudget({ retryBudgetInterval }: ClusterOptions) {
  return {
    budgetPercent: { value: 20 },
    minRetryConcurrency: 3,
    // Of the requests that came in lately: those that are active grow with the length of streams.
    ...(retryBudgetInterval && { budgetInterval: duration(10_000) }),
  };
}

/** Only for native steering: hosts that the filter names are tried whatever Envoy thinks of them. */
const outlierDetection = {
  consecutive5xx: 5,
  interval: duration(1000),
  baseEjectionTime: duration(10_000),
  maxEjectionPercent: 50,
  // On by default, and no fault of a host that answers harder requests than the others.
  enforcingSuccessRate: 0,
};

/** By itself Envoy ends at 1.2 when it is a client: not all servers speak that, and hardly any takes a P-384 certificate with it. */
export const TLS_VERSIONS = {
  tlsMinimumProtocolVersion: TlsParameters_TlsProtocol.TLSv1_2,
  tlsMaximumProtocolVersion: TlsParameters_TlsProtocol.TLSv1_3,
};

/** The certificate must be for the name that is asked for, whatever the address. */
function tlsSocket({ sni, ca, client }: UpstreamTls) {
  return filter('envoy.transport_sockets.tls', UpstreamTlsContextSchema, {
    sni,
    commonTlsContext: {
      tlsParams: TLS_VERSIONS,
      ...(client && {
        tlsCertificates: [{ certificateChain: inline(client.cert), privateKey: inline(client.key) }],
      }),
      validationContextType: {
        case: 'validationContext',
        value: {
          ...(ca === undefined ? { systemRootCerts: {} } : { trustedCa: inline(ca) }),
          matchTypedSubjectAltNames: [
            {
              sanType: SubjectAltNameMatcher_SanType.DNS,
              matcher: { matchPattern: { case: 'exact', value: sni } },
            },
          ],
        },
      },
    },
  });
}

function inline(value: string) {
  return { specifier: { case: 'inlineString' as const, value } };
}

/** Engines see our credentials and never those that clients have for us. */
function authorization({ header, value }: UpstreamAuth): MessageInitShape<typeof MutationSchema>[] {
  // A percent sign would begin a variable.
  const escaped = value.replaceAll('%', '%%');
  return [{ action: { case: 'append', value: headerOf(header, escaped) } }];
}

/** HTTP/1.1 to engines, without the headers that steered the request here. */
function httpOptions(steering: Steering, auth: UpstreamAuth | undefined) {
  return pack(HttpProtocolOptionsSchema, {
    commonHttpProtocolOptions: { idleTimeout: duration(UPSTREAM_IDLE_MS) },
    upstreamProtocolOptions: {
      case: 'explicitHttpConfig',
      value: { protocolConfig: { case: 'httpProtocolOptions', value: {} } },
    },
    // A route removes headers before the host is chosen, by which the override or the hash would be lost; this runs after.
    // To look for a header that is not there costs more than to remove one, so no others.
    httpFilters: [
      filter('envoy.filters.http.header_mutation', HeaderMutationSchema, {
        mutations: {
          requestMutations: [
            ...removals([CLUSTER_HEADER, steering === 'override-host' ? DESTINATION_HEADER : HASH_HEADER]),
            ...(auth === undefined ? [] : authorization(auth)),
          ],
        },
      }),
      filter('envoy.filters.http.upstream_codec', UpstreamCodecSchema, {}),
    ],
  });
}
