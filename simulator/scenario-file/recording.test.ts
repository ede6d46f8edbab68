import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { id64 } from '../../wire/hash.js';
import { noPoolUsage, noVmUsage } from '../../wire/usage-report.js';
import { loadConfig } from '../../xds-server/config/load.js';
import type { Recorded } from '../../xds-server/control/recording/recording.js';
import { RecordingWriter } from '../../xds-server/control/recording/recording-writer.js';
import { Optimizer } from '../../xds-server/optimizer/index.js';
import { LocalExecutor } from '../../xds-server/optimizer/thread/executor.js';
import { makePlan } from '../../xds-server/plan/make-plan.js';
import { Signals } from '../../xds-server/signals/signals.js';
import { filterModule } from '../filter-host/build.js';
import { policies } from '../policies/index.js';
import { World } from '../virtual/world.js';
import { scenarioOfRecording } from './recording.js';

vi.setConfig({ testTimeout: 60_000 });

const configWith = (profile: string) =>
  loadConfig('/none/fleet.yaml', () =>
    [
      'frontends: [{id: f, region: r}, {id: g, region: s}]',
      'engines:',
      '- {id: a, region: r, models: [m], profile: p, labels: {place: r}, endpoints: ["10.0.0.1:80", "10.0.0.2:80"]}',
      '- {id: b, region: s, models: [m], profile: p, endpoints: ["10.0.0.3:80"]}',
      'network: {rttMs: {f: {a: 2, b: 40}, g: {a: 40, b: 2}}}',
      `profiles: {p: ${profile}}`,
      'demand:',
      '  f: {requestsPerSecond: 60, promptTokens: 374, uncachedPromptTokens: 103, outputTokens: 36, followUpShare: 0.75, turnGapSeconds: 2.5}',
      '  g: {requestsPerSecond: 30, promptTokens: 374, uncachedPromptTokens: 103, outputTokens: 36, followUpShare: 0.75, turnGapSeconds: 2.5}',
      'needs: {stay: {when: {header: {x-stay: "1"}}, engines: {place: r}}}',
    ].join('\n'),
  );

const fitted = configWith(
  '{work: {secondsPerUncachedPromptToken: 4.0e-5, secondsPerOutputToken: 1.6e-4}, ttft: {baseSeconds: 0.012, queueSeconds: 0.003}, tbot: {baseSeconds: 0.009, kappa: 0.56}}',
);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'wardrop-recording-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

/** Requests in a second by frontend, then pool. */
type Offered = (second: number) => Readonly<Record<string, Readonly<Record<string, number>>>>;

/** f doubles after 20 s, and a fifth of g's requests must stay. */
const growing =
  (factor = 1): Offered =>
  (second) => ({
    f: { m: factor * (second > 20 ? 80 : 40) },
    g: { m: factor * 24, 'm~stay': factor * 6 },
  });

interface Heard {
  readonly seconds?: number;
  /** Whether the reports of that second are. */
  readonly isHeard?: (second: number) => boolean;
}

/** 40 s, in which b is down from 10 s to 25 s. */
async function recording(
  offered = growing(),
  config = fitted,
  { seconds = 40, isHeard = () => true }: Heard = {},
): Promise<string> {
  const optimizer = new Optimizer({ executor: () => new LocalExecutor() });
  const writer = new RecordingWriter();
  let text = '';
  const write = (recorded: Recorded) => {
    for (const line of writer.lines(recorded)) text += line;
  };
  const solve = async (atMs: number, isDown: boolean) => {
    const { state } = new Signals(config, [], 0).evaluate(atMs);
    const engines = state.engines.map((engine) =>
      engine.id === 'b'
        ? { ...engine, replicas: engine.replicas.map((r) => ({ ...r, ready: !isDown })) }
        : engine,
    );
    const { profiles, policy } = config;
    const input = { previous: null, state: { ...state, engines }, profiles, policy };
    const { plan } = await makePlan(optimizer, input, () => atMs);
    write({ kind: 'solve', input, times: [atMs], plan });
  };
  await solve(0, false);
  const counts = new Map<string, number>();
  for (let second = 0; second <= seconds; second++) {
    if (second === 10) await solve(10_000, true);
    if (second === 25) await solve(25_000, false);
    for (const [frontendId, pools] of Object.entries(offered(second))) {
      const usages = Object.entries(pools).map(([id, requests]) => {
        const key = `${frontendId} ${id}`;
        counts.set(key, (counts.get(key) ?? 0) + requests);
        return { ...noPoolUsage(id64(id)), offered: counts.get(key)! };
      });
      const report = { vms: [{ ...noVmUsage(1n, second + 1), pools: usages }] };
      if (isHeard(second))
        write({ kind: 'report', atMs: 1000 * second, frontendId, nodeId: frontendId, report });
    }
  }
  await optimizer.close();
  const file = join(folder, 'fleet.jsonl.gz');
  writeFileSync(file, gzipSync(text));
  return file;
}

describe('a recording as a scenario', () => {
  it('has the rates, sizes, outages and needs of what was recorded, and every policy can be tried in it', async () => {
    filterModule();
    const scenario = await scenarioOfRecording(await recording());
    const demands = scenario.frontends.flatMap((frontend) => frontend.demands);
    expect(demands.map(({ id, rate }) => [id, rate.at(7), rate.at(32)])).toEqual([
      ['f m', 40, 80],
      ['g m', 24, 24],
      ['g m~stay', 6, 6],
    ]);
    expect(scenario.classes.map(({ id }) => id)).toEqual(['m', 'm~stay']);
    expect(scenario.faults).toEqual([{ kind: 'engine-down', engine: 'b', from: 10, until: 25 }]);
    const { expected } = demands[0]!.source;
    expect(Math.abs(expected.followUpShare - 0.75)).toBeLessThan(0.03);
    expect(Math.abs(expected.outputTokens / 36 - 1)).toBeLessThan(0.05);
    for (const name of ['nearest', 'wardrop']) {
      const record = await World.run(scenario, policies[name]!, 1);
      expect(record.ends.answered / record.requests).toBeGreaterThan(0.99);
      expect(record.byClass[1]!.e2eSeconds.length).toBeGreaterThan(50);
    }
  });

  it('takes the last seconds for as long as they are', async () => {
    const { frontends } = await scenarioOfRecording(await recording(growing(), fitted, { seconds: 43 }));
    expect(frontends.map(({ demands }) => demands.map(({ rate }) => rate.at(42)))).toEqual([[80], [24, 6]]);
  });

  it('takes requests that are heard of after a silence for spread over it', async () => {
    const isHeard = (second: number) => second < 22 || second > 38;
    const { frontends } = await scenarioOfRecording(await recording(growing(), fitted, { isHeard }));
    const rates = frontends[0]!.demands[0]!.rate;
    for (const at of [26, 31, 37]) expect(rates.at(at)).toBeCloseTo(80);
  });

  it('tells models apart, which engines may share, and whatever shows that a request has a need', async () => {
    filterModule();
    const sizes = 'promptTokens: 300, uncachedPromptTokens: 100, followUpShare: 0.7, turnGapSeconds: 2';
    const config = loadConfig('/none/fleet.yaml', () =>
      [
        'frontends: [{id: f, region: r}, {id: g, region: s}]',
        'engines:',
        '- {id: a, region: r, models: [m], profile: p, endpoints: ["10.0.0.1:80"]}',
        '- {id: b, region: s, models: [m, n], profile: p, labels: {sees: images}, endpoints: ["10.0.0.2:80"]}',
        '- {id: c, region: s, models: [n], profile: p, endpoints: ["10.0.0.3:80"]}',
        'network: {rttMs: {f: {a: 2, b: 40, c: 40}, g: {a: 40, b: 2, c: 2}}}',
        'profiles: {p: {requestsPerSecond: 90, ttft: {baseSeconds: 0.01, queueSeconds: 0.003}, tbot: {baseSeconds: 0.009, kappa: 0.5}}}',
        'filter: {tenantHeader: x-tenant}',
        'needs:',
        '  look: {when: {body: images}, engines: {sees: images}}',
        '  big: {when: {tenant: acme}, engines: {sees: images}}',
        'demand:',
        `  f: {models: {m: {requestsPerSecond: 30, outputTokens: 20, ${sizes}}, n: {outputTokens: 60, ${sizes}}}}`,
        `  g: {models: {n: {requestsPerSecond: 30, outputTokens: 60, ${sizes}}}}`,
      ].join('\n'),
    );
    const offered: Offered = (second) => ({
      f: { m: 30, 'm~big': second > 20 ? 10 : 0 },
      g: { n: second > 20 ? 40 : 20 },
    });
    const scenario = { ...(await scenarioOfRecording(await recording(offered, config))), faults: [] };
    const demands = scenario.frontends.flatMap((frontend) => frontend.demands);
    expect(demands.map(({ id, rate }) => [id, rate.at(7), rate.at(32)])).toEqual([
      ['f m', 30, 30],
      ['f m~big', 0, 10],
      ['g n', 20, 40],
    ]);
    expect(demands.map(({ source }) => Math.round(source.expected.outputTokens / 20))).toEqual([1, 1, 3]);
    expect(scenario.pools.map(({ id, eligible }) => [id, eligible])).toEqual([
      ['m', [true, true, false]],
      ['m~big', [false, true, false]],
      ['n', [false, true, true]],
    ]);
    const [m, , n] = scenario.pools.map(({ slo }) => slo!.e2eSeconds);
    expect(n! / m!).toBeGreaterThan(2);
    for (const [name, policy] of Object.entries(policies)) {
      const record = await World.run(scenario, policy, 1);
      expect([name, record.ends.answered / record.requests]).toEqual([name, 1]);
      expect(record.byClass.every(({ e2eSeconds }) => e2eSeconds.length > 50)).toBe(true);
      expect(record.flows[1]![0]).toBe(0);
    }
  });

  it('counts answers of engines with room as in time, also where the profile knows a rate only', async () => {
    filterModule();
    const scenario = await scenarioOfRecording(
      await recording(growing(0.1), configWith('{requestsPerSecond: 12}')),
    );
    const { good, requests } = await World.run({ ...scenario, faults: [] }, policies.nearest!, 1);
    expect(good / requests).toBeGreaterThan(0.9);
  });

  it('needs requests', async () => {
    await expect(scenarioOfRecording(await recording(growing(0)))).rejects.toThrow(
      'no request came while it was recorded',
    );
  });

  it.each([
    ['', /no such file|ENOENT/],
    [gzipSync('{"wardropRecording":1}\n'), /holds 0 solves and 0 reports/],
    ['no gzip', /no file of wardrop record \(incorrect header check\)/],
  ])('that is none says so: %#', async (content, message) => {
    const file = join(folder, 'bad.gz');
    if (content !== '') writeFileSync(file, content);
    await expect(scenarioOfRecording(file)).rejects.toThrow(message);
  });
});
