// The opponents' part of the bootstrap: static listeners and clusters beside what the control server delivers, so that
// all variants share one Envoy, one worker and one core. Their listeners are Wardrop's own with another filter in place
// of the filter, so that what differs is the filter: the protection of steering headers and the limits for long streams
// are in all of them.

import { FILTER } from './modules.js';
import type { CFilters } from './opponents.js';
import type { Ports } from './ports.js';

const TYPE = 'type.googleapis.com/envoy.';
/** Answers that the filter in C reads between two ticks: as many as Wardrop's does of one engine. */
const MEASURED_PER_TICK = 10;
const DESTINATION = 'x-gateway-destination-endpoint';

/** A Unix socket is the cheapest way to a picker. */
export interface Sockets {
  readonly headers: string;
  readonly json: string;
}

export interface Bootstrap {
  readonly static_resources: {
    readonly clusters: readonly object[];
    readonly listeners?: readonly Listener[];
  };
}

interface Listener {
  readonly filter_chains: readonly [
    { readonly filters: readonly [{ readonly typed_config: ConnectionManager }] },
  ];
}

interface ConnectionManager {
  readonly route_config: { readonly virtual_hosts: readonly [{ readonly routes: readonly Route[] }] };
}

interface Route {
  /** None where Envoy answers itself. */
  readonly route?: { readonly cluster_header?: string };
}

/** A bootstrap that takes everything from the control server, and one that has it all in itself. */
export interface Bootstraps {
  readonly dynamic: Bootstrap;
  readonly complete: Bootstrap;
}

/** Adds the opponents to what `wardrop bootstrap` printed; `cFilters` are the modules in C, if there are any. */
export function withOpponents(
  { dynamic, complete }: Bootstraps,
  ports: Ports,
  sockets: Sockets,
  cFilters: CFilters | undefined,
): object {
  const own = complete.static_resources.listeners![0]!;
  const like = (name: string, port: number, cluster: string, ...filters: object[]) =>
    listener(name, port, likeOwn(own, name, cluster, filters));
  const engines = [0, 1, 2, 3].map((index) => ({
    address: '127.0.0.1',
    port_value: ports.engines[0] + index,
  }));
  const settings = `100,0,${MEASURED_PER_TICK},${ports.engines[0]}`;
  const listeners = [
    listener('defaults', ports.defaults, minimal('round-robin')),
    like('none', ports.none, 'round-robin'),
    like('maglev', ports.maglev, 'maglev'),
    like('ext-proc', ports.extProc, 'override', extProc('picker-headers', 'NONE')),
    like('ext-proc-body', ports.extProcBody, 'override', extProc('picker-json', 'BUFFERED')),
    ...(cFilters
      ? [
          like('c', ports.c, 'override', wasm('c', cFilters.same, settings)),
          like('bare', ports.bare, 'override', wasm('bare', cFilters.bare, '')),
          like('bare-body', ports.bareBody, 'override', wasm('bare-body', cFilters.bare, 'wait')),
        ]
      : []),
  ];
  const clusters = [
    cluster('round-robin', engines.map(socketAddress), { lb_policy: 'ROUND_ROBIN' }),
    cluster('maglev', engines.map(socketAddress), { lb_policy: 'MAGLEV' }),
    cluster('override', engines.map(socketAddress), override, [strip, UPSTREAM_CODEC]),
    picker('picker-headers', sockets.headers),
    picker('picker-json', sockets.json),
  ];
  return {
    ...dynamic,
    static_resources: {
      ...dynamic.static_resources,
      listeners,
      clusters: [...dynamic.static_resources.clusters, ...clusters],
    },
  };
}

/**
 * An Envoy by itself with one listener, with Wardrop's filter if there is a configuration for it, and one cluster for its
 * requests. The filter decides, but the route leads to that cluster whatever it says.
 */
export function smallBootstrap(ports: Ports, filter: string | undefined, syncCluster: string): object {
  const at = (port: number) => ({ address: '127.0.0.1', port_value: port });
  const manager = minimal('engines');
  const http_filters = [...(filter === undefined ? [] : [wasm('wardrop', FILTER, filter)]), ROUTER];
  return {
    admin: { address: socketAddress(at(ports.smallAdmin)) },
    node: { id: 'small', cluster: 'small' },
    static_resources: {
      listeners: [listener('small', ports.small, { ...manager, http_filters })],
      clusters: [
        cluster('engines', [socketAddress(at(ports.engines[0]))], {}),
        cluster(syncCluster, [socketAddress(at(ports.smallSync))], {}),
      ],
    },
  };
}

const extension = (name: string, type: string, config: object = {}) => ({
  name,
  typed_config: { '@type': TYPE + type, ...config },
});

const ROUTER = extension('envoy.filters.http.router', 'extensions.filters.http.router.v3.Router');
const UPSTREAM_CODEC = extension(
  'envoy.filters.http.upstream_codec',
  'extensions.filters.http.upstream_codec.v3.UpstreamCodec',
);
const strip = extension(
  'envoy.filters.http.header_mutation',
  'extensions.filters.http.header_mutation.v3.HeaderMutation',
  { mutations: { request_mutations: [{ remove: DESTINATION }] } },
);

function listener(name: string, port: number, connectionManager: object): object {
  return {
    name,
    address: { socket_address: { address: '127.0.0.1', port_value: port } },
    filter_chains: [
      {
        filters: [{ name: 'envoy.filters.network.http_connection_manager', typed_config: connectionManager }],
      },
    ],
  };
}

/** Wardrop's connection manager with other filters, and a cluster in place of the filter's choice. */
function likeOwn(own: Listener, name: string, cluster: string, filters: readonly object[]): object {
  const manager = own.filter_chains[0].filters[0].typed_config;
  const [host] = manager.route_config.virtual_hosts;
  const hashed = cluster === 'maglev' && { hash_policy: [{ header: { header_name: 'x-conversation-id' } }] };
  const routes = host.routes.map((entry) => {
    if (entry.route === undefined) return entry;
    const { cluster_header: _, ...route } = entry.route;
    return { ...entry, route: { ...route, cluster, ...hashed } };
  });
  return {
    ...manager,
    stat_prefix: name,
    route_config: { ...manager.route_config, virtual_hosts: [{ ...host, routes }] },
    http_filters: [...filters, ROUTER],
  };
}

/** What an Envoy needs to forward requests at all. */
function minimal(cluster: string): object {
  const routes = [{ match: { prefix: '/' }, route: { cluster, timeout: '0s' } }];
  return {
    '@type': `${TYPE}extensions.filters.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: 'defaults',
    route_config: { name: 'defaults', virtual_hosts: [{ name: 'all', domains: ['*'], routes }] },
    http_filters: [ROUTER],
  };
}

function wasm(name: string, file: string, value: string): object {
  return extension('wasm', 'extensions.filters.http.wasm.v3.Wasm', {
    config: {
      name,
      root_id: name,
      configuration: { '@type': 'type.googleapis.com/google.protobuf.StringValue', value },
      allow_on_headers_stop_iteration: true,
      vm_config: { vm_id: name, runtime: 'envoy.wasm.runtime.v8', code: { local: { filename: file } } },
    },
  });
}

function extProc(clusterName: string, requestBodies: 'NONE' | 'BUFFERED'): object {
  return extension('ext_proc', 'extensions.filters.http.ext_proc.v3.ExternalProcessor', {
    grpc_service: { envoy_grpc: { cluster_name: clusterName }, timeout: '10s' },
    message_timeout: '10s',
    mutation_rules: { allow_envoy: true },
    processing_mode: {
      request_header_mode: 'SEND',
      response_header_mode: 'SKIP',
      request_body_mode: requestBodies,
      response_body_mode: 'NONE',
      request_trailer_mode: 'SKIP',
      response_trailer_mode: 'SKIP',
    },
  });
}

const override = {
  load_balancing_policy: {
    policies: [
      {
        typed_extension_config: extension(
          'envoy.load_balancing_policies.override_host',
          'extensions.load_balancing_policies.override_host.v3.OverrideHost',
          {
            override_host_sources: [{ header: DESTINATION }],
            fallback_policy: {
              policies: [
                {
                  typed_extension_config: extension(
                    'envoy.load_balancing_policies.round_robin',
                    'extensions.load_balancing_policies.round_robin.v3.RoundRobin',
                  ),
                },
              ],
            },
          },
        ),
      },
    ],
  },
};

const socketAddress = (address: object) => ({ socket_address: address });

function picker(name: string, path: string): object {
  return cluster(name, [{ pipe: { path } }], {}, undefined, 'http2_protocol_options');
}

function cluster(
  name: string,
  addresses: readonly object[],
  balancing: object,
  filters?: readonly object[],
  protocol = 'http_protocol_options',
): object {
  const options = extension('', 'extensions.upstreams.http.v3.HttpProtocolOptions', {
    explicit_http_config: { [protocol]: {} },
    ...(filters && { http_filters: filters }),
  }).typed_config;
  return {
    name,
    type: 'STATIC',
    connect_timeout: '1s',
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: addresses.map((address) => ({ endpoint: { address } })) }],
    },
    ...balancing,
    typed_extension_protocol_options: { 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': options },
  };
}
