import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decisionOf } from '../../wire/decision.js';
import { chat, keysOf, OpenLoop, type Result } from './harness/load.js';
import { type EnvoyHandle, engineEntry, Mesh, suspiciousLines } from './harness/mesh.js';
import { sleep } from './harness/process.js';
import { answerOk, StubEngine } from './harness/stub-engine.js';

const MOST_IN_FLIGHT = 5;
const WORKERS = 2;

/** Takes any number of requests at a time and remembers how many there were at most. */
class BusyEngine {
  readonly stub: StubEngine;
  serviceMs = 20;
  most = 0;
  #inFlight = 0;

  constructor(name: string) {
    this.stub = new StubEngine(name);
    this.stub.behaviour = async (request, response) => {
      this.most = Math.max(this.most, ++this.#inFlight);
      await sleep(this.serviceMs);
      this.#inFlight--;
      answerOk(request, response);
    };
  }
}

describe('engines with more in flight than they should have', () => {
  const engines = [new BusyEngine('a'), new BusyEngine('b')] as const;
  const [a] = engines;
  let mesh: Mesh;
  let envoy: EnvoyHandle;

  beforeAll(async () => {
    await Promise.all(engines.map(({ stub }) => stub.start()));
    mesh = await Mesh.start({
      engines: engines.map(({ stub }) =>
        engineEntry(stub.name, [stub.address], { maxInFlight: MOST_IN_FLIGHT }),
      ),
      rttMs: { west: { a: 1, b: 1 } },
      profiles: { stub: { requestsPerSecond: 100 } },
      demand: { west: { models: { 'demo-8b': { requestsPerSecond: 30 } } } },
    });
    envoy = await mesh.startEnvoy('west', { concurrency: WORKERS });
  });

  afterAll(async () => {
    await mesh?.stop();
    await Promise.all(engines.map(({ stub }) => stub.kill()));
  });

  const homesOf = (results: readonly Result[]) =>
    new Map(results.map(({ key, headers }) => [key, String(headers['x-stub'])]));

  /** So few at a time that no engine has too much in flight. */
  const askInTurn = async (keys: readonly string[]) => {
    const results: Result[] = [];
    for (let at = 0; at < keys.length; at += 4) {
      const some = keys.slice(at, at + 4).map((key) => chat(envoy.url, { key, later: true }));
      results.push(...(await Promise.all(some)));
    }
    return results;
  };

  it('pass keys on to their backups, and nobody else’s keys move', async () => {
    const before = homesOf(await askInTurn(keysOf(100)));
    const keysAt = (home: string) => [...before.keys()].filter((key) => before.get(key) === home);
    // So many at `a` that it is over its limit nearly all the time, wherever the hash has put them; and slowly, as what
    // comes at once when this process was kept waiting is over any limit.
    const keys = [...keysAt('a').slice(0, 30), ...keysAt('b').slice(0, 20)];
    expect(keys.length).toBe(50);

    a.serviceMs = 1_400;
    const busy = new OpenLoop(envoy.url, 15, keys);
    await mesh.eventually('keys to overflow', async () => {
      const page = await (await fetch(`${mesh.adminUrl}/metrics`)).text();
      return /^wardrop_overflow_fraction\{engine="a"\} 0\.\d+$/m.test(page);
    });
    await mesh.eventually('a key that is passed on', () =>
      busy.results.some(({ headers }) => decisionOf(headers).reason === 'overflow'),
    );
    await busy.stop();
    expect(busy.results.filter(({ status }) => status !== 200)).toEqual([]);
    for (const { key, headers } of busy.results) {
      if (before.get(key) === 'b') expect(headers['x-stub']).toBe('b');
    }
    // A VM learns of the others' requests with the next tick; what they admit until then is the excess.
    expect(a.most).toBeLessThanOrEqual(MOST_IN_FLIGHT + 3);
  });

  it('refuse what is too much for all of them', async () => {
    for (const engine of engines) {
      engine.serviceMs = 700;
      engine.most = 0;
    }
    const load = new OpenLoop(envoy.url, 40, keysOf(200, 'crowd'));
    const refusals = () => load.results.filter(({ status }) => status === 429);
    await mesh.eventually('refusals', () => refusals().length > 10);
    await load.stop();
    const refused = refusals();
    for (const { headers, body } of refused) {
      expect([decisionOf(headers).reason, JSON.parse(body).error.code]).toEqual(['overloaded', 'overloaded']);
      expect(Number(headers['retry-after'])).toBeGreaterThanOrEqual(1);
    }
    expect(load.results.filter(({ status }) => status !== 200 && status !== 429)).toEqual([]);
    for (const engine of engines) expect(engine.most).toBeLessThanOrEqual(MOST_IN_FLIGHT + 6);
  });

  it('are asked again only as often as the retry budget has earned, when all of them fail at once', async () => {
    for (const { stub } of engines) {
      stub.behaviour = (_request, response) => {
        response.statusCode = 503;
        response.end();
      };
    }
    const used = async () => {
      const stats = await (await fetch(`${envoy.adminUrl}/stats?filter=wardrop_retries_used`)).text();
      return Number(/retries_used: (\d+)/.exec(stats)?.[1] ?? 0);
    };
    const usedBefore = await used();
    const before = engines.reduce((sum, { stub }) => sum + stub.requests.length, 0);
    const load = new OpenLoop(envoy.url, 200, keysOf(300, 'storm'));
    await mesh.eventually('400 requests', () => load.results.length > 400);
    await load.stop();
    expect(load.results.every(({ status }) => status === 503 || status === 429)).toBe(true);
    const asked = load.results.filter(({ status }) => status === 503).length;
    const attempts = engines.reduce((sum, { stub }) => sum + stub.requests.length, 0) - before;
    // The bucket holds 10 and what at most 30 s of the traffic so far have earned; then 0.2 for each request.
    expect(attempts - asked).toBeLessThanOrEqual(10 + 0.2 * (30 * 60 + asked));
    expect(attempts - asked).toBeLessThan(asked);
    await mesh.eventually(
      'all of them to be counted',
      async () => (await used()) - usedBefore === attempts - asked,
    );
  });

  it('leave no warning about unknown fields, rejected updates or failed VMs in the log of Envoy', () => {
    expect(suspiciousLines(envoy.process.output)).toEqual([]);
  });
});
