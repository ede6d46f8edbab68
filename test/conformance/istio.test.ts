import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { fromJson, type JsonObject, type JsonValue } from '@bufbuild/protobuf';
import { afterAll, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import { CLIENT_STEERING_HEADERS } from '../../wire/names.js';
import { BootstrapSchema } from '../../xds-server/gen/envoy/config/bootstrap/v3/bootstrap_pb.js';
import { registry } from '../../xds-server/xds/registry.js';
import { suspiciousLines } from '../e2e/harness/mesh.js';
import { envoyBinary } from './envoy/envoy.js';

// Starting Envoy takes a while on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

interface Patch {
  readonly applyTo: string;
  readonly patch: { readonly value: JsonObject };
}

const text = readFileSync(new URL('../../envoy/istio/envoyfilter.yaml', import.meta.url), 'utf8');
const { configPatches } = (parse(text) as { spec: { configPatches: Patch[] } }).spec;
const valuesOf = (applyTo: string) =>
  configPatches.filter((each) => each.applyTo === applyTo).map(({ patch }) => patch.value);
const folder = mkdtempSync(join(tmpdir(), 'wardrop-istio-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A gateway as Istio would make it, with the patches applied. */
function gateway(): JsonObject {
  const [route] = valuesOf('HTTP_ROUTE');
  const [manager] = valuesOf('NETWORK_FILTER') as { typed_config: JsonObject }[];
  const router = {
    name: 'envoy.filters.http.router',
    typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
  };
  const virtualHost = {
    name: 'llm.example.com:80',
    domains: ['*'],
    routes: [{ match: { prefix: '/' }, ...route }],
    ...valuesOf('VIRTUAL_HOST')[0],
  };
  const connectionManager = {
    ...manager!.typed_config,
    stat_prefix: 'gateway',
    route_config: { name: 'http.80', virtual_hosts: [virtualHost] },
    http_filters: [...valuesOf('HTTP_FILTER'), router],
  };
  const filters = [
    { name: 'envoy.filters.network.http_connection_manager', typed_config: connectionManager },
  ];
  const address = { socket_address: { address: '127.0.0.1', port_value: 8080 } };
  return {
    static_resources: {
      listeners: [{ name: 'http', address, filter_chains: [{ filters }] }],
      clusters: valuesOf('CLUSTER'),
    },
  };
}

it('the patches have no field that Envoy does not know', () => {
  expect(() => fromJson(BootstrapSchema, gateway() as JsonValue, { registry })).not.toThrow();
});

it('a gateway with the patches is valid for Envoy, filter and all', async () => {
  const file = join(folder, 'envoy.json');
  const wasm = fileURLToPath(new URL('../../dist/filter/wardrop.wasm', import.meta.url));
  writeFileSync(file, JSON.stringify(gateway()).replaceAll('/etc/wardrop/wardrop.wasm', wasm));
  const { stderr } = await promisify(execFile)(await envoyBinary(), [
    ...['--mode', 'validate', '--log-level', 'warning', '-c', file],
  ]);
  expect(suspiciousLines(stderr)).toEqual([]);
});

it('the gateway removes all that clients must not set', () => {
  const early = JSON.stringify(valuesOf('NETWORK_FILTER'));
  const removed = [...early.matchAll(/"remove":"([^"]+)"/g)].map(([, header]) => header);
  expect(removed).toEqual(CLIENT_STEERING_HEADERS);
});
