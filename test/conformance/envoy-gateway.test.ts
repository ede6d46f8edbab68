import { readFileSync } from 'node:fs';
import { fromJson, type JsonObject, type JsonValue } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { CLIENT_STEERING_HEADERS } from '../../wire/names.js';
import { BootstrapSchema } from '../../xds-server/gen/envoy/config/bootstrap/v3/bootstrap_pb.js';
import { registry } from '../../xds-server/xds/registry.js';
import { complaintsOf, gatewayOf } from './envoy/gateway.js';

interface Manifest {
  readonly kind: string;
  readonly spec: {
    readonly jsonPatches?: readonly Patch[];
    readonly headers?: { readonly earlyRequestHeaders: { readonly remove: readonly string[] } };
  };
}

interface Patch {
  readonly type: string;
  readonly operation: { readonly path?: string; readonly value: JsonObject };
}

const text = readFileSync(new URL('../../envoy/envoy-gateway/gateway.yaml', import.meta.url), 'utf8');
const manifests = parseAllDocuments(text).map((document) => document.toJS() as Manifest);
const specOf = (kind: string) => manifests.find((manifest) => manifest.kind === kind)!.spec;
const patchesOf = (type: string) =>
  specOf('EnvoyPatchPolicy')
    .jsonPatches!.filter((patch) => patch.type.endsWith(`.${type}`))
    .map(({ operation }) => operation);
const ofRoutes = patchesOf('RouteConfiguration').map(({ path, value }) => [path!.slice(1), value] as const);
/** With the patches applied to what they are meant for. */
const gateway = gatewayOf({
  httpFilters: patchesOf('Listener').map(({ value }) => value),
  route: Object.fromEntries(ofRoutes.filter(([field]) => field === 'route')),
  virtualHost: Object.fromEntries(ofRoutes.filter(([field]) => field !== 'route')),
  clusters: patchesOf('Cluster').map(({ value }) => value),
});

it('the patches have no field that Envoy does not know', () => {
  expect(() => fromJson(BootstrapSchema, gateway as JsonValue, { registry })).not.toThrow();
});

it('a gateway with the patches is valid for Envoy, filter and all', async () => {
  expect(await complaintsOf(gateway)).toEqual([]);
});

it('the gateway removes all that clients must not set', () => {
  expect(specOf('ClientTrafficPolicy').headers!.earlyRequestHeaders.remove).toEqual(CLIENT_STEERING_HEADERS);
});
