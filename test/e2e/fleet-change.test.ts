import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { keysOf, OpenLoop } from './harness/load.js';
import { engineEntry, Mesh, suspiciousLines } from './harness/mesh.js';
import { sleep } from './harness/process.js';
import { StubEngine } from './harness/stub-engine.js';

const IDS = ['a', 'b', 'c'] as const;

describe('a fleet whose configuration changes under load', () => {
  const stubs = Object.fromEntries(IDS.map((id) => [id, new StubEngine(id)]));
  let mesh: Mesh;

  beforeAll(async () => {
    await Promise.all(Object.values(stubs).map((stub) => stub.start()));
    mesh = await Mesh.start({
      engines: engines(IDS),
      rttMs: { west: rttMs(IDS) },
      profiles: { stub: { requestsPerSecond: 100 } },
      demand: { west: { requestsPerSecond: 120, promptTokens: 100, outputTokens: 32 } },
      server: { edsIntervalSeconds: 0.5 },
    });
    await mesh.startEnvoy('west');
  });

  afterAll(async () => {
    await mesh?.stop();
    await Promise.all(Object.values(stubs).map((stub) => stub.kill()));
  });

  it('loses no request when engines leave and return, and pools come, also while the control server is away', async () => {
    const load = new OpenLoop(mesh.envoys[0]!.url, 60, keysOf(60), { headers: { 'x-site': 'y' } });
    await trafficAtExactly(IDS);

    setEngines(['b', 'c']);
    await trafficAtExactly(['b', 'c']);
    setEngines(IDS);
    await trafficAtExactly(IDS);

    await mesh.control.stop();
    setEngines(['a', 'c']);
    await mesh.startControlServer();
    await trafficAtExactly(['a', 'c']);
    await mesh.control.stop('SIGKILL');
    setEngines(IDS);
    await mesh.startControlServer();
    await trafficAtExactly(IDS);

    // A pool of its own, which Envoy does not know when its filter calls the new server.
    await mesh.control.stop();
    setEngines(IDS, { needs: { 'site-y': { when: { header: { 'x-site': 'y' } }, engines: { site: 'y' } } } });
    await mesh.startControlServer();
    await trafficAtExactly(['a', 'c']);

    const results = await load.stop();
    expect(results.filter((result) => result.status !== 200 || result.error !== undefined)).toEqual([]);
    expect(suspiciousLines(mesh.envoys[0]!.process.output)).toEqual([]);
  });

  /** Waits until these engines and no others get requests. */
  async function trafficAtExactly(ids: readonly string[]): Promise<void> {
    await mesh.eventually(`traffic at exactly ${ids.join(', ')}`, async () => {
      for (const stub of Object.values(stubs)) stub.attempts.length = 0;
      await sleep(500);
      const busy = IDS.filter((id) => stubs[id]!.requests.length > 0);
      return busy.join() === ids.join();
    });
  }

  function setEngines(ids: readonly string[], rest: object = {}): void {
    const config = { ...parse(readFileSync(mesh.configFile, 'utf8')), ...rest };
    config.engines = engines(ids);
    config.network.rttMs.west = rttMs(ids);
    writeFileSync(`${mesh.configFile}.new`, stringify(config));
    renameSync(`${mesh.configFile}.new`, mesh.configFile);
  }

  function engines(ids: readonly string[]): Record<string, unknown>[] {
    return ids.map((id) =>
      engineEntry(id, [stubs[id]!.address], { labels: { site: id === 'b' ? 'x' : 'y' } }),
    );
  }
});

function rttMs(ids: readonly string[]): Record<string, number> {
  return Object.fromEntries(ids.map((id) => [id, 2]));
}
