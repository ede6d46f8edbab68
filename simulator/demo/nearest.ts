import type { Addresses } from './addresses.js';
import type { DemoFrontend } from './scenario.js';

const MAX_PARALLEL = 100_000;

/**
 * What people have without Wardrop: an Envoy that sends every request to the engine of its own region. Limits, idle
 * times and the conditions of a retry are those of Wardrop's Envoys; one retry each, up to a fifth of the requests.
 */
export function nearestBootstrap(frontend: DemoFrontend, addresses: Addresses): object {
  return {
    node: { id: `nearest-${frontend.id}`, cluster: frontend.id },
    admin: { address: socketAddress(addresses.envoyAdmin[frontend.id]!) },
    static_resources: {
      listeners: [
        {
          name: 'requests',
          address: socketAddress(addresses.frontend[frontend.id]!),
          filter_chains: [
            {
              filters: [
                typed('envoy.filters.network.http_connection_manager', HTTP, connectionManager(frontend)),
              ],
            },
          ],
        },
      ],
      clusters: [cluster(frontend.nearestEngineId, addresses)],
    },
  };
}

/** Makes an Envoy connect to engines from an address of its own. */
export function withSourceAddress(bootstrap: object, address: string): object {
  const source = { address, port_value: 0 };
  return { ...bootstrap, cluster_manager: { upstream_bind_config: { source_address: source } } };
}

const EXTENSIONS = 'type.googleapis.com/envoy.extensions';
const HTTP = 'filters.network.http_connection_manager.v3.HttpConnectionManager';
const ROUTER = 'filters.http.router.v3.Router';
const HTTP_OPTIONS = 'upstreams.http.v3.HttpProtocolOptions';

function connectionManager(frontend: DemoFrontend): object {
  return {
    stat_prefix: 'requests',
    use_remote_address: true,
    stream_idle_timeout: '0s',
    http_filters: [typed('envoy.filters.http.router', ROUTER, {})],
    route_config: {
      name: 'nearest',
      virtual_hosts: [
        {
          name: 'nearest',
          domains: ['*'],
          routes: [
            {
              match: { prefix: '/' },
              route: {
                cluster: frontend.nearestEngineId,
                timeout: '0s',
                idle_timeout: '660s',
                retry_policy: {
                  retry_on: 'connect-failure,refused-stream,reset,retriable-status-codes',
                  retriable_status_codes: [502, 503, 504],
                  num_retries: 1,
                  per_try_idle_timeout: '600s',
                },
              },
            },
          ],
        },
      ],
    },
  };
}

function cluster(engineId: string, addresses: Addresses): object {
  const endpoint = { address: socketAddress(addresses.engine[engineId]!) };
  const limits = {
    max_connections: MAX_PARALLEL,
    max_pending_requests: MAX_PARALLEL,
    max_requests: MAX_PARALLEL,
  };
  return {
    name: engineId,
    type: 'STATIC',
    connect_timeout: '1s',
    load_assignment: { cluster_name: engineId, endpoints: [{ lb_endpoints: [{ endpoint }] }] },
    circuit_breakers: {
      thresholds: [{ ...limits, retry_budget: { budget_percent: { value: 20 } } }],
    },
    typed_extension_protocol_options: {
      'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
        '@type': `${EXTENSIONS}.${HTTP_OPTIONS}`,
        common_http_protocol_options: { idle_timeout: '4s' },
        explicit_http_config: { http_protocol_options: {} },
      },
    },
  };
}

function typed(name: string, type: string, config: object): object {
  return { name, typed_config: { '@type': `${EXTENSIONS}.${type}`, ...config } };
}

function socketAddress(address: string): object {
  const [host, port] = address.split(':');
  return { socket_address: { address: host, port_value: Number(port) } };
}
