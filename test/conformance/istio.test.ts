import { readFileSync } from 'node:fs';
import { fromJson, type JsonObject, type JsonValue } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { CLIENT_STEERING_HEADERS } from '../../wire/names.js';
import { BootstrapSchema } from '../../xds-server/gen/envoy/config/bootstrap/v3/bootstrap_pb.js';
import { registry } from '../../xds-server/xds/registry.js';
import { complaintsOf, gatewayOf } from './envoy/gateway.js';

interface Patch {
  readonly applyTo: string;
  readonly patch: { readonly value: JsonObject };
}

const text = readFileSync(new URL('../../envoy/istio/envoyfilter.yaml', import.meta.url), 'utf8');
const { configPatches } = (parse(text) as { spec: { configPatches: Patch[] } }).spec;
const valuesOf = (applyTo: string) =>
  configPatches.filter((each) => each.applyTo === applyTo).map(({ patch }) => patch.value);
/** With the patches applied. */
const gateway = gatewayOf({
  manager: (valuesOf('NETWORK_FILTER')[0] as { typed_config: JsonObject }).typed_config,
  httpFilters: valuesOf('HTTP_FILTER'),
  route: valuesOf('HTTP_ROUTE')[0]!,
  virtualHost: valuesOf('VIRTUAL_HOST')[0]!,
  clusters: valuesOf('CLUSTER'),
});

it('the patches have no field that Envoy does not know', () => {
  expect(() => fromJson(BootstrapSchema, gateway as JsonValue, { registry })).not.toThrow();
});

it('a gateway with the patches is valid for Envoy, filter and all', async () => {
  expect(await complaintsOf(gateway)).toEqual([]);
});

it('the gateway removes all that clients must not set', () => {
  const early = JSON.stringify(valuesOf('NETWORK_FILTER'));
  const removed = [...early.matchAll(/"remove":"([^"]+)"/g)].map(([, header]) => header);
  expect(removed).toEqual(CLIENT_STEERING_HEADERS);
});
