import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent } from 'undici';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { decisionOf } from '../../wire/decision.js';
import { freePorts } from '../free-ports.js';
import { chat, keysOf, OpenLoop } from './harness/load.js';
import { type EnvoyHandle, engineEntry, Mesh, suspiciousLines } from './harness/mesh.js';
import { StubEngine } from './harness/stub-engine.js';

const KEYS = keysOf(300);
/** One connection, which stays open. */
const agent = new Agent({ connections: 1 });
const stubs = [new StubEngine('a'), new StubEngine('b')];
let mesh: Mesh;
let envoy: EnvoyHandle;

beforeAll(async () => {
  await Promise.all(stubs.map((stub) => stub.start()));
  mesh = await Mesh.start({
    engines: stubs.map((stub) => engineEntry(stub.name, [stub.address], { profile: stub.name })),
    rttMs: { west: { a: 2, b: 2 } },
    profiles: { a: { requestsPerSecond: 3000 }, b: { requestsPerSecond: 1000 } },
    demand: { west: { requestsPerSecond: 3000, promptTokens: 100, outputTokens: 32 } },
    // Another plan, once the demand is measured, would send some conversations elsewhere.
    policy: { bounds: [{ frontend: 'west', pool: 'demo-8b', engine: 'a', pin: 0.75 }] },
    config: { steering: 'native' },
  });
  envoy = await mesh.startEnvoy('west', { concurrency: 2 });
});

afterAll(async () => {
  await mesh?.stop();
  await Promise.all(stubs.map((stub) => stub.kill()));
});

async function served(handle: EnvoyHandle) {
  const results = [];
  for (let at = 0; at < KEYS.length; at += 20) {
    results.push(
      ...(await Promise.all(
        KEYS.slice(at, at + 20).map((key) => chat(handle.url, { key, agent, later: true })),
      )),
    );
  }
  expect(results.filter(({ status }) => status !== 200)).toEqual([]);
  return results.map(({ headers }) => {
    const { engine, reason } = decisionOf(headers);
    return { stub: headers['x-stub'], engine, reason };
  });
}

it('by Envoy itself: engines get their weights, conversations stay, and responses tell who served', async () => {
  const plan = await mesh.api<{ rows: { weights: { engineId: string; weight: number }[] }[] }>('/v1/plan');
  const weight = plan.rows[0]!.weights.find(({ engineId }) => engineId === 'a')!.weight;
  expect(weight).toBeGreaterThan(0.55);
  const first = await served(envoy);
  const share = first.filter(({ stub }) => stub === 'a').length / first.length;
  // Five standard deviations of a binomial share.
  expect(Math.abs(share - weight)).toBeLessThan(5 * Math.sqrt((weight * (1 - weight)) / first.length));
  expect(await served(envoy)).toEqual(first);
  expect(first.every(({ stub, engine, reason }) => stub === engine && reason === 'native')).toBe(true);
  expect(stubs[0]!.requests.at(-1)!.headers).not.toHaveProperty('x-wardrop-hash');
});

it('by the filter, after changes of the configuration to and fro, on open connections, under load and without a failure', async () => {
  const load = new OpenLoop(envoy.url, 30, KEYS);
  // A change that is taken back while requests still use the filter of before has to be in force as well.
  const changes = [
    ['filter', 'planned'],
    ['native', 'native'],
    ['filter', 'planned'],
  ] as const;
  for (const [steering, reason] of changes) {
    const config = readFileSync(mesh.configFile, 'utf8').replace(/steering: .*/, `steering: ${steering}`);
    writeFileSync(mesh.configFile, config);
    await mesh.eventually(`steering by ${steering}`, async () => {
      const { headers } = await chat(envoy.url, { key: 'probe', agent });
      return decisionOf(headers).reason === reason;
    });
  }
  // Envoy closes the connections of a listener that is replaced, with what is under way on them.
  expect(await stat(envoy, 'listener_manager.listener_modified')).toBe(0);
  const results = await load.stop();
  expect(results.filter((result) => result.status !== 200 || result.error)).toEqual([]);
});

it('from a static bootstrap without a control server, and then from one that comes, without a failure', async () => {
  const before = await served(envoy);
  await mesh.control.stop('SIGKILL');
  const [port] = await freePorts(1);
  const alone = await mesh.startEnvoy('west', {
    listen: `127.0.0.1:${port}`,
    bootstrap: ['--static', '--delta'],
  });
  expect(await served(alone)).toEqual(before);
  expect(await snapshotVersion(alone)).toBe(1);

  const load = new OpenLoop(alone.url, 30, KEYS);
  await mesh.startControlServer();
  await mesh.eventually('a snapshot from the control server', async () => (await snapshotVersion(alone)) > 1);
  expect(await served(alone)).toEqual(before);
  const results = await load.stop();
  expect(results.filter((result) => result.status !== 200 || result.error)).toEqual([]);
  expect(await stat(alone, 'cluster.demo-8b.upstream_rq_total')).toBeGreaterThan(KEYS.length - 1);
  for (const { process } of mesh.envoys) expect(suspiciousLines(process.output)).toEqual([]);
});

it('through a restart of the control server that has lost its state', async () => {
  const load = new OpenLoop(envoy.url, 30, KEYS);
  await mesh.control.stop('SIGKILL');
  rmSync(join(mesh.folder, 'fleet-state.json'));
  await mesh.startControlServer();
  await mesh.eventually('its plan in Envoy', async () => {
    const { id } = await mesh.api<{ id: string }>('/v1/plan');
    return decisionOf((await chat(envoy.url, { key: 'probe', agent })).headers).plan === id;
  });
  const results = await load.stop();
  expect(results.filter((result) => result.status !== 200 || result.error)).toEqual([]);
});

function snapshotVersion(handle: EnvoyHandle): Promise<number> {
  return stat(handle, 'wasmcustom.wardrop_snapshot_version');
}

/** A counter or gauge of Envoy's; NaN while there is none of that name. */
async function stat(handle: EnvoyHandle, name: string): Promise<number> {
  const text = await (await fetch(`${handle.adminUrl}/stats?filter=^${name}$`)).text();
  return Number(/: (\d+)/.exec(text)?.[1]);
}
