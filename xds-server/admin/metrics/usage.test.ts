import { afterAll, describe, expect, it } from 'vitest';
import { Random } from '../../../simulator/random.js';
import { id64 } from '../../../wire/hash.js';
import { LOAD_NAMES, type UsageReport } from '../../../wire/usage-report.js';
import { loadConfig } from '../../config/load.js';
import { exactJson } from '../../exact-json.js';
import { Signals } from '../../signals/signals.js';
import { Node } from '../../signals/testing/life.js';
import { WITH_LATENCY } from '../../signals/testing/one-model.js';
import { PrivateStateReader } from '../../signals/testing/private-state.js';
import type { ShownServer } from '../shown-server.js';
import { familiesText } from './family.js';
import { usageFamilies } from './usage.js';

const HOUR_MS = 3_600_000;
const reader = new PrivateStateReader();
afterAll(() => reader.close());

/** Engine a and frontend f stay, with a model of this hour; all else is of this hour, and has names that are as long as any other. */
function configOf(hour: number) {
  const name = String(100 + hour);
  return loadConfig('/none/fleet.yaml', () =>
    [
      `frontends: [{id: f, region: r}, {id: g${name}, region: r}]`,
      'engines:',
      `- {id: a, region: r, models: [m, m${name}], profile: p, endpoints: ["10.0.0.1:80", "10.0.0.1:${name}"]}`,
      `- {id: e${name}, region: r, models: [m, m${name}], profile: p${name}, endpoints: ["10.0.1.1:${name}"]}`,
      `profiles: {p: ${WITH_LATENCY}, p${name}: ${WITH_LATENCY}}`,
      'classes: {batch: {priority: -1, when: {path: /batch}}}',
      'demand: {f: {models: {m: {requestsPerSecond: 20, promptTokens: 100, outputTokens: 20}}}}',
    ].join('\n'),
  );
}

/** What a node reports, with the loads that all replicas tell of. */
function reportOf(node: Node, config: ReturnType<typeof configOf>, second: number): UsageReport {
  const counts = LOAD_NAMES.map(() => second + 1);
  const loads = config.fleet.engines.flatMap(({ id, endpoints }) =>
    endpoints.map((address) => ({
      ...{ engine: id64(id), replica: id64(address), reports: second + 1, garbled: 0 },
      ...{ sums: counts, counts },
    })),
  );
  const { vms } = node.report(config, second % 20 < 5 ? 'failing' : 'none', second);
  return { vms: vms.map((vm) => ({ ...vm, loads })) };
}

/** Minutes of an hour in which all Envoys are new ones, and after which nothing is heard. */
function live(signals: Signals, hour: number): void {
  const config = configOf(hour);
  const startMs = hour * HOUR_MS;
  const random = new Random(hour);
  signals.reconfigure(config, startMs);
  const nodes = config.fleet.frontends.map(({ id }) => new Node(id, `n${100 + hour}`, random));
  for (let second = 0; second < 40; second++) {
    const nowMs = startMs + second * 1_000;
    for (const node of nodes)
      signals.acceptReport(node.frontendId, node.nodeId, reportOf(node, config, second), nowMs);
    for (const engine of config.fleet.engines) {
      for (const address of engine.endpoints) {
        signals.acceptProbe(engine.id, address, { ok: true }, nowMs);
        signals.acceptPage(engine.id, address, second, nowMs);
      }
      signals.acceptLoad(engine, 2, engine.endpoints.length, nowMs, 0);
    }
    if (second === 20) {
      for (const target of [`e${100 + hour}`, `10.0.0.1:${100 + hour}`])
        signals.act({ action: 'drain', target, forSeconds: 10, by: 'me' }, nowMs);
    }
    signals.evaluate(nowMs);
  }
  signals.evaluate(startMs + HOUR_MS / 2);
}

/** Entries of all maps, sets and lists, however deep. */
function entriesIn(state: unknown): number {
  if (typeof state !== 'object' || state === null || ArrayBuffer.isView(state)) return 0;
  const own = Array.isArray(state) ? state.length : 0;
  return own + Object.values(state).reduce((sum: number, each) => sum + entriesIn(each), 0);
}

describe('of engines, replicas, models, profiles, frontends and Envoys that come and go', () => {
  const signals = new Signals(configOf(0), [], 0);
  const page = () => [...familiesText(usageFamilies({ signals } as unknown as ShownServer))].join('');

  it('what signals know and save, and what metrics show, does not grow', async () => {
    const sizeAfter = async (hours: readonly number[]) => {
      for (const hour of hours) live(signals, hour);
      return {
        lines: page().split('\n').length,
        saved: exactJson(signals.save()).length,
        entries: entriesIn(reader.read(signals)),
      };
    };
    // Envoys are known for a day.
    const early = await sizeAfter(Array.from({ length: 30 }, (_, hour) => hour));
    const late = await sizeAfter(Array.from({ length: 60 }, (_, hour) => 30 + hour));
    for (const what of ['lines', 'saved', 'entries'] as const)
      expect(late[what], what).toBeLessThanOrEqual(1.02 * early[what]);
  }, 60_000);

  it('counts are shown until some minutes after they left, and go on as they were where they are back before', async () => {
    const lineOf = async (what: string) =>
      page()
        .split('\n')
        .find((line) => line.includes(what));
    const nowMs = 130 * HOUR_MS;
    live(signals, 129);
    const counted = await lineOf('engine="e229",what="planned"');
    expect(counted).toBeDefined();
    for (const [hour, atMs] of [
      [130, nowMs],
      [129, nowMs + 200_000],
      [130, nowMs + 400_000],
    ] as const) {
      signals.reconfigure(configOf(hour), atMs);
      signals.evaluate(atMs);
      expect(await lineOf('engine="e229",what="planned"')).toBe(counted);
    }
    signals.evaluate(nowMs + 699_000);
    expect(await lineOf('engine="e229",what="planned"')).toBe(counted);
    signals.evaluate(nowMs + 700_000);
    expect(await lineOf('engine="e229",what="planned"')).toBeUndefined();
  });

  it('sums over the models of an engine never become less when one of these is forgotten', async () => {
    const countOf = async () =>
      page().match(/wardrop_whole_answer_seconds_count\{frontend="f",engine="a"\} (\d+)/)![1];
    live(signals, 140);
    const counted = await countOf();
    signals.reconfigure(configOf(141), 141 * HOUR_MS);
    signals.evaluate(142 * HOUR_MS);
    expect([...signals.totals.engines].some(({ poolId }) => poolId === 'm240')).toBe(false);
    expect(await countOf()).toBe(counted);
  });
});
