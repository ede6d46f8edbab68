import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { decisionOf } from '../../wire/decision.js';
import { freePorts } from '../free-ports.js';
import { keysOf, OpenLoop, type Result } from './harness/load.js';
import { type EnvoyHandle, engineEntry, Mesh, suspiciousLines } from './harness/mesh.js';
import { sleep } from './harness/process.js';
import { StubEngine } from './harness/stub-engine.js';

const DEAD_SECONDS = 60;
const SHARED_SECONDS = 5;
const SETTLED_SECONDS = 15;

interface PeersJson {
  readonly role: string;
  readonly peers: readonly { readonly isSilent: boolean; readonly envoys: readonly string[] }[];
}

interface PlanJson {
  readonly id: string;
  readonly sequence: number;
}

const stubs = [new StubEngine('a'), new StubEngine('b'), new StubEngine('c')];
let mesh: Mesh;
/** Of one frontend; they call different control servers first. */
let envoys: readonly [EnvoyHandle, EnvoyHandle];
let loads: readonly OpenLoop[];

beforeAll(async () => {
  await Promise.all(stubs.map((stub) => stub.start()));
  mesh = await Mesh.start({
    engines: stubs.map((stub) => engineEntry(stub.name, [stub.address])),
    rttMs: { west: { a: 2, b: 4, c: 6 } },
    profiles: { stub: { requestsPerSecond: 20 } },
    demand: { west: { requestsPerSecond: 50, promptTokens: 100, outputTokens: 32 } },
    hasPeer: true,
  });
  await mesh.peer.startControlServer();
  const [port] = await freePorts(1);
  envoys = await Promise.all([
    mesh.startEnvoy('west', { concurrency: 2 }),
    mesh.peer.startEnvoy('west', { listen: `127.0.0.1:${port}` }),
  ]);
  loads = [
    new OpenLoop(envoys[0].url, 40, keysOf(200)),
    new OpenLoop(envoys[1].url, 10, keysOf(200).reverse()),
  ];
});

afterAll(async () => {
  await mesh?.stop();
  await Promise.all(stubs.map((stub) => stub.kill()));
});

it('of two control servers, either knows all demand and publishes the same plan, and when the one that makes it dies the other goes on', async () => {
  const startedMs = Date.now();
  await sleep(SHARED_SECONDS * 1_000);
  for (const server of [mesh, mesh.peer]) {
    await server.eventually('the requests of both Envoys', async () => (await demandOf(server)) > 45);
  }
  const plans = await Promise.all([planOf(mesh), planOf(mesh.peer)]);
  expect(plans[1]).toEqual(plans[0]);
  expect((await peersOf(mesh)).role).toBe('leads');
  expect(await peersOf(mesh.peer)).toMatchObject({ role: 'follows', peers: [{ isSilent: false }] });
  expect((await peersOf(mesh)).peers[0]!.envoys).toHaveLength(1);

  await mesh.control.stop('SIGKILL');
  await mesh.peer.eventually(
    'the other one to make the plans',
    async () => (await peersOf(mesh.peer)).role === 'leads',
  );
  await mesh.peer.eventually(
    'the Envoy to call it',
    async () => (await peersOf(mesh.peer)).peers[0]!.envoys.length === 0,
  );
  await sleep(Math.max(0, startedMs + SETTLED_SECONDS * 1_000 - Date.now()));

  const results = loads.flatMap((load) => load.results);
  expect(results.filter((result) => result.status !== 200 || result.error)).toEqual([]);
  expect(movedKeys(results)).toEqual([]);
  for (const envoy of envoys) expect(await envoyGauge(envoy, 'snapshot_age_seconds')).toBeLessThan(10);
});

it('routes every request as before while no control server runs for a minute, and goes on with the same plan', async () => {
  const before = await planOf(mesh.peer);
  const settled = loads.map(({ results, heldUpMs }) => ({ results: results.length, heldUpMs }));

  await mesh.peer.control.stop('SIGKILL');
  const refused = await startWithBrokenConfig();
  await sleep(DEAD_SECONDS * 1_000 - refused.tookMs);
  const age = await envoyGauge(envoys[0], 'snapshot_age_seconds');
  await mesh.peer.startControlServer();
  const restarted = await planOf(mesh.peer);
  await mesh.startControlServer();
  await sleep(8_000);
  const after = await Promise.all([planOf(mesh.peer), planOf(mesh)]);
  const { role } = await peersOf(mesh);
  const results = (await Promise.all(loads.map((load) => load.stop()))).flatMap((all, at) =>
    all.slice(settled[at]!.results),
  );
  const heldUpSeconds =
    Math.max(...loads.map(({ heldUpMs }, at) => heldUpMs - settled[at]!.heldUpMs)) / 1_000;

  expect(results.length).toBeGreaterThan(50 * (DEAD_SECONDS + 5 - heldUpSeconds));
  expect(results.filter((result) => result.status !== 200 || result.error)).toEqual([]);
  expect(movedKeys(results)).toEqual([]);
  expect(new Set(results.map((result) => decisionOf(result.headers).plan))).toEqual(new Set([before.id]));
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringMatching(/fleet\.yaml:\d+:\d+: /) });
  expect(age).toBeGreaterThan(DEAD_SECONDS - 10);
  expect(restarted).toEqual(before);
  expect(after).toEqual([before, before]);
  expect(role).toBe('follows');
  for (const envoy of envoys) {
    expect(await envoyGauge(envoy, 'snapshot_age_seconds')).toBeLessThan(15);
    expect(suspiciousLines(envoy.process.output)).toEqual([]);
  }
});

/** A control server that does not come back because of its configuration says so and does not start. */
async function startWithBrokenConfig(): Promise<{ code: number | null; stderr: string; tookMs: number }> {
  const startedMs = Date.now();
  const good = readFileSync(mesh.configFile);
  writeFileSync(mesh.configFile, `${good}nonsense: true\n`);
  const { code, stderr } = await mesh.runCommand(['serve', '-c', mesh.configFile]);
  writeFileSync(mesh.configFile, good);
  return { code, stderr, tookMs: Date.now() - startedMs };
}

/**
 * What goes with a header has a pool of its own, of the engines with a label. The Envoy that had its xDS from the other server since
 * its own one was away goes on with that.
 */
it('loses no request when pools come and go at one control server before the other, where an Envoy has xDS from one and calls the other', async () => {
  await mesh.peer.eventually('an Envoy to call one and have xDS from the other', async () => {
    const { envoys: streams } = await mesh.peer.api<{ envoys: readonly unknown[] }>('/v1/envoys');
    return streams.length === 2 && (await peersOf(mesh.peer)).peers[0]!.envoys.length === 1;
  });
  const before = [mesh, mesh.peer].map(({ configFile }) => readFileSync(configFile, 'utf8'));
  const load = new OpenLoop(envoys[0].url, 40, keysOf(20), { headers: { 'x-site': 'y' } });
  for (const [at, { configFile }] of [mesh, mesh.peer].entries()) {
    const config = parse(before[at]!) as { engines: { id: string }[] };
    const engines = config.engines.map((engine) => ({
      ...engine,
      labels: { site: engine.id === 'a' ? 'x' : 'y' },
    }));
    const needs = { 'site-y': { when: { header: { 'x-site': 'y' } }, engines: { site: 'y' } } };
    writeFileSync(configFile, stringify({ ...config, engines, needs }));
  }
  await mesh.eventually('requests to go where the need wants them', () => {
    const last = load.results.slice(-40);
    return last.length === 40 && last.every(({ headers }) => headers['x-stub'] !== 'a');
  });
  writeFileSync(mesh.peer.configFile, before[1]!);
  await mesh.peer.eventually('one to know no such pool', async () => !(await hasPool(mesh.peer)));
  const since = load.results.length;
  await mesh.eventually('the Envoy to go on', () => load.results.length > since + 100);
  writeFileSync(mesh.configFile, before[0]!);
  await mesh.eventually('nobody to know the pool', async () => {
    const clusters = await (await fetch(`${envoys[0].adminUrl}/clusters`)).text();
    return !clusters.includes('~site-y');
  });
  const results = await load.stop();
  expect(results.filter((result) => result.status !== 200 || result.error)).toEqual([]);
});

async function hasPool(server: Mesh): Promise<boolean> {
  return JSON.stringify(await server.api('/v1/plan')).includes('~site-y');
}

async function planOf(server: Mesh): Promise<PlanJson> {
  const { id, sequence } = await server.api<PlanJson>('/v1/plan');
  return { id, sequence };
}

function peersOf(server: Mesh): Promise<PeersJson> {
  return server.api('/v1/peers');
}

/** Requests per second, as measured. */
async function demandOf(server: Mesh): Promise<number> {
  const { demands } = await server.api<{ demands: { source: string; requestsPerSecond: number }[] }>(
    '/v1/fleet',
  );
  const measured = demands.filter(({ source }) => source === 'measured');
  return measured.reduce((sum, { requestsPerSecond }) => sum + requestsPerSecond, 0);
}

/** Keys that were served by more than one engine. */
function movedKeys(results: readonly Result[]): string[] {
  const homes = new Map<string, Set<unknown>>();
  for (const { key, headers } of results) {
    homes.set(key, (homes.get(key) ?? new Set()).add(headers['x-stub']));
  }
  return [...homes].filter(([, engines]) => engines.size > 1).map(([key]) => key);
}

async function envoyGauge(handle: EnvoyHandle, name: string): Promise<number> {
  const text = await (await fetch(`${handle.adminUrl}/stats?filter=wardrop_${name}`)).text();
  const match = text.match(/: (\d+)/);
  if (!match) throw new Error(`Envoy has no gauge ${name}: ${text}`);
  return Number(match[1]);
}
