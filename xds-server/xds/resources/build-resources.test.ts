import { fromBinary, type JsonObject, toJson } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import { fleetOf, planOf, statesOf } from '../../../test/conformance/envoy/fleet.js';
import { CLIENT_STEERING_HEADERS } from '../../../wire/names.js';
import type { Alias, Fleet } from '../../fleet/fleet.js';
import type { View } from '../protocol/resource.js';
import {
  CLUSTER_TYPE,
  ENDPOINTS_TYPE,
  EXTENSION_TYPE,
  LISTENER_TYPE,
  ROUTE_TYPE,
  RUNTIME_TYPE,
} from '../protocol/type-url.js';
import { registry } from '../registry.js';
import { buildResources, type ResourceInput } from './build-resources.js';

const fleet = fleetOf('0.0.0.0:8080', { a: ['10.0.0.1:80', '10.0.0.2:80'], b: ['10.0.1.1:80'] }, [
  'm1',
  'm2',
]);
const input: ResourceInput = {
  fleet,
  frontendId: 'west',
  plan: planOf(fleet, { a: 0.6, b: 0.4 }),
  engines: statesOf(fleet),
  wasmModule: new Uint8Array([0, 97, 115, 109]),
  filter: { frontendId: 'west' },
};
const node = {
  id: 'n',
  cluster: '',
  region: '',
  metadata: {},
  userAgent: '',
  userAgentVersion: '',
};

function virtualHostOf(resources: ReturnType<typeof json>, routes = 'wardrop-listener'): JsonObject {
  return (resources[ROUTE_TYPE]![routes]!.virtualHosts as JsonObject[])[0]!;
}

/** All resources as JSON; throws where one of them is not of a known type. */
function json(view: View): Record<string, Record<string, JsonObject>> {
  return Object.fromEntries(
    [...view].map(([type, { resources }]) => [
      type,
      Object.fromEntries(
        [...resources].map(([name, { any }]) => [
          name,
          toJson(AnySchema, fromBinary(AnySchema, any), { registry }) as JsonObject,
        ]),
      ),
    ]),
  );
}

const viewOf = (changes: Partial<ResourceInput> = {}, metadata = {}) =>
  buildResources({ ...input, ...changes }).viewOf({ ...node, metadata });

describe('the resources of a frontend', () => {
  it('are a cluster with its endpoints per pool, and a filter and routes for one listener of ours and for others', () => {
    const names = [...viewOf()].map(([type, { resources }]) => [type, [...resources.keys()]]);
    expect(Object.fromEntries(names)).toEqual({
      [CLUSTER_TYPE]: ['m1', 'm2'],
      [ENDPOINTS_TYPE]: ['m1', 'm2'],
      [EXTENSION_TYPE]: ['wardrop', 'wardrop-listener', 'wardrop-listener-next', 'wardrop-next'],
      [LISTENER_TYPE]: ['wardrop', 'wardrop-next'],
      [ROUTE_TYPE]: ['wardrop', 'wardrop-listener'],
      [RUNTIME_TYPE]: ['wardrop'],
    });
  });

  it('refer to resources that exist', () => {
    const view = viewOf();
    const references = (type: string) =>
      [...view.get(type)!.resources.values()].flatMap((resource) => resource.references);
    expect(references(CLUSTER_TYPE)).toEqual([...view.get(ENDPOINTS_TYPE)!.resources.keys()]);
    for (const name of references(LISTENER_TYPE))
      expect([...view.get(ROUTE_TYPE)!.resources.keys()]).toContain(name);
  });

  it('have each filter a second time, so that the one that serves follows the one of a listener that no connection reaches', () => {
    const view = viewOf();
    const [common, ours, oursNext, commonNext] = [...view.get(EXTENSION_TYPE)!.resources.values()];
    expect([common!.follows, ours!.follows]).toEqual([commonNext!.name, oursNext!.name]);
    expect([commonNext!.follows, oursNext!.follows]).toEqual([undefined, undefined]);
    const shown = json(view);
    for (const name of ['wardrop', 'wardrop-listener']) {
      const { [`${name}-next`]: next, [name]: serving } = shown[EXTENSION_TYPE]!;
      expect(next!.typedConfig).toEqual(serving!.typedConfig);
    }
    const { 'wardrop-next': listener } = shown[LISTENER_TYPE]!;
    expect(listener).toMatchObject({
      address: { socketAddress: { address: '0.0.0.0', portValue: 0 } },
      bindToPort: false,
    });
    expect(JSON.stringify(listener)).toContain('"wardrop-listener-next"');
  });

  it('are equal for equal input, and one view for all Envoys that listen alike', () => {
    expect(json(viewOf())).toEqual(json(viewOf()));
    for (const [type, { version }] of viewOf()) expect(viewOf().get(type)!.version).toBe(version);
    const set = buildResources(input);
    expect(set.viewOf({ ...node, id: 'one' })).toBe(set.viewOf({ ...node, id: 'two' }));
  });

  it('differ only in the endpoints when only weights differ', () => {
    const before = viewOf();
    const after = viewOf({ plan: planOf(fleet, { a: 0.5, b: 0.5 }) });
    const changed = [...before.keys()].filter(
      (type) => before.get(type)!.version !== after.get(type)!.version,
    );
    expect(changed).toEqual([ENDPOINTS_TYPE]);
  });

  it('differ only in the filters when the filter is built or set up anew, as a new listener closes connections', () => {
    const before = viewOf();
    for (const changes of [
      { wasmModule: new Uint8Array([0, 97, 115, 110]) },
      { filter: { frontendId: 'west', placement: true } },
    ]) {
      const after = viewOf(changes);
      const changed = [...before.keys()].filter(
        (type) => before.get(type)!.version !== after.get(type)!.version,
      );
      expect(changed).toEqual([EXTENSION_TYPE]);
    }
  });

  it('listen where the frontend says, or where the Envoy itself says', () => {
    const address = (view: View) => json(view)[LISTENER_TYPE]!.wardrop!.address;
    expect(address(viewOf())).toEqual({ socketAddress: { address: '0.0.0.0', portValue: 8080 } });
    expect(address(viewOf({}, { wardrop: { listen: '[::1]:81' } }))).toEqual({
      socketAddress: { address: '::1', portValue: 81 },
    });
  });

  it('leave out engines that the frontend cannot reach', () => {
    const cut: Fleet = { ...fleet, networkSeconds: [[0.001, Number.POSITIVE_INFINITY]] };
    const { endpoints } = json(viewOf({ fleet: cut }))[ENDPOINTS_TYPE]!.m1 as unknown as {
      endpoints: { locality: JsonObject }[];
    };
    expect(endpoints.map(({ locality }) => locality.subZone)).toEqual(['a']);
  });

  it('speak to a pool as its engines want it now, while older snapshots may still name others', () => {
    const next = fleetOf('0.0.0.0:8080', { b: ['10.0.1.1:80'] }, ['m1']);
    const view = viewOf({
      fleet: next,
      engines: statesOf(next),
      previousFleets: [fleet],
      upstreams: new Map([['b', { tls: { sni: 'engines.example' } }]]),
    });
    const { m1, m2 } = json(view)[CLUSTER_TYPE]!;
    expect([m1, m2].map((cluster) => cluster!.transportSocket !== undefined)).toEqual([true, false]);
  });

  it('carry the module and the configuration of the filter', () => {
    const view = json(viewOf());
    const filter = JSON.stringify(view[EXTENSION_TYPE]!['wardrop-listener']);
    expect(filter).toContain('"inlineBytes":"AGFzbQ=="');
    expect(filter).toContain('"value":"frontendId=west\\nrouteRetries=2\\n"');
    expect(filter).toContain(
      '"failurePolicy":"FAIL_RELOAD","reloadConfig":{"backoff":{"baseInterval":"0.100s"}}',
    );
    const listener = JSON.stringify(view[LISTENER_TYPE]);
    expect(listener).toContain('{"name":"wardrop-listener","configDiscovery":');
    for (const header of CLIENT_STEERING_HEADERS) expect(listener).toContain(`{"remove":"${header}"}`);
  });

  it('grant two retries on the routes of the listener, whose filter counts on it, and none on those for others', () => {
    const view = json(viewOf());
    const granted = (name: string) => {
      const { routes } = virtualHostOf(view, name) as { routes: { route?: { retryPolicy: JsonObject } }[] };
      return new Set(routes.flatMap(({ route }) => (route ? [route.retryPolicy.numRetries] : [])));
    };
    expect(granted('wardrop-listener')).toEqual(new Set([2]));
    expect(granted('wardrop')).toEqual(new Set([0]));
    expect(JSON.stringify(view[EXTENSION_TYPE]!.wardrop)).not.toContain('routeRetries');
  });

  it('read bodies, with room for the longest, only where Envoy keeps them whole', () => {
    const resources = buildResources({
      ...input,
      filter: { frontendId: 'west', readBodies: true, maxBodyBytes: 4_000_000 },
      bufferBytes: 5_000_000,
    });
    const shown = (userAgentVersion: string) => {
      const view = json(resources.viewOf({ ...node, userAgent: 'envoy', userAgentVersion }));
      expect(virtualHostOf(view).requestBodyBufferLimit).toBe('5000000');
      return Object.values(view[EXTENSION_TYPE]!).map(
        (it) => JSON.stringify(it).match(/readBodies=\w+/)?.[0],
      );
    };
    expect(new Set(shown('1.40.0'))).toEqual(new Set(['readBodies=true']));
    expect(new Set(shown('1.39.2'))).toEqual(new Set([undefined]));
    expect(virtualHostOf(json(viewOf()))).not.toHaveProperty('requestBodyBufferLimit');
  });

  it('set a retry budget in Envoy for every pool when a backstop is wanted, else no runtime value', () => {
    const layer = (view: View) => json(view)[RUNTIME_TYPE]!.wardrop!.layer;
    expect(layer(viewOf())).toEqual({});
    const budget = (pool: string, priority: string) => ({
      [`circuit_breakers.${pool}.${priority}.retry_budget.budget_percent`]: 30,
      [`circuit_breakers.${pool}.${priority}.retry_budget.min_retry_concurrency`]: 3,
    });
    expect(layer(viewOf({ retryBackstop: 0.3 }))).toEqual({
      ...budget('m1', 'default'),
      ...budget('m1', 'high'),
      ...budget('m2', 'default'),
      ...budget('m2', 'high'),
    });
  });

  it('limit how long an engine may be silent, and never how long an answer may take', () => {
    const { routes } = virtualHostOf(json(viewOf())) as { routes: JsonObject[] };
    const limits = routes.flatMap(({ name, route }) => {
      if (route === undefined) return [];
      const { timeout, retryPolicy } = route as { timeout: string; retryPolicy: JsonObject };
      return [[name, timeout, retryPolicy.perTryIdleTimeout]];
    });
    expect(limits).toEqual([
      ['stream-short', '0s', '120s'],
      ['stream-medium', '0s', '240s'],
      ['stream-long', '0s', '600s'],
      ['answer', '0s', '600s'],
    ]);
  });

  it('list all names of models, however many, where there are several', () => {
    const listOf = (aliases: readonly Alias[], pools = input.fleet.pools) => {
      const view = json(viewOf({ fleet: { ...input.fleet, pools, aliases } }));
      const { maxDirectResponseBodySizeBytes } = view[ROUTE_TYPE]!['wardrop-listener']!;
      const { routes } = virtualHostOf(view) as { routes: { directResponse?: { body: JsonObject } }[] };
      const body = routes.find(({ directResponse }) => directResponse)?.directResponse?.body.inlineString;
      return { body, maxDirectResponseBodySizeBytes };
    };
    const [pool] = input.fleet.pools;
    expect(listOf([], [pool!])).toEqual({});
    const aliases = Array.from({ length: 100 }, (_, at) => ({ name: `é${at}`, model: pool!.model }));
    const { body, maxDirectResponseBodySizeBytes } = listOf(aliases, [pool!]);
    const { data } = JSON.parse(body as string) as { data: { id: string }[] };
    expect(data.map(({ id }) => id)).toEqual([pool!.model, ...aliases.map(({ name }) => name)].sort());
    expect(maxDirectResponseBodySizeBytes).toBe(Buffer.byteLength(body as string));
  });

  it.each([
    ['/dev/stdout', 'envoy.access_loggers.stdout'],
    ['/dev/stderr', 'envoy.access_loggers.stderr'],
    ['/var/log/wardrop.log', 'envoy.access_loggers.file'],
  ])('write an access log only when asked to: %s', (accessLog, log) => {
    expect(JSON.stringify(json(viewOf())[LISTENER_TYPE])).not.toContain(log);
    expect(JSON.stringify(json(viewOf({ accessLog }))[LISTENER_TYPE])).toContain(log);
  });
});
