import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { decisionOf } from '../../wire/decision.js';
import { keysOf, OpenLoop, type Result } from './harness/load.js';
import { type EnvoyHandle, engineEntry, Mesh, suspiciousLines } from './harness/mesh.js';
import { sleep } from './harness/process.js';
import { StubEngine } from './harness/stub-engine.js';

const DEAD_SECONDS = 60;

const stubs = [new StubEngine('a'), new StubEngine('b'), new StubEngine('c')];
let mesh: Mesh;
let envoy: EnvoyHandle;

beforeAll(async () => {
  await Promise.all(stubs.map((stub) => stub.start()));
  mesh = await Mesh.start({
    engines: stubs.map((stub) => engineEntry(stub.name, [stub.address])),
    rttMs: { west: { a: 2, b: 4, c: 6 } },
    profiles: { stub: { requestsPerSecond: 20 } },
    demand: { west: { requestsPerSecond: 50, promptTokens: 100, outputTokens: 32 } },
  });
  envoy = await mesh.startEnvoy('west', { concurrency: 2 });
});

afterAll(async () => {
  await mesh?.stop();
  await Promise.all(stubs.map((stub) => stub.kill()));
});

it('routes every request as before while the control server is dead for a minute, and goes on with the same plan', async () => {
  const load = new OpenLoop(envoy.url, 50, keysOf(200));
  await sleep(15_000);
  const before = await mesh.api<{ id: string; sequence: number }>('/v1/plan');
  const settled = load.results.length;

  await mesh.control.stop('SIGKILL');
  const refused = await startWithBrokenConfig();
  await sleep(DEAD_SECONDS * 1_000 - refused.tookMs);
  const age = await envoyGauge(envoy, 'snapshot_age_seconds');
  await mesh.startControlServer();
  const restarted = await mesh.api<{ id: string; sequence: number }>('/v1/plan');
  await sleep(10_000);
  const after = await mesh.api<{ id: string; sequence: number }>('/v1/plan');
  const results = (await load.stop()).slice(settled);

  expect(results.length).toBeGreaterThan(50 * (DEAD_SECONDS + 5));
  expect(results.filter((result) => result.status !== 200 || result.error)).toEqual([]);
  expect(movedKeys(results)).toEqual([]);
  expect(new Set(results.map((result) => decisionOf(result.headers).plan))).toEqual(new Set([before.id]));
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringMatching(/fleet\.yaml:\d+:\d+: /) });
  expect(age).toBeGreaterThan(DEAD_SECONDS - 10);
  expect([restarted.id, restarted.sequence]).toEqual([before.id, before.sequence]);
  expect([after.id, after.sequence]).toEqual([before.id, before.sequence]);
  expect(await envoyGauge(envoy, 'snapshot_age_seconds')).toBeLessThan(15);
  expect(suspiciousLines(envoy.process.output)).toEqual([]);
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
