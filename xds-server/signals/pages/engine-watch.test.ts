import { createServer, type Server } from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { noFault } from '../../../test/no-fault.js';
import { PATIENCE_MS } from '../../../test/patience.js';
import type { Fleet } from '../../fleet/fleet.js';
import {
  afterProbe,
  type ProbeResult,
  type ReplicaHealth,
  unknownHealth,
} from '../readiness/replica-health.js';
import { EngineWatch, type OnProbe } from './engine-watch.js';

const open: { close(): unknown }[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((item) => item.close()));
});

/** An engine with a health page and a metrics page. */
async function engine(
  status = () => 200,
  host = '127.0.0.1',
): Promise<{ server: Server; address: string; paths: string[] }> {
  const paths: string[] = [];
  const server = createServer((request, response) => {
    paths.push(request.url!);
    response.statusCode = status();
    response.end(
      request.url === '/metrics' ? 'vllm:num_requests_running 5\nvllm:num_requests_waiting 2\n' : '',
    );
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  open.push({
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  });
  const { port } = server.address() as AddressInfo;
  return { server, address: `${host === '::1' ? `[${host}]` : host}:${port}`, paths };
}

function fleetOf(endpoints: readonly string[]): Fleet {
  const common = { region: 'r', models: ['m'], labels: {}, profile: 'p', healthPath: '/health' };
  const engines = endpoints.map((address) => ({
    id: address,
    ...common,
    endpoints: [address],
    metrics: { kind: 'vllm' as const, path: '/metrics' },
  }));
  return { frontends: [], engines, pools: [], networkSeconds: [] };
}

function watch(): { watch: EngineWatch; health: Map<string, ReplicaHealth>; results: ProbeResult[] } {
  const health = new Map<string, ReplicaHealth>();
  const results: ProbeResult[] = [];
  const takeProbe: OnProbe = (_, address, result) => {
    results.push(result);
    const next = afterProbe(health.get(address) ?? unknownHealth(0), result, false, 0);
    health.set(address, next);
    return next;
  };
  const watched = new EngineWatch(takeProbe, () => undefined, noFault);
  open.push({ close: () => watched.stop() });
  return { watch: watched, health, results };
}

function readingsOf({ readings }: EngineWatch, address: string): object {
  return Object.fromEntries(readings.get(address)!.signals);
}

it('finds replicas that answer, refuse or err, and reads their metrics', async () => {
  const good = await engine();
  const bad = await engine(() => 503);
  const gone = await engine();
  gone.server.close();
  const { watch: watched, health } = watch();
  watched.watch(fleetOf([good.address, bad.address, gone.address]));
  const found = (address: string) => health.get(address);
  await vi.waitFor(() => {
    expect(found(good.address)?.state).toBe('up');
    expect(found(bad.address)).toMatchObject({ state: 'down', detail: 'status 503', failure: 'unavailable' });
    expect(found(gone.address)?.detail).toBe('connection refused');
    expect(readingsOf(watched, good.address)).toMatchObject({
      running: { value: 5 },
      waiting: { value: 2 },
      kvUse: { problem: { reason: 'not on the page' } },
    });
    expect(readingsOf(watched, bad.address)).toMatchObject({
      running: { value: undefined, problem: { reason: 'status 503' } },
    });
  }, PATIENCE_MS);
});

it('tells apart a page that says the replica takes no more from one that is not there or not for us', async () => {
  const statuses = [503, 400, 404, 401, 403, 500];
  const engines = await Promise.all(statuses.map((status) => engine(() => status)));
  const { watch: watched, health } = watch();
  watched.watch(fleetOf(engines.map(({ address }) => address)));
  await vi.waitFor(
    () =>
      expect(engines.map(({ address }) => health.get(address)?.failure)).toEqual([
        ...['unavailable', 'unready', 'status', 'status', 'status', 'status'],
      ]),
    PATIENCE_MS,
  );
});

it('asks an engine that is gone from the fleet no more', async () => {
  const stays = await engine();
  const leaves = await engine();
  const { watch: watched, health } = watch();
  watched.watch(fleetOf([stays.address, leaves.address]));
  await vi.waitFor(() => expect(health.size).toBe(2), PATIENCE_MS);
  watched.watch(fleetOf([stays.address]));
  const twoMore = async () => {
    const before = stays.paths.length;
    await vi.waitFor(() => expect(stays.paths.length).toBeGreaterThan(before + 2), PATIENCE_MS);
  };
  // What was under way.
  await twoMore();
  const asked = leaves.paths.length;
  await twoMore();
  expect(leaves.paths.length).toBe(asked);
  expect(watched.readings.has(leaves.address)).toBe(false);
});

it('an answer that is overdue because this process stalled is no failure', async () => {
  let stalls = 0;
  const server = createServer((request, response) => {
    setTimeout(() => response.end(), 50);
    if (request.url !== '/health' || stalls >= 3) return;
    stalls++;
    setImmediate(() => {
      const end = performance.now() + 1_300;
      while (performance.now() < end);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  open.push({ close: () => server.closeAllConnections() }, server);
  const { watch: watched, health, results } = watch();
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  watched.watch(fleetOf([address]));
  await vi.waitUntil(() => stalls === 3 && health.get(address)?.state === 'up', PATIENCE_MS);
  expect(results.filter(({ ok }) => !ok)).toEqual([]);
});

it('a replica that could not be asked, as this process has too many open files, is not down', async () => {
  const { address } = await engine();
  const { watch: watched, health, results } = watch();
  const connect = vi.spyOn(net, 'connect').mockImplementation(() => {
    const error = Object.assign(new Error('connect EMFILE'), { code: 'EMFILE' });
    return new net.Socket().destroy(error);
  });
  onTestFinished(() => void connect.mockRestore());
  watched.watch(fleetOf([address]));
  await vi.waitUntil(() => connect.mock.calls.length >= 5, PATIENCE_MS);
  expect(results).toEqual([]);
  expect(readingsOf(watched, address)).toMatchObject({
    running: { problem: { reason: 'the control server itself lacks open files or memory (EMFILE)' } },
  });
  connect.mockRestore();
  await vi.waitUntil(() => health.get(address)?.state === 'up', PATIENCE_MS);
});

const hasIpv6 = Object.values(networkInterfaces()).some((each) =>
  each?.some(({ address }) => address === '::1'),
);

it.each(hasIpv6 ? ['127.0.0.1', '::1'] : ['127.0.0.1'])(
  'reads the page at a port of its own, at %s',
  async (host) => {
    const engineAlone = await engine(undefined, host);
    const page = await engine(undefined, host);
    const { watch: watched } = watch();
    const fleet = fleetOf([engineAlone.address]);
    const port = Number(page.address.split(':').at(-1));
    const engines = fleet.engines.map((entry) => ({ ...entry, metrics: { ...entry.metrics, port } }));
    watched.watch({ ...fleet, engines });
    await vi.waitFor(
      () => expect(readingsOf(watched, engineAlone.address)).toMatchObject({ running: { value: 5 } }),
      PATIENCE_MS,
    );
    await vi.waitFor(() => expect(engineAlone.paths).toContain('/health'), PATIENCE_MS);
    expect(engineAlone.paths).not.toContain('/metrics');
  },
);
