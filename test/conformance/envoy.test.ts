import { EventEmitter, once } from 'node:events';
import type { JsonObject } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLIENT_STEERING_HEADERS, CLUSTER_HEADER, DESTINATION_HEADER } from '../../wire/names.js';
import type { Fleet } from '../../xds-server/fleet/fleet.js';
import {
  buildBootstrap,
  buildResources,
  frontendOf,
  type ResourceInput,
  XdsServer,
} from '../../xds-server/xds/index.js';
import { CLUSTER_TYPE, ENDPOINTS_TYPE } from '../../xds-server/xds/protocol/type-url.js';
import { suspiciousLines } from '../e2e/harness/mesh.js';
import { eventually, sleep } from '../e2e/harness/process.js';
import { answerOk, StubEngine } from '../e2e/harness/stub-engine.js';
import { freePorts } from '../free-ports.js';
import { Envoy } from './envoy/envoy.js';
import { fleetOf, planOf, statesOf } from './envoy/fleet.js';
import { decide, steeringModule, TRAP_HEADER } from './envoy/steering-module.js';
import { silent } from './silent.js';

const wasmModule = steeringModule();

describe.each(['GRPC', 'DELTA_GRPC'])('Envoy over %s', (apiType) => {
  const stubs = {
    a1: new StubEngine('a1'),
    a2: new StubEngine('a2'),
    b: new StubEngine('b'),
    c: new StubEngine('c'),
  };
  let fleet: Fleet;
  let server: XdsServer;
  let xdsAddress: string;
  let envoy: Envoy;
  let url: string;

  const publish = (changes: Partial<ResourceInput> & { weights?: Record<string, number> } = {}) => {
    const { weights = { a: 0.75, b: 0.25 }, ...rest } = changes;
    const shown = rest.fleet ?? fleet;
    const input = {
      fleet: shown,
      frontendId: 'west',
      plan: planOf(shown, weights),
      engines: statesOf(shown),
      wasmModule,
      filter: { frontendId: 'west' },
    };
    server.setResources('west', buildResources({ ...input, ...rest }));
  };
  const serve = async (listen: string) => {
    server = new XdsServer({
      listen,
      resolveFrontend: (node) => frontendOf(node, fleet.frontends),
      log: silent,
    });
    xdsAddress = await server.start();
  };
  /** Another one changes the cluster, and nothing else. */
  const withSecret = (value: string) =>
    new Map(fleet.engines.map(({ id }) => [id, { auth: { header: 'x-secret', value } }]));
  const settled = async () => expect(await server.settled('west', 10_000)).toBe(true);
  const typeOf = (type: string) => server.nodes()[0]!.types[type]!;
  /** A request for which the filter decides this. */
  const send = async (
    decisions: Partial<Record<keyof typeof decide, string>>,
    headers: Record<string, string> = {},
  ) => {
    const all: Record<string, string> = { ...headers, [decide.cluster]: 'm1' };
    for (const [key, value] of Object.entries(decisions)) all[decide[key as keyof typeof decide]] = value;
    const response = await fetch(`${url}/v1/chat/completions`, { headers: all });
    await response.text();
    return {
      status: response.status,
      stub: response.headers.get('x-stub'),
      attempts: Number(response.headers.get('x-envoy-attempt-count')),
    };
  };

  beforeAll(async () => {
    await Promise.all(Object.values(stubs).map((stub) => stub.start()));
    const [xdsPort, listenPort, adminPort, unusedPort] = await freePorts(4);
    const listen = `127.0.0.1:${listenPort}`;
    fleet = fleetOf('127.0.0.1:1', {
      a: [stubs.a1.address, stubs.a2.address],
      b: [stubs.b.address],
      c: [stubs.c.address],
    });
    await serve(`127.0.0.1:${xdsPort}`);
    publish();
    const bootstrap = buildBootstrap({
      frontend: fleet.frontends[0]!,
      nodeId: 'envoy-1',
      xds: { host: '127.0.0.1', port: Number(xdsAddress.split(':')[1]) },
      sync: { host: '127.0.0.1', port: unusedPort! },
      listen,
      admin: `127.0.0.1:${adminPort}`,
    });
    const { ads_config: ads } = bootstrap.dynamic_resources as { ads_config: JsonObject };
    ads.api_type = apiType;
    url = `http://${listen}`;
    envoy = await Envoy.start(bootstrap, `127.0.0.1:${adminPort}`);
    await envoy.ready();
    await eventually('the listener', async () => (await send({})).status === 200);
  });

  afterAll(async () => {
    await envoy?.stop();
    await server?.stop();
    await Promise.all(Object.values(stubs).map((stub) => stub.kill()));
  });

  it('accepts clusters, endpoints, filter, listener and routes', async () => {
    await settled();
    const [node] = server.nodes();
    expect(node).toMatchObject({ nodeId: 'envoy-1', frontendId: 'west', userAgent: 'envoy' });
    expect(Object.values(node!.types).map(({ status }) => status)).toEqual(Array(6).fill('synced'));
  });

  it('sends a request to the first endpoint that the filter names and the cluster knows', async () => {
    for (const stub of Object.values(stubs)) {
      expect(await send({ destination: stub.address })).toMatchObject({ status: 200, stub: stub.name });
    }
    const list = `127.0.0.1:1, ${stubs.b.address},${stubs.a1.address}`;
    expect(await send({ destination: list })).toMatchObject({ stub: 'b', attempts: 1 });
  });

  it('gives the engines their weights, and only spare priority to an engine without one', async () => {
    expect(await envoy.hosts('m1')).toEqual({
      [stubs.a1.address]: { weight: 375_000_000, health: 'healthy', priority: 0 },
      [stubs.a2.address]: { weight: 375_000_000, health: 'healthy', priority: 0 },
      [stubs.b.address]: { weight: 250_000_000, health: 'healthy', priority: 0 },
      [stubs.c.address]: { weight: 1, health: 'healthy', priority: 1 },
    });
    const served = new Set<string | null>();
    for (let i = 0; i < 60; i++) served.add((await send({})).stub);
    expect([...served].sort()).toEqual(['a1', 'a2', 'b']);
  });

  it('takes a retry budget of its own as runtime values, and their removal, without new clusters', async () => {
    const before = typeOf(CLUSTER_TYPE).sent;
    const key = 'circuit_breakers.m1.default.retry_budget.budget_percent';
    publish({ retryBackstop: 0.25 });
    await settled();
    await eventually('the value', async () => (await envoy.runtime())[key] === '25');
    publish();
    await settled();
    await eventually('no value', async () => (await envoy.runtime())[key] === undefined);
    expect(typeOf(CLUSTER_TYPE).sent).toEqual(before);
  });

  it('stops retries that the filter has granted when they are more than its own budget', async () => {
    const requests = 40;
    const retriesOfMany = async () => {
      let attempts = 0;
      const allAreThere = new EventEmitter().setMaxListeners(requests);
      for (const stub of Object.values(stubs)) {
        stub.behaviour = async (_attempt, response) => {
          attempts++;
          // All fail at the same time.
          if (attempts < requests) await once(allAreThere, 'yes');
          else allAreThere.emit('yes');
          await sleep(100);
          response.statusCode = 503;
          response.end();
        };
      }
      const destination = [stubs.a1, stubs.a2, stubs.b].map(({ address }) => address).join();
      const answers = await Promise.all(
        Array.from({ length: requests }, () => send({ destination, retries: '2' })),
      );
      for (const stub of Object.values(stubs)) stub.behaviour = answerOk;
      expect(answers.every(({ status }) => status === 503)).toBe(true);
      return attempts - requests;
    };
    const overflow = async () => (await envoy.stat('cluster.m1.upstream_rq_retry_overflow')) ?? 0;
    publish({ retryBackstop: 0.05 });
    await settled();
    const key = 'circuit_breakers.m1.default.retry_budget.budget_percent';
    await eventually('the value', async () => (await envoy.runtime())[key] === '5');
    const stopped = await overflow();
    const retries = await retriesOfMany();
    // Three at a time, each for a request that has two.
    expect(retries).toBeGreaterThanOrEqual(3);
    expect(retries).toBeLessThan(requests / 2);
    expect(await overflow()).toBeGreaterThan(stopped + requests / 2);

    publish();
    await settled();
    await eventually('no value', async () => (await envoy.runtime())[key] === undefined);
    expect(await retriesOfMany()).toBe(2 * requests);
  });

  it('applies new weights without new clusters', async () => {
    const before = typeOf(CLUSTER_TYPE).sent;
    publish({ weights: { a: 0.2, c: 0.8 } });
    await settled();
    await eventually('the new weights', async () => {
      const hosts = await envoy.hosts('m1');
      return hosts[stubs.c.address]?.weight === 800_000_000 && hosts[stubs.b.address]?.priority === 1;
    });
    expect(typeOf(CLUSTER_TYPE).sent).toEqual(before);
    publish();
    await settled();
  });

  it('takes a hundred changes of weights while requests flow: no failure, no new cluster, no rejection', async () => {
    const before = typeOf(CLUSTER_TYPE).sent;
    let running = true;
    const statuses: number[] = [];
    const load = (async () => {
      while (running) statuses.push((await send({})).status);
    })();
    for (let i = 0; i < 100; i++) {
      const a = 0.7 + (i % 2) / 100;
      publish({ weights: { a, b: 1 - a } });
      await settled();
    }
    // An engine that gets nothing any more is not chosen.
    publish({ weights: { a: 1 } });
    await settled();
    running = false;
    await load;
    expect(new Set(statuses)).toEqual(new Set([200]));
    await eventually('nothing for b', async () => {
      for (let i = 0; i < 40; i++) if ((await send({})).stub === 'b') return false;
      return true;
    });
    expect(typeOf(CLUSTER_TYPE)).toMatchObject({ sent: before, rejections: 0 });
    expect(typeOf(ENDPOINTS_TYPE)).toMatchObject({ status: 'synced', rejections: 0 });
    expect(await envoy.stat('cluster.m1.update_rejected')).toBe(0);
    publish();
    await settled();
  });

  it('keeps a replica that is not ready within reach of the filter and of nobody else', async () => {
    publish({ engines: statesOf(fleet, [stubs.a1.address]) });
    await settled();
    await eventually('the health to be known', async () => {
      return (await envoy.hosts('m1'))[stubs.a1.address]?.health === '/failed_eds_health';
    });
    expect(await send({ destination: stubs.a1.address })).toMatchObject({ stub: 'a1' });
    // Workers learn of it a moment after the admin pages do.
    await eventually('nobody else to choose it', async () => {
      for (let i = 0; i < 40; i++) if ((await send({})).stub === 'a1') return false;
      return true;
    });
    publish();
    await settled();
  });

  it('lets no client steer it by headers', async () => {
    const values: Record<string, string> = {
      [CLUSTER_HEADER]: 'wardrop-sync',
      'x-envoy-upstream-rq-timeout-ms': '1',
      'x-envoy-upstream-rq-per-try-timeout-ms': '1',
      'x-envoy-retry-on': '5xx,retriable-4xx,retriable-status-codes',
      'x-envoy-retriable-status-codes': '200',
    };
    const spoofed = Object.fromEntries(
      CLIENT_STEERING_HEADERS.map((header) => [header, values[header] ?? stubs.c.address]),
    );
    spoofed['x-envoy-max-retries'] = '5';
    expect(await send({ destination: stubs.b.address }, spoofed)).toEqual({
      status: 200,
      stub: 'b',
      attempts: 1,
    });
    // Without any decision of the filter's, there is no cluster to go to.
    const response = await fetch(url, {
      headers: { [CLUSTER_HEADER]: 'm1', [DESTINATION_HEADER]: stubs.b.address },
    });
    expect(response.status).toBe(503);
  });

  it('shows no steering header to an engine', async () => {
    await send({ destination: `${stubs.b.address},${stubs.a1.address}`, retries: '1' });
    const received = Object.keys(stubs.b.requests.at(-1)!.headers);
    for (const header of CLIENT_STEERING_HEADERS) expect(received).not.toContain(header);
  });

  it('retries as often as the filter grants, which is twice where it says nothing, at the next endpoint named', async () => {
    stubs.a1.behaviour = (_request, response) => void response.writeHead(503).end();
    stubs.a2.behaviour = (_request, response) => void response.destroy();
    const destination = `${stubs.a1.address},${stubs.a2.address},${stubs.b.address}`;
    expect(await send({ destination })).toEqual({ status: 200, stub: 'b', attempts: 3 });
    expect(await send({ destination, retries: '0' })).toEqual({ status: 503, stub: 'a1', attempts: 1 });
    expect(await send({ destination, retries: '1' })).toMatchObject({ status: 503, attempts: 2 });
    expect(await send({ destination, retries: '2' })).toEqual({ status: 200, stub: 'b', attempts: 3 });
    stubs.a1.behaviour = answerOk;
    stubs.a2.behaviour = answerOk;
  });

  it('loses no request when a cluster changes and its endpoints do not', async () => {
    const sentBefore = typeOf(ENDPOINTS_TYPE).sent?.version;
    let running = true;
    const statuses: number[] = [];
    const load = (async () => {
      while (running) statuses.push((await send({ destination: stubs.b.address })).status);
    })();
    for (const secret of ['one', 'two', 'three']) {
      publish({ upstreams: withSecret(secret) });
      await settled();
      await eventually('no cluster to be warming', async () => {
        return (await envoy.stat('cluster_manager.warming_clusters')) === 0;
      });
    }
    running = false;
    await load;
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(typeOf(ENDPOINTS_TYPE).sent?.version).toBe(sentBefore);
  });

  it('keeps what older snapshots may still name, and uses it for nothing else', async () => {
    const { engines, pools } = fleetOf('127.0.0.1:1', { a: [stubs.a1.address], b: [stubs.b.address] }, [
      'm1',
    ]);
    const next: Fleet = { ...fleet, engines, pools };
    const previous = fleetOf('127.0.0.1:1', { a: [stubs.a2.address], c: [stubs.c.address] }, ['m1', 'm0']);
    publish({ fleet: next, previousFleets: [previous] });
    await settled();
    expect(await envoy.hosts('m1')).toMatchObject({
      [stubs.a1.address]: { health: 'healthy' },
      [stubs.a2.address]: { health: '/eds_status_draining' },
      [stubs.c.address]: { health: '/eds_status_draining', priority: 1 },
    });
    expect(await send({ destination: stubs.a2.address })).toMatchObject({ stub: 'a2' });
    expect(await send({ cluster: 'm0', destination: stubs.c.address })).toMatchObject({ stub: 'c' });
    for (let i = 0; i < 40; i++) expect(['a1', 'b']).toContain((await send({})).stub);
    publish({ fleet: next });
    await settled();
    expect(Object.keys(await envoy.hosts('m1')).sort()).toEqual([stubs.a1.address, stubs.b.address].sort());
    expect(await envoy.hosts('m0')).toEqual({});
    publish();
    await settled();
  });

  it('tells its statistics by pool, also where names have dots', async () => {
    const { engines, pools } = fleetOf('127.0.0.1:1', { a: [stubs.a1.address], b: [stubs.b.address] }, [
      'm1',
      'x-3.1',
      'x-3.2',
    ]);
    publish({ fleet: { ...fleet, engines, pools } });
    await settled();
    const page = await (await fetch(`${envoy.adminUrl}/stats/prometheus?filter=membership_total`)).text();
    const series = page.split('\n').filter((line) => /x-3|\bm1\b/.test(line));
    expect(series.sort()).toEqual([
      'envoy_cluster_membership_total{envoy_cluster_name="m1"} 2',
      'envoy_cluster_membership_total{envoy_cluster_name="x-3_1"} 2',
      'envoy_cluster_membership_total{envoy_cluster_name="x-3_2"} 2',
    ]);
    publish();
    await settled();
  });

  it('goes on without its control server, and is sent nothing new by one that comes back the same', async () => {
    const { version } = typeOf(CLUSTER_TYPE).sent!;
    await server.stop();
    for (let i = 0; i < 20; i++) {
      expect(await send({ destination: stubs.b.address })).toMatchObject({ status: 200, stub: 'b' });
    }
    await serve(xdsAddress);
    publish();
    await eventually('Envoy to come back', () => server.nodes().length === 1);
    await settled();
    expect(typeOf(CLUSTER_TYPE)).toMatchObject({ status: 'synced', sent: null });
    publish({ upstreams: withSecret('another') });
    await settled();
    expect(typeOf(CLUSTER_TYPE).sent?.version).not.toBe(version);
  });

  it('logs nothing about unknown or deprecated fields, rejected updates or failed VMs', () => {
    expect(suspiciousLines(envoy.process.output)).toEqual([]);
    expect(
      server.nodes().flatMap(({ types }) => Object.values(types).filter((type) => type.rejections > 0)),
    ).toEqual([]);
  });

  it('has a new module soon after one has trapped, and nobody names a host meanwhile', async () => {
    const before = stubs.c.requests.length;
    expect((await send({}, { [TRAP_HEADER]: 'yes' })).status).toBe(503);
    const spoofed = await fetch(url, {
      headers: { [CLUSTER_HEADER]: 'm1', [DESTINATION_HEADER]: stubs.c.address },
    });
    expect(spoofed.status).toBe(503);
    await eventually('a new module', async () => (await send({ destination: stubs.b.address })).stub === 'b');
    expect(await envoy.stat('wasm.wardrop.vm_reload_success')).toBe(1);
    expect(stubs.c.requests.length).toBe(before);
  });
});
