import { isIP } from 'node:net';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { SYNC_CLUSTER, SYNC_READY_PATH, XDS_CLUSTER } from '../../wire/names.js';
import type { HostPort } from '../fleet/address.js';
import { Cluster_DiscoveryType, type ClusterSchema } from '../gen/envoy/config/cluster/v3/cluster_pb.js';
import { HeaderMutationSchema } from '../gen/envoy/extensions/filters/http/header_mutation/v3/header_mutation_pb.js';
import { UpstreamCodecSchema } from '../gen/envoy/extensions/filters/http/upstream_codec/v3/upstream_codec_pb.js';
import { SubjectAltNameMatcher_SanType } from '../gen/envoy/extensions/transport_sockets/tls/v3/common_pb.js';
import { UpstreamTlsContextSchema } from '../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.js';
import { HttpProtocolOptionsSchema } from '../gen/envoy/extensions/upstreams/http/v3/http_protocol_options_pb.js';
import { socketAddress } from './resources/address.js';
import { HTTP_PROTOCOL_OPTIONS, TLS_VERSIONS } from './resources/clusters.js';
import { headerOf } from './resources/headers.js';
import { duration, filter, pack } from './resources/pack.js';

/** How Envoy checks the control server and shows who it is; paths are those of Envoy's machine. */
export interface BootstrapTls {
  /** PEM file of the authority that signed the control server's certificate. */
  readonly caFile: string;
  /** Name in the control servers' certificates; default: the host of each. */
  readonly serverName?: string;
  /** Envoy's own certificate and key, where the control server asks for one. */
  readonly client?: { readonly certificateFile: string; readonly keyFile: string };
}

export interface BootstrapTarget {
  /** An IP address or a name to resolve. */
  readonly host: string;
  readonly port: number;
  /** Absent: plaintext. */
  readonly tls?: BootstrapTls;
}

/** Where control servers are: the first, and others that Envoy calls while that one is not ready. */
export interface ControlServers {
  /** Where the control server serves xDS, and the token that it asks for, if any. */
  readonly xds: BootstrapTarget & { readonly token?: string };
  /** Where the control server hands out snapshots. */
  readonly sync: BootstrapTarget;
  /** Other control servers, each on one host; Envoy calls the first one that is ready. */
  readonly standbys?: readonly { readonly xds: HostPort; readonly sync: HostPort }[];
}

type ClusterInit = MessageInitShape<typeof ClusterSchema>;

const mebibyte = 2 ** 20;

/** Of several control servers, one that is not ready is left out, with all that goes to it, within about 3 s. */
const readiness = {
  interval: duration(3000),
  // The ones that nobody has called so far, too.
  noTrafficInterval: duration(3000),
  unhealthyEdgeInterval: duration(500),
  timeout: duration(2000),
  unhealthyThreshold: 2,
  healthyThreshold: 1,
};

/** The clusters by which Envoy finds the control servers. */
export function controlClusters({ xds, sync, standbys = [] }: ControlServers): readonly ClusterInit[] {
  const xdsServers = [xds, ...standbys.map((server) => server.xds)];
  const syncServers = [sync, ...standbys.map((server) => server.sync)];
  const readyPorts = syncServers.map(({ port }) => port);
  return [
    withXdsProtocol(cluster(XDS_CLUSTER, xdsServers, readyPorts, xds.tls), xds.token),
    cluster(SYNC_CLUSTER, syncServers, readyPorts, sync.tls),
  ];
}

function withXdsProtocol(init: ClusterInit, token: string | undefined): ClusterInit {
  const http = pack(HttpProtocolOptionsSchema, {
    upstreamProtocolOptions: {
      case: 'explicitHttpConfig',
      value: {
        protocolConfig: {
          case: 'http2ProtocolOptions',
          value: {
            // A control server that vanished without a word is noticed, and another one found.
            connectionKeepalive: { interval: duration(30_000), timeout: duration(5000) },
            // Far servers would otherwise wait a round trip for every 64 KiB.
            initialStreamWindowSize: 4 * mebibyte,
            initialConnectionWindowSize: 8 * mebibyte,
          },
        },
      },
    },
    httpFilters: token === undefined ? [] : tokenFilters(token),
  });
  return { ...init, typedExtensionProtocolOptions: { [HTTP_PROTOCOL_OPTIONS]: http } };
}

/**
 * Adds the token to every request of the cluster. Not by the `initial_metadata` of the gRPC service: Envoy checks its
 * values as formats and then sends them as they stand, so that a `%` cannot be said there.
 */
function tokenFilters(token: string) {
  return [
    filter('envoy.filters.http.header_mutation', HeaderMutationSchema, {
      mutations: {
        requestMutations: [
          {
            action: {
              case: 'append',
              value: headerOf('authorization', `Bearer ${token.replaceAll('%', '%%')}`),
            },
          },
        ],
      },
    }),
    filter('envoy.filters.http.upstream_codec', UpstreamCodecSchema, {}),
  ];
}

/** `readyPorts`: where each of several servers says whether it is ready. */
function cluster(
  name: string,
  servers: readonly HostPort[],
  readyPorts: readonly number[],
  tls: BootstrapTls | undefined,
): ClusterInit {
  const hosts = servers.map(({ host }) => host);
  const hasStandby = servers.length > 1;
  return {
    name,
    clusterDiscoveryType: {
      case: 'type',
      value: hosts.every((host) => isIP(host) !== 0)
        ? Cluster_DiscoveryType.STATIC
        : Cluster_DiscoveryType.STRICT_DNS,
    },
    connectTimeout: duration(1000),
    loadAssignment: {
      clusterName: name,
      endpoints: servers.map(({ host, port }, priority) => ({
        priority,
        lbEndpoints: [
          {
            hostIdentifier: {
              case: 'endpoint',
              value: {
                address: socketAddress(host, port),
                ...(hasStandby && {
                  healthCheckConfig: { portValue: readyPorts[priority]!, hostname: host },
                }),
              },
            },
          },
        ],
      })),
    },
    ...(hasStandby && {
      healthChecks: [
        {
          ...readiness,
          healthChecker: { case: 'httpHealthCheck', value: { path: SYNC_READY_PATH } },
          tlsOptions: { alpnProtocols: ['http/1.1'] },
        },
      ],
      closeConnectionsOnHostHealthFailure: true,
    }),
    ...(tls !== undefined && { transportSocket: transportSocket(hosts, tls) }),
  };
}

function transportSocket(hosts: readonly string[], tls: BootstrapTls) {
  const names = tls.serverName === undefined ? hosts : [tls.serverName];
  return filter('envoy.transport_sockets.tls', UpstreamTlsContextSchema, {
    sni: names.find((name) => isIP(name) === 0) ?? '',
    commonTlsContext: {
      tlsParams: TLS_VERSIONS,
      tlsCertificates: tls.client === undefined ? [] : [ownCertificate(tls.client)],
      validationContextType: {
        case: 'validationContext',
        value: {
          trustedCa: file(tls.caFile),
          // A trusted authority alone would let any of its certificates stand in for the control server.
          matchTypedSubjectAltNames: names.map((name) => ({
            sanType:
              isIP(name) === 0 ? SubjectAltNameMatcher_SanType.DNS : SubjectAltNameMatcher_SanType.IP_ADDRESS,
            matcher: { matchPattern: { case: 'exact' as const, value: name } },
          })),
        },
      },
    },
  });
}

function ownCertificate(client: NonNullable<BootstrapTls['client']>) {
  return { certificateChain: file(client.certificateFile), privateKey: file(client.keyFile) };
}

function file(name: string) {
  return { specifier: { case: 'filename' as const, value: name } };
}
