import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HASH_HEADER } from '../../wire/names.js';
import { buildBootstrap, buildResources, frontendOf, XdsServer } from '../../xds-server/xds/index.js';
import { suspiciousLines } from '../e2e/harness/mesh.js';
import { eventually } from '../e2e/harness/process.js';
import { StubEngine } from '../e2e/harness/stub-engine.js';
import { freePorts } from '../free-ports.js';
import { Envoy } from './envoy/envoy.js';
import { fleetOf, planOf, statesOf } from './envoy/fleet.js';
import { decide, steeringModule } from './envoy/steering-module.js';
import { silent } from './silent.js';

const wasmModule = steeringModule();

describe.each(['maglev', 'ring-hash', 'round-robin'] as const)(
  'Envoy that steers by %s itself',
  (steering) => {
    const stubs = {
      a1: new StubEngine('a1'),
      a2: new StubEngine('a2'),
      b: new StubEngine('b'),
      c: new StubEngine('c'),
    };
    let server: XdsServer;
    let envoy: Envoy;
    let url: string;

    const send = async (headers: Record<string, string> = {}) => {
      const response = await fetch(`${url}/v1/chat/completions`, {
        headers: { ...headers, [decide.cluster]: 'm1' },
      });
      await response.text();
      return {
        status: response.status,
        stub: response.headers.get('x-stub')!,
        attempts: Number(response.headers.get('x-envoy-attempt-count')),
      };
    };

    let listen: string;
    const publish = async (
      endpoints: Record<string, string[]>,
      weights: Record<string, number>,
      notReady: readonly string[] = [],
    ) => {
      const fleet = fleetOf(listen, endpoints);
      const engines = statesOf(fleet, notReady);
      const input = { fleet, frontendId: 'west', plan: planOf(fleet, weights), engines };
      server.setResources(
        'west',
        buildResources({ ...input, wasmModule, filter: { frontendId: 'west' }, steering }),
      );
      expect(await server.settled('west', 10_000)).toBe(true);
    };

    beforeAll(async () => {
      await Promise.all(Object.values(stubs).map((stub) => stub.start()));
      const [listenPort, adminPort] = await freePorts(2);
      listen = `127.0.0.1:${listenPort}`;
      url = `http://${listen}`;
      const { frontends } = fleetOf(listen, {});
      server = new XdsServer({
        listen: '127.0.0.1:0',
        resolveFrontend: (node) => frontendOf(node, frontends),
        log: silent,
      });
      const address = await server.start();
      await publish({ a: [] }, {});
      const admin = `127.0.0.1:${adminPort}`;
      const target = { host: '127.0.0.1', port: Number(address.split(':')[1]) };
      envoy = await Envoy.start(
        buildBootstrap({ frontend: frontends[0]!, nodeId: 'n', xds: target, sync: target, admin }),
        admin,
      );
      await envoy.ready();
      await eventually('the listener', async () => (await send()).status === 503);
    });

    afterAll(async () => {
      await envoy?.stop();
      await server?.stop();
      await Promise.all(Object.values(stubs).map((stub) => stub.kill()));
    });

    it('reaches endpoints that come to an empty cluster, come later, or replace others', async () => {
      const { a1, a2, b } = stubs;
      const served = async () => {
        const found = new Set<string>();
        for (let i = 0; i < 40; i++) {
          const { status, stub } = await send({ [decide.hash]: `late ${i}` });
          found.add(status === 200 ? stub : String(status));
        }
        return [...found].sort().join();
      };
      for (const hosts of [[a1], [a1, a2, b], [a2, b]]) {
        await publish({ a: hosts.map(({ address }) => address) }, { a: 1 });
        const names = hosts.map(({ name }) => name).join();
        await eventually(`requests at ${names}`, async () => (await served()) === names);
      }
    });

    it('shares requests by the weights', async () => {
      await publish(
        { a: [stubs.a1.address, stubs.a2.address], b: [stubs.b.address], c: [stubs.c.address] },
        { a: 0.5, b: 0.5 },
      );
      await eventually('the weights', async () => {
        return (await envoy.hosts('m1'))[stubs.b.address]?.weight === 500_000_000;
      });
      const counts = new Map<string, number>();
      const keys = Array.from({ length: 400 }, (_, i) => `conversation ${i}`);
      for (const key of keys) {
        const { stub } = await send({ [decide.hash]: key });
        counts.set(stub, (counts.get(stub) ?? 0) + 1);
      }
      expect([...counts.keys()].sort()).toEqual(['a1', 'a2', 'b']);
      // Five standard deviations of a binomial share.
      expect(Math.abs(counts.get('b')! - 200)).toBeLessThan(50);
      expect(Math.abs(counts.get('a1')! - 100)).toBeLessThan(44);
    });

    it('asks nobody who is not ready while somebody is, however few they are', async () => {
      const { a1, a2, b } = stubs;
      const endpoints = { a: [a1.address, a2.address], b: [b.address] };
      const weights = { a: 0.5, b: 0.5 };
      await publish(endpoints, weights, [a1.address, a2.address]);
      await eventually('requests at b alone', async () => {
        for (let i = 0; i < 40; i++)
          if ((await send({ [decide.hash]: `one ${i}` })).stub !== 'b') return false;
        return true;
      });
      await publish(endpoints, weights);
    });

    it('keeps to the weights while they change all the time', async () => {
      const endpoints = { a: [stubs.a1.address, stubs.a2.address], b: [stubs.b.address] };
      const served: string[] = [];
      for (let push = 0; push < 40; push++) {
        const a = 0.69 + (push % 3) / 100;
        await publish(endpoints, { a, b: 1 - a });
        for (let i = 0; i < 10; i++) served.push((await send({ [decide.hash]: `${push} ${i}` })).stub);
      }
      const share = served.filter((stub) => stub === 'b').length / served.length;
      // What 400 requests may be off by chance, and five points.
      expect(Math.abs(share - 0.3)).toBeLessThan(0.05 + 3 * Math.sqrt((0.3 * 0.7) / served.length));
    });

    const byKey = steering !== 'round-robin';
    it(`sends the requests of a conversation to ${byKey ? 'the same host' : 'any host'}`, async () => {
      const isOneHost = async (headers: (i: number) => Record<string, string>) => {
        const served = new Set<string>();
        for (let i = 0; i < 20; i++) served.add((await send(headers(i))).stub);
        return served.size === 1;
      };
      expect(await isOneHost((i) => ({ [decide.hash]: 'h1', 'x-session-id': String(i) }))).toBe(byKey);
      // Without a hash of the filter's, nothing that a client sends decides.
      expect(await isOneHost(() => ({ 'x-session-id': 's1', [HASH_HEADER]: 'h1' }))).toBe(false);
    });

    it('retries at another host, at most twice', async () => {
      const fail: typeof stubs.a1.behaviour = (_request, response) => void response.writeHead(503).end();
      stubs.a1.behaviour = fail;
      stubs.a2.behaviour = fail;
      for (let i = 0; i < 10; i++) {
        const { status, stub, attempts } = await send({ [decide.hash]: `retry ${i}` });
        if (stub === 'b') expect(status).toBe(200);
        expect(attempts).toBeLessThanOrEqual(3);
      }
      for (const stub of Object.values(stubs)) stub.behaviour = fail;
      const served = () => Object.values(stubs).reduce((sum, stub) => sum + stub.requests.length, 0);
      const before = served();
      expect(await send({ [decide.hash]: 'hopeless' })).toMatchObject({ status: 503 });
      expect(served() - before).toBeLessThanOrEqual(3);
    });

    it('accepts everything without a suspicious word', () => {
      expect(Object.values(server.nodes()[0]!.types).map(({ status }) => status)).toEqual(
        Array(6).fill('synced'),
      );
      expect(suspiciousLines(envoy.process.output)).toEqual([]);
    });
  },
);
