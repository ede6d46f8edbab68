import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keysOf, OpenLoop } from './harness/load.js';
import { Mesh, suspiciousLines } from './harness/mesh.js';
import { eventually, sleep } from './harness/process.js';
import { answerOk, StubEngine } from './harness/stub-engine.js';

/** Each engine serves five requests at a time, each in 0.2 s: 25 requests per second. */
const SLOTS = 5;
const SERVICE_MS = 200;
const FULL_RPS = (1_000 / SERVICE_MS) * SLOTS;
const ENGINES = ['a', 'b', 'c'] as const;

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
  const engines = ENGINES.map((id) => new QueueingEngine(id));
  const slow = engines[1]!;
  let mesh: Mesh;

  beforeAll(async () => {
    for (const { stub } of engines) await stub.start();
    mesh = await Mesh.start({
      engines: engines.map(({ stub }) => ({
        id: stub.name,
        region: 'west',
        models: ['demo-8b'],
        profile: 'queueing',
        endpoints: [stub.address],
        metrics: { kind: 'vllm' },
      })),
      rttMs: { west: { a: 1, b: 1, c: 1 } },
      profiles: {
        queueing: {
          work: { secondsPerRequest: 1 / FULL_RPS },
          ttft: { baseSeconds: SERVICE_MS / 1_000, queueSeconds: 0.01 },
          tbot: {},
        },
      },
      policy: { outlierPenalty: 'enforce' },
      demand: { west: { requestsPerSecond: 0.2 * 3 * FULL_RPS, promptTokens: 20, outputTokens: 1 } },
    });
    await mesh.startEnvoy('west');
  });

  afterAll(async () => {
    await mesh?.stop();
    await Promise.all(engines.map(({ stub }) => stub.kill()));
  });

  it('keeps its traffic when its metrics page vanishes, and an alarm tells', async () => {
    const load = startLoad(0.4);
    await sleep(20_000);
    const before = await weightOfB();
    const sinceMs = Date.now();
    slow.hasPage = false;
    await eventually('the alarm', async () => (await alarms()).includes('signal-missing:b'), 20_000);
    await sleep(5_000);
    expect(Math.abs((await weightOfB()) - before)).toBeLessThan(0.05);
    slow.hasPage = true;
    await eventually('the end of the alarm', async () => !(await alarms()).includes('signal-missing:b'));
    const results = (await load.stop()).filter(({ atMs }) => atMs > sinceMs);
    expect(results.filter(({ status }) => status !== 200)).toEqual([]);
  });

  for (const rho of [0.2, 0.8]) {
    it(`is at half its weight within 15 s of turning ten times slower and back within 2 min of recovering, at a utilisation of ${rho}`, async () => {
      const load = startLoad(rho);
      await sleep(25_000);
      const before = await weightOfB();
      expect(before).toBeGreaterThan(0.2);

      slow.serviceMs = 10 * SERVICE_MS;
      await eventually('the weight to halve', async () => (await weightOfB()) <= before / 2, 15_000);
      await sleep(10_000);
      // It stays there, with enough requests to see it recover.
      expect(await weightOfB()).toBeLessThanOrEqual(before / 2);
      expect(await weightOfB()).toBeGreaterThan(0);
      expect(await alarms()).toContain('penalty:b');

      slow.serviceMs = SERVICE_MS;
      await eventually('the weight to come back', async () => (await weightOfB()) >= 0.8 * before, 120_000);
      expect(await alarms()).not.toContain('penalty:a');
      const results = await load.stop();
      expect(results.filter(({ status }) => status !== 200 && status !== 429)).toEqual([]);
      expect(mesh.envoys.flatMap((envoy) => suspiciousLines(envoy.process.output))).toEqual([]);
    }, 240_000);
  }

  function startLoad(rho: number): OpenLoop {
    return new OpenLoop(mesh.envoys[0]!.url, rho * 3 * FULL_RPS, keysOf(400));
  }

  async function weightOfB(): Promise<number> {
    const { rows } = await mesh.api<PlanJson>('/v1/plan');
    return rows[0]!.weights.find(({ engineId }) => engineId === 'b')?.weight ?? 0;
  }

  async function alarms(): Promise<string[]> {
    const { alarms: list } = await mesh.api<{ alarms: { id: string }[] }>('/v1/alarms');
    return list.map(({ id }) => id);
  }
});
