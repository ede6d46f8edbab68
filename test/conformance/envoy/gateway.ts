import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { JsonObject } from '@bufbuild/protobuf';
import { suspiciousLines } from '../../e2e/harness/mesh.js';
import { envoyBinary } from './envoy.js';

/** What a manifest adds to a gateway that a mesh makes. */
export interface GatewayParts {
  /** Fields of the connection manager. */
  readonly manager?: JsonObject;
  readonly httpFilters: readonly JsonObject[];
  /** Fields of the route. */
  readonly route: JsonObject;
  /** Fields of the virtual host. */
  readonly virtualHost: JsonObject;
  readonly clusters: readonly JsonObject[];
}

/** A gateway as the mesh would make it, with what a manifest adds. */
export function gatewayOf(parts: GatewayParts): JsonObject {
  const router = {
    name: 'envoy.filters.http.router',
    typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
  };
  const virtualHost = {
    name: 'llm.example.com:80',
    domains: ['*'],
    routes: [{ match: { prefix: '/' }, ...parts.route }],
    ...parts.virtualHost,
  };
  const connectionManager = {
    '@type':
      'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
    ...parts.manager,
    stat_prefix: 'gateway',
    route_config: { name: 'http.80', virtual_hosts: [virtualHost] },
    http_filters: [...parts.httpFilters, router],
  };
  const filters = [
    { name: 'envoy.filters.network.http_connection_manager', typed_config: connectionManager },
  ];
  const address = { socket_address: { address: '127.0.0.1', port_value: 8080 } };
  return {
    static_resources: {
      listeners: [{ name: 'http', address, filter_chains: [{ filters }] }],
      clusters: [...parts.clusters],
    },
  };
}

/** What Envoy complains about in a gateway whose filter is ours; rejects when it refuses it. */
export async function complaintsOf(gateway: JsonObject): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'wardrop-gateway-'));
  try {
    const file = join(folder, 'envoy.json');
    const wasm = fileURLToPath(new URL('../../../dist/filter/wardrop.wasm', import.meta.url));
    writeFileSync(file, JSON.stringify(gateway).replaceAll('/etc/wardrop/wardrop.wasm', wasm));
    const { stderr } = await promisify(execFile)(await envoyBinary(), [
      ...['--mode', 'validate', '--log-level', 'warning', '-c', file],
    ]);
    return suspiciousLines(stderr);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
