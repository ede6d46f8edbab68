import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keysOf, OpenLoop } from './harness/load.js';
import { Mesh, suspiciousLines } from './harness/mesh.js';
import { sleep } from './harness/process.js';
import { answerOk, StubEngine } from './harness/stub-engine.js';

/** Each engine serves five requests at a time, each in 0.2 s: 25 requests per second. */
const SLOTS = 5;
const SERVICE_MS = 200;
const FULL_RPS = (1_000 / SERVICE_MS) * SLOTS;
/** Two models on three engines each, one with little to do and one with much; one engine of each turns slow. */
const MODELS = [
  { model: 'demo-8b', engines: ['a', 'b', 'c'], slow: 'b', rho: 0.2 },
  { model: 'demo-70b', engines: ['d', 'e', 'f'], slow: 'e', rho: 0.8 },
] as const;
const PAGELESS = 'd';

interface PlanJson {
  readonly rows: readonly { readonly weights: readonly { engineId: string; weight: number }[] }[];
}

/** An engine with a queue and a metrics page, whose speed and page a test can change. */
class QueueingEngine {
  readonly stub: StubEngine;
  serviceMs = SERVICE_MS;
  hasPage = true;
  #running = 0;
  readonly #queue: ServerResponse[] = [];

  constructor(name: string) {
    this.stub = new StubEngine(name);
    this.stub.behaviour = ({ path }, response) => {
      if (path === '/metrics') this.#answerPage(response);
      else {
        this.#queue.push(response);
        this.#serve();
      }
    };
  }

  #serve(): void {
    if (this.#running >= SLOTS) return;
    const response = this.#queue.shift();
    if (response === undefined) return;
    this.#running++;
    setTimeout(() => {
      this.#running--;
      answerOk(this.stub.attempts[0]!, response);
      this.#serve();
    }, this.serviceMs);
  }

  #answerPage(response: ServerResponse): void {
    if (!this.hasPage) response.statusCode = 500;
    response.end(
      `vllm:num_requests_running ${this.#running}\nvllm:num_requests_waiting ${this.#queue.length}\n` +
        'vllm:kv_cache_usage_perc 0.5\n',
    );
  }
}

describe('an engine that serves without failing', () => {
  const engines = new Map(MODELS.flatMap((each) => each.engines.map((id) => [id, new QueueingEngine(id)])));
  const ids = [...engines.keys()];
  let mesh: Mesh;
  let loads: OpenLoop[];

  beforeAll(async () => {
    for (const { stub } of engines.values()) await stub.start();
    mesh = await Mesh.start({
      engines: MODELS.flatMap(({ model, engines: members }) =>
        members.map((id) => ({
          id,
          region: 'west',
          models: [model],
          profile: 'queueing',
          endpoints: [engines.get(id)!.stub.address],
          metrics: { kind: 'vllm' },
        })),
      ),
      rttMs: { west: Object.fromEntries(ids.map((id) => [id, 1])) },
      profiles: {
        queueing: {
          work: { secondsPerRequest: 1 / FULL_RPS },
          ttft: { baseSeconds: SERVICE_MS / 1_000, queueSeconds: 0.01 },
          tbot: {},
        },
      },
      demand: {
        west: {
          promptTokens: 20,
          outputTokens: 1,
          models: Object.fromEntries(
            MODELS.map(({ model, rho }) => [model, { requestsPerSecond: rho * 3 * FULL_RPS }]),
          ),
        },
      },
    });
    await mesh.startEnvoy('west');
    loads = MODELS.map(
      ({ model, rho }) => new OpenLoop(mesh.envoys[0]!.url, rho * 3 * FULL_RPS, keysOf(400), { model }),
    );
    await mesh.eventually(
      '20 s of requests',
      () => loads.every(({ results }, at) => results.length > 20 * MODELS[at]!.rho * 3 * FULL_RPS),
      60_000,
    );
    await mesh.eventually('nobody to be slow', async () =>
      (await alarms()).every((id) => !id.startsWith('penalty:')),
    );
  });

  afterAll(async () => {
    await mesh?.stop();
    await Promise.all([...engines.values()].map(({ stub }) => stub.kill()));
  });

  it('keeps its traffic when its metrics page vanishes, and an alarm tells', async () => {
    const before = await weightOf(PAGELESS);
    engines.get(PAGELESS)!.hasPage = false;
    await mesh.eventually(
      'the alarm',
      async () => (await alarms()).includes(`signal-missing:${PAGELESS}`),
      20_000,
    );
    expect(Math.abs((await weightOf(PAGELESS)) - before)).toBeLessThan(0.05);
    engines.get(PAGELESS)!.hasPage = true;
    await mesh.eventually(
      'the end of the alarm',
      async () => !(await alarms()).includes(`signal-missing:${PAGELESS}`),
    );
    expect(Math.abs((await weightOf(PAGELESS)) - before)).toBeLessThan(0.05);
  });

  it('is at half its weight within 15 s of turning ten times slower and back within 2 min of recovering, at a utilisation of 0.2 and of 0.8', async () => {
    const before = new Map<string, number>();
    for (const { slow } of MODELS) {
      before.set(slow, await weightOf(slow));
      expect(before.get(slow)).toBeGreaterThan(0.2);
    }
    const isHalved = async (slow: string) => (await weightOf(slow)) <= before.get(slow)! / 2;
    for (const { slow } of MODELS) engines.get(slow)!.serviceMs = 10 * SERVICE_MS;
    await Promise.all(
      MODELS.map(({ slow }) =>
        mesh.eventually(`the weight of ${slow} to halve`, () => isHalved(slow), 15_000),
      ),
    );
    await sleep(10_000);
    for (const { slow } of MODELS) {
      // It stays there, with enough requests to see it recover.
      expect(await isHalved(slow)).toBe(true);
      expect(await weightOf(slow)).toBeGreaterThan(0);
      expect(await alarms()).toContain(`penalty:${slow}`);
    }
    for (const { slow } of MODELS) engines.get(slow)!.serviceMs = SERVICE_MS;
    const recoveredMs = Date.now();
    const isBack = async (slow: string) => (await weightOf(slow)) >= 0.8 * before.get(slow)!;
    await Promise.all(
      MODELS.map(({ slow }) =>
        mesh.eventually(`the weight of ${slow} to come back`, () => isBack(slow), 120_000),
      ),
    );
    const healthy = ids.filter((id) => MODELS.every(({ slow }) => slow !== id));
    for (const id of healthy) expect(await alarms()).not.toContain(`penalty:${id}`);

    const results = (await Promise.all(loads.map((load) => load.stop()))).flat();
    expect(results.filter(({ status }) => status !== 200 && status !== 429)).toEqual([]);
    // While it was slow, one model had too little. It gets that much done again seconds before its whole weight is back.
    const isLate = ({ atMs }: { readonly atMs: number }) => atMs > recoveredMs + 30_000;
    expect(results.filter((result) => result.status === 429 && isLate(result))).toEqual([]);
    expect(mesh.envoys.flatMap((envoy) => suspiciousLines(envoy.process.output))).toEqual([]);
  });

  async function weightOf(id: string): Promise<number> {
    const { rows } = await mesh.api<PlanJson>('/v1/plan');
    return rows.flatMap(({ weights }) => weights).find(({ engineId }) => engineId === id)?.weight ?? 0;
  }

  async function alarms(): Promise<string[]> {
    const { alarms: list } = await mesh.api<{ alarms: { id: string }[] }>('/v1/alarms');
    return list.map(({ id }) => id);
  }
});
