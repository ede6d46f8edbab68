import { describe, expect, it } from 'vitest';
import { classKey, id64 } from '../../wire/hash.js';
import {
  type EngineUsage,
  FIRST_TOKEN_BOUNDS,
  LOAD_NAMES,
  noEngineUsage,
  noPoolUsage,
  noVmUsage,
  type UsageReport,
} from '../../wire/usage-report.js';
import { loadConfig } from '../config/load.js';
import { effectiveCapacity } from '../fleet/fleet-state.js';
import type { ClassRate } from '../fleet/operations.js';
import type { ProbeResult } from './readiness/replica-health.js';
import { Signals } from './signals.js';
import { LoadCounts } from './usage/load-counts.js';

const refused: ProbeResult = { ok: false, kind: 'refused', detail: 'connection refused' };

const RATE = '{requestsPerSecond: 10}';
const WITH_LATENCY =
  '{work: {secondsPerRequest: 0.1}, ttft: {baseSeconds: 0.05, queueSeconds: 0.01}, tbot: {baseSeconds: 0.01, kappa: 0.5}, maxFittedRho: 0.95}';

function configOf(
  engineIds: readonly string[],
  rps = 10,
  policy = '{}',
  profile = RATE,
  frontendIds: readonly string[] = ['f'],
) {
  const engines = engineIds.map(
    (id, index) => `{id: ${id}, region: r, models: [m], profile: p, endpoints: [10.0.0.${index + 1}:80]}`,
  );
  return loadConfig('/none/fleet.yaml', () =>
    [
      `frontends: [${frontendIds.map((id) => `{id: ${id}, region: r}`).join(', ')}]`,
      `engines: [${engines.join(', ')}]`,
      `profiles: {p: ${profile}}`,
      `demand: {f: {requestsPerSecond: ${rps}, promptTokens: 100, outputTokens: 20}}`,
      `policy: ${policy}`,
    ].join('\n'),
  );
}

/** A minute of equal traffic to a and b; for the last quarter b takes ten times as long to begin its answers. */
function withSlowB(config: ReturnType<typeof configOf>): Signals {
  const signals = new Signals(config, [], 0);
  const sums = { a: 0, b: 0 };
  for (let second = 0; second <= 60; second++) {
    sums.a += 5 * 0.1;
    sums.b += 5 * (second > 45 ? 1 : 0.1);
    const usage = (sum: number) => ({
      planned: second * 5,
      ended: second * 5,
      firstTokenCount: second * 5,
      firstTokenSecondsSum: sum,
    });
    const report = reportOf(second * 10, { a: usage(sums.a), b: usage(sums.b) });
    signals.acceptReport('f', 'n', report, second * 1_000);
    signals.evaluate(second * 1_000);
  }
  return signals;
}

let sequence = 0;

function reportOf(
  offered: number,
  engines: Readonly<Record<string, Partial<EngineUsage>>> = {},
): UsageReport {
  return {
    vms: [
      {
        ...noVmUsage(1n, ++sequence),
        pools: [{ ...noPoolUsage(id64('m')), offered }],
        engines: Object.entries(engines).map(([id, usage]) => ({
          ...noEngineUsage(id64('m'), id64(id)),
          ...usage,
        })),
        replicas: Object.entries(engines).map(([id, { planned = 0, ended = 0 }]) => ({
          engine: id64(id),
          replica: id64(`${id} 1`),
          sent: planned,
          ended,
        })),
      },
    ],
  };
}

function readyOf(signals: Signals, nowMs: number): Record<string, boolean[]> {
  return Object.fromEntries(
    signals.evaluate(nowMs).state.engines.map(({ id, replicas }) => [id, replicas.map(({ ready }) => ready)]),
  );
}

describe('Signals', () => {
  it('starts from the configured expectation with everything ready', () => {
    const { state } = new Signals(configOf(['a', 'b']), [], 0).evaluate(5_000);
    expect(state.demands).toEqual([
      {
        frontendId: 'f',
        poolId: 'm',
        priority: 0,
        requestsPerSecond: 10,
        promptTokens: 100,
        uncachedPromptTokens: 100,
        outputTokens: 20,
        followUpShare: 0.5,
        turnGapSeconds: 30,
        source: 'expected',
      },
    ]);
    expect(state.engines.map(({ replicas }) => replicas[0]!.ready)).toEqual([true, true]);
    expect(state.settledSeconds).toBe(5);
  });

  it('a step of demand, or an engine that fails, makes conditions new for the pools that share its engines and for no others', () => {
    const config = loadConfig('/none/fleet.yaml', () =>
      [
        'frontends: [{id: f, region: r}]',
        'engines:',
        '- {id: a, region: r, models: [m], profile: p, endpoints: ["10.0.0.1:80"]}',
        '- {id: b, region: r, models: [other], profile: p, endpoints: ["10.0.0.2:80"]}',
        'profiles: {p: {requestsPerSecond: 100}}',
        'demand: {f: {models: {m: {requestsPerSecond: 10}, other: {requestsPerSecond: 10}}}}',
      ].join('\n'),
    );
    const signals = new Signals(config, [], 0);
    let offered = 0;
    for (let second = 1; second <= 300; second++) {
      offered += second <= 200 ? 10 : 40;
      signals.acceptReport('f', 'n', reportOf(offered), second * 1_000);
      signals.evaluate(second * 1_000);
    }
    const { settledSecondsByPool } = signals.evaluate(300_000).state;
    expect(settledSecondsByPool!.m).toBeLessThan(100);
    expect(settledSecondsByPool!.other).toBe(300);
    const engine = config.fleet.engines[1]!;
    signals.acceptProbe('b', engine.endpoints[0]!, refused, 310_000);
    signals.acceptProbe('b', engine.endpoints[0]!, refused, 310_500);
    const later = signals.evaluate(311_000).state;
    expect(later.settledSecondsByPool!.m).toBeGreaterThan(settledSecondsByPool!.m!);
  });

  it('takes nothing for a surge or a fall that it hears late because this process was held up', () => {
    for (const heldSeconds of [4, 12, 20, 60]) {
      const signals = new Signals(configOf(['a'], 60), [], 0);
      const report = (countedMs: number, atMs: number) =>
        signals.acceptReport('f', 'n', reportOf(Math.round(0.06 * countedMs)), atMs);
      for (let atMs = 500; atMs <= 60_000; atMs += 500) {
        report(atMs, atMs);
        signals.evaluate(atMs);
      }
      const onMs = 60_000 + 1_000 * heldSeconds;
      signals.noteHoldUp(onMs);
      // What was sent while nobody listened, then what is sent now.
      for (let countedMs = 60_500; countedMs < onMs; countedMs += 5_500) report(countedMs, onMs);
      for (let atMs = onMs + 300; atMs < onMs + 30_000; atMs += 500) {
        report(atMs, atMs);
        if (atMs < onMs + 1_000) continue;
        const { state } = signals.evaluate(atMs);
        expect(Math.abs(state.demands[0]!.requestsPerSecond - 60)).toBeLessThan(3);
      }
    }
  });

  it('knows a metrics page to stand still by the answers that Envoys see, and forgets the work from elsewhere that it showed', () => {
    const config = configOf(['a'], 10, '{}', WITH_LATENCY);
    const signals = new Signals(config, [], 0);
    const engine = config.fleet.engines[0]!;
    const address = engine.endpoints[0]!;
    const standing: number[] = [];
    for (let second = 0; second <= 60; second++) {
      const atMs = second * 1_000;
      const ended = 10 * second;
      const { vms } = reportOf(ended, { a: { planned: ended + 2, ended, wholeCount: ended } });
      const replicas = [{ engine: id64('a'), replica: id64(address), sent: ended + 2, ended }];
      signals.acceptReport('f', 'n', { vms: [{ ...vms[0]!, replicas }] }, atMs);
      if (second % 2 === 1) continue;
      // It grows for half a minute, and then says for good that the engine has many requests.
      const sinceMs = signals.acceptPage('a', address, 100 * Math.min(second, 30), atMs);
      if (sinceMs !== undefined) standing.push(second, sinceMs);
      else signals.acceptLoad(engine, second < 30 ? 2 : 12, 1, atMs);
    }
    expect(standing.slice(0, 2)).toEqual([38, 30_000]);
    expect(signals.evaluate(60_000).state.engines[0]!.health).toBe(1);
  });

  it('goes on with the rates of before a restart', () => {
    const held = [{ frontendId: 'f', poolId: 'm', requestsPerSecond: 33 }];
    const { state } = new Signals(configOf(['a']), held, 10_000).evaluate(10_000);
    expect(state.demands[0]).toMatchObject({ requestsPerSecond: 33, source: 'held' });
  });

  it('takes requests for as large as answers tell, also after a restart, and tells work by that', () => {
    const config = configOf(['a'], 10, '{}', WITH_LATENCY);
    const signals = new Signals(config, [], 0);
    for (let second = 0; second <= 640; second++) {
      const answers = 10 * second;
      const { vms } = reportOf(answers, {
        a: { planned: answers, ended: answers, usageCount: answers, wholeCount: answers },
      });
      const pools = vms[0]!.pools.map((pool) => ({
        ...pool,
        promptCount: answers,
        promptTokens: answers * 800,
        cachedTokens: answers * 600,
        cachedOfTokens: answers * 800,
        outputCount: answers,
        outputTokens: answers * 21,
      }));
      signals.acceptReport('f', 'n', { vms: [{ ...vms[0]!, pools }] }, second * 1_000);
      signals.evaluate(second * 1_000);
    }
    const sizes = { promptTokens: 800, uncachedPromptTokens: 200, outputTokens: 21 };
    const { state, mixes } = signals.evaluate(640_000);
    expect(state.demands[0]).toMatchObject(sizes);
    expect(mixes.get('a')).toEqual({ uncachedPromptTokens: 200, outputTokens: 21 });
    expect(signals.requestSizes('f', 'm')).toMatchObject({
      source: 'measured',
      configured: { promptTokens: 100, uncachedPromptTokens: 100, outputTokens: 20 },
    });

    const restarted = new Signals(config, [], 650_000);
    expect(restarted.requestSizes('f', 'm')).toMatchObject({ source: 'configured', measured: null });
    restarted.resume(signals.operations, 650_000);
    expect(restarted.evaluate(650_000).state.demands[0]).toMatchObject(sizes);
    restarted.reconfigure(configOf(['a'], 20), 660_000);
    expect(restarted.evaluate(660_000).state.demands[0]).toMatchObject(sizes);
  });

  it('measures demand and keeps it when the frontend falls silent', () => {
    const signals = new Signals(configOf(['a'], 0), [], 0);
    for (let second = 0; second <= 60; second++) {
      signals.acceptReport('f', 'n', reportOf(second * 50), second * 1_000);
      signals.evaluate(second * 1_000);
    }
    expect(signals.evaluate(60_000).state.demands[0]!.requestsPerSecond).toBeCloseTo(50);
    const later = signals.evaluate(3_600_000);
    expect(later.state.demands[0]).toMatchObject({ source: 'held', isUnheard: true });
    expect(later.state.demands[0]!.requestsPerSecond).toBeCloseTo(50);
    expect(later.silentFrontends).toEqual([{ frontendId: 'f', silentSeconds: 3_540 }]);
  });

  it('takes a report that only repeats the last one for silence, and one of an idle filter for no demand', () => {
    const signals = new Signals(configOf(['a']), [], 0);
    let report = reportOf(0);
    const tell = (from: number, to: number, next: (second: number) => UsageReport) => {
      for (let second = from; second <= to; second++) {
        report = next(second);
        signals.acceptReport('f', 'n', report, second * 1_000);
        signals.evaluate(second * 1_000);
      }
      return signals.evaluate(to * 1_000);
    };
    tell(0, 60, (second) => reportOf(second * 50));
    const frozen = tell(61, 120, () => report);
    expect(frozen.state.demands[0]).toMatchObject({ source: 'held' });
    expect(frozen.state.demands[0]!.requestsPerSecond).toBeCloseTo(50, 0);
    expect(frozen.silentFrontends).toEqual([{ frontendId: 'f', silentSeconds: 60 }]);
    const thawed = tell(121, 150, (second) => reportOf(second * 50));
    expect(thawed.state.demands[0]!.requestsPerSecond).toBeCloseTo(50, 0);
    const idle = tell(151, 200, () => reportOf(150 * 50));
    expect(idle.state.demands[0]).toMatchObject({ source: 'measured' });
    expect(idle.state.demands[0]!.requestsPerSecond).toBeLessThan(1);
  });

  it('counts requests that clients send again as demand: they are as much work as the first time', () => {
    const measured = (retriesPerSecond: number) => {
      const signals = new Signals(configOf(['a']), [], 0);
      for (let second = 0; second <= 60; second++) {
        const { vms } = reportOf(second * 10);
        const pools = vms[0]!.pools.map((pool) => ({ ...pool, clientRetries: second * retriesPerSecond }));
        signals.acceptReport('f', 'n', { vms: [{ ...vms[0]!, pools }] }, second * 1_000);
        signals.evaluate(second * 1_000);
      }
      return signals.evaluate(60_000).state.demands[0]!.requestsPerSecond;
    };
    expect(measured(0)).toBeCloseTo(10, 0);
    expect(measured(20)).toBeCloseTo(30, 0);
  });

  it('measures the demand of each class, which begins at nothing for all but the usual one', () => {
    const config = configOf(['a']);
    const when = { kind: 'path' as const, prefix: '/batch' };
    const fleet = { ...config.fleet, classes: [{ id: 'batch', priority: -10, when }] };
    const signals = new Signals({ ...config, fleet }, [], 0);
    const rates = (nowMs: number) =>
      signals
        .evaluate(nowMs)
        .state.demands.map(({ priority, requestsPerSecond }) => [priority, Math.round(requestsPerSecond)]);
    expect(rates(0)).toEqual([
      [0, 10],
      [-10, 0],
    ]);
    for (let second = 0; second <= 60; second++) {
      const { vms } = reportOf(second * 20);
      const batch = { ...noPoolUsage(classKey(id64('m'), -10)), offered: second * 40 };
      const report = { vms: [{ ...vms[0]!, pools: [...vms[0]!.pools, batch] }] };
      signals.acceptReport('f', 'n', report, second * 1_000);
      signals.evaluate(second * 1_000);
    }
    expect(rates(60_000)).toEqual([
      [0, 20],
      [-10, 40],
    ]);
    expect(signals.totals.pools[0]!.offered).toBe(60 * 60);
  });

  it('goes on with the demand of each class after a restart, and with that of the row where only this is known', () => {
    const config = configOf(['a']);
    const when = { kind: 'path' as const, prefix: '/batch' };
    const classes = [{ id: 'batch', priority: -10, when }];
    const withClasses = { ...config, fleet: { ...config.fleet, classes } };
    const signals = new Signals(withClasses, [], 0);
    for (let second = 0; second <= 60; second++) {
      const { vms } = reportOf(second * 20);
      const batch = { ...noPoolUsage(classKey(id64('m'), -10)), offered: second * 40 };
      const report = { vms: [{ ...vms[0]!, pools: [...vms[0]!.pools, batch] }] };
      signals.acceptReport('f', 'n', report, second * 1_000);
      signals.evaluate(second * 1_000);
    }
    const ratesAfter = (held: readonly ClassRate[], by = withClasses) =>
      new Signals(by, held, 65_000)
        .evaluate(65_000)
        .state.demands.map(({ priority, requestsPerSecond, source }) => [
          priority,
          Math.round(requestsPerSecond),
          source,
        ]);
    const { rates } = signals.operations;
    expect(ratesAfter(rates!)).toEqual([
      [0, 20, 'held'],
      [-10, 40, 'held'],
    ]);
    expect(ratesAfter([{ frontendId: 'f', poolId: 'm', requestsPerSecond: 60 }])).toEqual([
      [0, 60, 'held'],
      [-10, 0, 'expected'],
    ]);
    // Those of a class that is no more, or has another priority, are still sent.
    expect(ratesAfter(rates!, config as typeof withClasses)).toEqual([[0, 60, 'held']]);
    const renumbered = classes.map((each) => ({ ...each, priority: -5 }));
    expect(ratesAfter(rates!, { ...config, fleet: { ...config.fleet, classes: renumbered } })).toEqual([
      [0, 60, 'held'],
      [-5, 0, 'expected'],
    ]);
    expect(new Signals(withClasses, [], 0).operations.rates).toEqual([]);
    expect(new Signals(config, [], 0).operations).not.toHaveProperty('rates');
  });

  it('takes a dead replica out and restarts the clock of settled conditions', () => {
    const signals = new Signals(configOf(['a', 'b']), [], 0);
    signals.evaluate(0);
    signals.acceptProbe('a', '10.0.0.1:80', refused, 60_000);
    signals.acceptProbe('a', '10.0.0.1:80', refused, 60_100);
    expect(readyOf(signals, 60_100)).toEqual({ a: [false], b: [true] });
    expect(signals.evaluate(61_100).state.settledSeconds).toBe(1);
  });

  it('never empties a pool: the last replicas keep their readiness', () => {
    const signals = new Signals(configOf(['a', 'b']), [], 0);
    signals.evaluate(0);
    for (const [id, address] of [
      ['a', '10.0.0.1:80'],
      ['b', '10.0.0.2:80'],
    ] as const) {
      signals.acceptProbe(id, address, refused, 1_000);
      signals.acceptProbe(id, address, refused, 1_100);
      signals.evaluate(1_100);
    }
    expect(readyOf(signals, 2_000)).toEqual({ a: [false], b: [true] });
    expect(signals.evaluate(2_000).heldPools).toEqual(['m']);
    signals.acceptProbe('a', '10.0.0.1:80', { ok: true }, 3_000);
    signals.acceptProbe('a', '10.0.0.1:80', { ok: true }, 3_500);
    expect(readyOf(signals, 3_500)).toEqual({ a: [true], b: [false] });
  });

  describe('an engine that is the last one of a pool', () => {
    /** Engine b alone serves n; m has a, too. */
    const config = loadConfig('/none/fleet.yaml', () =>
      [
        'frontends: [{id: f, region: r}]',
        'engines:',
        '- {id: a, region: r, models: [m], profile: p, endpoints: [10.0.0.1:80]}',
        '- {id: b, region: r, models: [m, n], profile: p, endpoints: [10.0.0.2:80]}',
        `profiles: {p: ${RATE}}`,
      ].join('\n'),
    );
    const signals = () => new Signals(config, [], 0);
    const engineIdsOf = (view: ReturnType<Signals['evaluate']>) =>
      Object.fromEntries(view.state.fleet.pools.map(({ id, engineIds }) => [id, engineIds]));
    const probe = (to: Signals, id: string, result: ProbeResult, nowMs: number) => {
      const address = id === 'a' ? '10.0.0.1:80' : '10.0.0.2:80';
      for (let time = 0; time < 2; time++) to.acceptProbe(id, address, result, nowMs);
    };

    it('and lost is none of pools that have others, until it is back; both restart the clock of settled conditions', () => {
      const lost = signals();
      expect(engineIdsOf(lost.evaluate(0))).toEqual({ m: ['a', 'b'], n: ['b'] });
      probe(lost, 'b', refused, 60_000);
      const view = lost.evaluate(60_000);
      expect(engineIdsOf(view)).toEqual({ m: ['a'], n: ['b'] });
      expect(view.state.fleet.pools[0]!.lastResortIds).toEqual(['b']);
      expect(view.heldPools).toEqual(['n']);
      expect(readyOf(lost, 70_000)).toEqual({ a: [true], b: [true] });
      expect(lost.evaluate(70_000).state.settledSeconds).toBe(10);
      probe(lost, 'b', { ok: true }, 90_000);
      expect(engineIdsOf(lost.evaluate(90_000))).toEqual({ m: ['a', 'b'], n: ['b'] });
      expect(lost.evaluate(91_000).state.settledSeconds).toBe(1);
    });

    it('and lost stays in all of them when those have nobody else, either', () => {
      const lost = signals();
      lost.evaluate(0);
      for (const id of ['a', 'b']) probe(lost, id, refused, 60_000);
      expect(engineIdsOf(lost.evaluate(60_000))).toEqual({ m: ['a', 'b'], n: ['b'] });
      probe(lost, 'a', { ok: true }, 61_000);
      expect(engineIdsOf(lost.evaluate(61_000))).toEqual({ m: ['a'], n: ['b'] });
    });

    it('and drained is none of pools that have others', () => {
      const drained = signals();
      drained.act({ action: 'drain', target: 'b', overSeconds: 0, by: 'me' }, 1_000);
      const view = drained.evaluate(1_000);
      expect(engineIdsOf(view)).toEqual({ m: ['a'], n: ['b'] });
      expect(view.state.engines.map(({ drain }) => drain)).toEqual([1, 1]);
    });

    it('and lost leaves a drained one, which answers, the pools that both serve', () => {
      const both = signals();
      both.evaluate(0);
      both.act({ action: 'drain', target: 'a', overSeconds: 0, by: 'me' }, 1_000);
      probe(both, 'b', refused, 2_000);
      const view = both.evaluate(2_000);
      expect(engineIdsOf(view)).toEqual({ m: ['a'], n: ['b'] });
      expect(view.state.engines.map(effectiveCapacity)).toEqual([1, 1]);
    });
  });

  it('leaves out an engine that frontends only see failing although its health page is fine', () => {
    const signals = new Signals(configOf(['a', 'b']), [], 0);
    signals.acceptReport('f', 'n', reportOf(0), 0);
    signals.acceptReport('f', 'n', reportOf(10, { a: { failures: 6 }, b: { status2xx: 4 } }), 1_000);
    signals.acceptProbe('a', '10.0.0.1:80', { ok: true }, 1_000);
    expect(readyOf(signals, 1_000)).toEqual({ a: [false], b: [true] });
    expect([...signals.evaluate(1_000).vetoes.keys()]).toEqual(['a']);
    expect(readyOf(signals, 11_000)).toEqual({ a: [true], b: [true] });
  });

  it('failures of an engine that was down do not keep it out when it is back', () => {
    const signals = new Signals(configOf(['a', 'b']), [], 0);
    signals.acceptReport('f', 'n', reportOf(0), 0);
    signals.acceptProbe('a', '10.0.0.1:80', refused, 500);
    signals.acceptProbe('a', '10.0.0.1:80', refused, 600);
    signals.acceptReport('f', 'n', reportOf(10, { a: { failures: 6 } }), 1_000);
    expect(readyOf(signals, 1_000)).toEqual({ a: [false], b: [true] });
    expect(signals.evaluate(1_000).vetoes.size).toBe(0);
    signals.acceptProbe('a', '10.0.0.1:80', { ok: true }, 1_500);
    signals.acceptProbe('a', '10.0.0.1:80', { ok: true }, 2_000);
    expect(readyOf(signals, 2_000)).toEqual({ a: [true], b: [true] });
  });

  it('keeps what it knows of engines that stay when the configuration changes', () => {
    const signals = new Signals(configOf(['a', 'b']), [], 0);
    signals.acceptProbe('b', '10.0.0.2:80', refused, 1_000);
    signals.acceptProbe('b', '10.0.0.2:80', refused, 1_100);
    signals.evaluate(1_100);
    signals.reconfigure(configOf(['a', 'b', 'c']), 5_000);
    expect(readyOf(signals, 5_000)).toEqual({ a: [true], b: [false], c: [true] });
    signals.reconfigure(configOf(['a']), 6_000);
    expect(readyOf(signals, 6_000)).toEqual({ a: [true] });
  });

  it('adds up what frontends report of pools and engines it knows', () => {
    const signals = new Signals(configOf(['a']), [], 0);
    signals.acceptReport('f', 'n', reportOf(100), 0);
    signals.acceptReport(
      'f',
      'n',
      reportOf(130, { a: { planned: 30, status2xx: 29 }, gone: { planned: 9 } }),
      1_000,
    );
    signals.acceptReport('f', 'n', reportOf(140, { a: { planned: 40, status2xx: 39 } }), 2_000);
    expect(signals.totals.pools).toMatchObject([{ frontendId: 'f', poolId: 'm', offered: 40 }]);
    expect(signals.totals.engines).toMatchObject([{ engineId: 'a', planned: 40, status2xx: 39 }]);
  });

  it('is blind only when nothing is heard of any engine or frontend, and then keeps everything as it was', () => {
    const signals = new Signals(configOf(['a', 'b']), [], 0);
    const hangs: ProbeResult = { ok: false, kind: 'timeout', detail: 'no answer' };
    signals.acceptReport('f', 'n', reportOf(0), 0);
    signals.acceptReport('f', 'n', reportOf(100), 2_000);
    const before = signals.evaluate(2_000);
    for (const [id, address] of [
      ['a', '10.0.0.1:80'],
      ['b', '10.0.0.2:80'],
    ] as const) {
      signals.acceptProbe(id, address, hangs, 5_000);
      signals.acceptProbe(id, address, hangs, 5_100);
      signals.evaluate(5_100);
    }
    expect(signals.evaluate(6_000).isBlind).toBe(false);
    const blind = signals.evaluate(60_000);
    expect(blind.isBlind).toBe(true);
    expect(blind.state.engines).toEqual(before.state.engines);
    signals.acceptReport('f', 'n', reportOf(200), 61_000);
    expect(signals.evaluate(61_000).isBlind).toBe(false);
  });

  it('keeps what reports say of streams by engine, and of loads by replica with their age', () => {
    const signals = new Signals(configOf(['a', 'b']), [], 0);
    const buckets = (one: number) => FIRST_TOKEN_BOUNDS.map(() => 0).concat(one);
    const report = (streams: number, reports: number, kvUse: number): UsageReport => ({
      vms: [
        {
          ...noVmUsage(1n, ++sequence),
          latencies: [{ engine: id64('a'), firstTokens: buckets(streams), paces: [] }],
          loads: [id64('10.0.0.1:80'), id64('10.9.9.9:80')].map((replica) => ({
            engine: id64('a'),
            replica,
            reports,
            garbled: 1,
            sums: LOAD_NAMES.map((name) => (name === 'kvUse' ? kvUse : 0)),
            counts: LOAD_NAMES.map((name) => (name === 'kvUse' ? reports : 0)),
          })),
        },
      ],
    });
    signals.acceptReport('f', 'n', report(0, 0, 0), 0);
    signals.acceptReport('f', 'n', report(3, 2, 1), 1_000);
    signals.acceptReport('f', 'n', report(5, 6, 4), 2_000);
    signals.acceptReport('f', 'n', report(5, 6, 4), 3_000);
    expect(signals.totals.latencies).toEqual([
      { frontendId: 'f', engineId: 'a', firstTokens: buckets(5), paces: [] },
    ]);
    expect(signals.totals.loads).toMatchObject([{ engineId: 'a', address: '10.0.0.1:80', reports: 6 }]);
    expect([...signals.totals.load('10.0.0.1:80')!.readings]).toEqual([
      ['kvUse', { value: 0.75, atMs: 2_000 }],
    ]);
  });

  it('takes work that an engine gets from elsewhere off its capacity, and holds that while nothing is known', () => {
    const config = configOf(['a', 'b']);
    const signals = new Signals(config, [], 0);
    const [engine] = config.fleet.engines;
    const report = (second: number) =>
      reportOf(second * 5, { a: { planned: second * 5, ended: Math.max(0, second * 5 - 10) } });
    for (let second = 0; second <= 40; second++) {
      signals.acceptReport('f', 'n', report(second), second * 1_000);
      // Twenty requests there, ten of them ours, which are half of what the engine can serve.
      if (second >= 20 && second % 2 === 0) signals.acceptLoad(engine!, 20, 1, second * 1_000);
    }
    expect(signals.evaluate(40_000).state.engines.map(({ health }) => health)).toEqual([0.5, 1]);
    signals.acceptLoad(engine!, 0, 1, 50_000);
    const held = signals.evaluate(50_000);
    expect(held.state.engines[0]!.health).toBe(0.5);
    expect(held.outside.get('a')).toMatchObject({ requests: 10 });
  });

  it.each([
    ['observed', '{mode: observe}'],
    ['half observed', '{steerPercent: 50}'],
    ['native', '{}\nsteering: native'],
  ])(
    'takes no requests for work from elsewhere of which the engine is learnt with the response: %s',
    (_, policy) => {
      const config = configOf(['a', 'b'], 10, policy, WITH_LATENCY);
      const signals = new Signals(config, [], 0);
      for (let second = 0; second <= 40; second++) {
        // They wait for an answer and are counted nowhere until it comes.
        signals.acceptReport('f', 'n', reportOf(second * 5), second * 1_000);
        if (second % 2 === 0) signals.acceptLoad(config.fleet.engines[0]!, 20, 1, second * 1_000);
      }
      expect(signals.evaluate(40_000).state.engines[0]!.health).toBe(1);
    },
  );

  it('takes nothing for work from elsewhere while Envoys may call a control server that is not heard', () => {
    const signals = new Signals(configOf(['a', 'b']), [], 0);
    const [engine] = configOf(['a', 'b']).fleet.engines;
    const healthAfter = (fromSecond: number, toSecond: number) => {
      for (let second = fromSecond; second <= toSecond; second++) {
        const counts = { planned: second * 5, ended: Math.max(0, second * 5 - 10) };
        signals.acceptReport('f', 'n', reportOf(second * 5, { a: counts }), second * 1_000);
        if (second >= 20 && second % 2 === 0) signals.acceptLoad(engine!, 20, 1, second * 1_000);
      }
      return signals.evaluate(toSecond * 1_000).state.engines[0]!.health;
    };
    signals.notePartial(true, 0);
    expect(healthAfter(0, 40)).toBe(1);
    signals.notePartial(false, 40_000);
    expect(healthAfter(41, 80)).toBe(0.5);
  });

  it('takes no requests of a silent frontend for work from elsewhere, as its demand is held', () => {
    const config = configOf(['a', 'b'], 10, '{}', RATE, ['f', 'g']);
    const signals = new Signals(config, [], 0);
    const [engine] = config.fleet.engines;
    for (let second = 0; second <= 120; second++) {
      const counts = { planned: second * 5, ended: Math.max(0, second * 5 - 10) };
      signals.acceptReport('f', 'n', reportOf(second * 5, { a: counts }), second * 1_000);
      if (second <= 20) signals.acceptReport('g', 'o', reportOf(second * 5, { a: counts }), second * 1_000);
      // Ten of each, all the time.
      if (second >= 10 && second % 2 === 0) signals.acceptLoad(engine!, 20, 1, second * 1_000);
    }
    const { state, silentFrontends } = signals.evaluate(120_000);
    expect(silentFrontends).toEqual([{ frontendId: 'g', silentSeconds: 100 }]);
    expect(state.demands.map(({ frontendId }) => frontendId)).toEqual(['f', 'g']);
    expect(state.engines[0]!.health).toBe(1);
  });

  it('judges no engine by what reports make good after a silence', () => {
    const signals = new Signals(configOf(['a', 'b'], 10, '{}', WITH_LATENCY), [], 0);
    let sum = 0;
    for (let second = 0; second <= 130; second++) {
      // Slow while nobody tells of it.
      sum += 5 * (second > 60 && second <= 120 ? 1 : 0.1);
      const usage = { planned: second * 5, ended: second * 5, firstTokenCount: second * 5 };
      const slow = { ...usage, firstTokenSecondsSum: sum };
      const usual = { ...usage, firstTokenSecondsSum: second * 5 * 0.1 };
      if (second <= 60 || second > 120)
        signals.acceptReport('f', 'n', reportOf(second * 10, { a: usual, b: slow }), second * 1_000);
      const { engines } = signals.evaluate(second * 1_000).state;
      expect(engines.map(({ latencyFactor }) => latencyFactor)).toEqual([1, 1]);
    }
  });

  it('plans an engine that is full before its profile says so with what it gets done, until it is told otherwise', () => {
    const config = configOf(['a', 'b'], 20, '{}', WITH_LATENCY);
    const signals = new Signals(config, [], 0);
    const run = (to: number, from: number) => {
      for (let second = from; second <= to; second++) {
        const answered = { wholeCount: second * 7, ended: second * 7 };
        const usage = { ...answered, planned: second * 7 + Math.min(100, 10 * second) };
        signals.acceptReport('f', 'n', reportOf(second * 10, { b: usage }), second * 1_000);
        signals.evaluate(second * 1_000);
      }
      return signals.evaluate(to * 1_000);
    };
    const view = run(110, 0);
    expect(view.state.engines.map(({ health }) => health)).toEqual([1, expect.closeTo(0.7)]);
    const corrected = view.capacities.filter(({ state }) => state === 'corrected');
    expect(corrected).toMatchObject([{ engineId: 'b', endsWhen: expect.anything() }]);
    expect(view.drifts).toMatchObject([{ profileId: 'p', kind: 'work' }]);

    const restarted = new Signals(config, [], 120_000);
    restarted.resume(signals.operations, 120_000);
    expect(restarted.evaluate(120_000).state.engines[1]!.health).toBeCloseTo(0.7);

    const slower = WITH_LATENCY.replace('secondsPerRequest: 0.1', 'secondsPerRequest: 0.14');
    const refitted = new Signals(configOf(['a', 'b'], 20, '{}', slower), [], 120_000);
    refitted.resume(signals.operations, 120_000);
    expect(refitted.evaluate(120_000).state.engines[1]!.health).toBe(1);

    const observed = new Signals(configOf(['a', 'b'], 20, '{outlierPenalty: observe}', WITH_LATENCY), [], 0);
    observed.resume(signals.operations, 120_000);
    expect(observed.evaluate(120_000).state.engines[1]!.health).toBe(1);
    const shown = observed.evaluate(121_000).capacities.filter(({ sinceMs }) => sinceMs !== null);
    expect(shown).toMatchObject([{ engineId: 'b', state: 'observed' }]);

    signals.act({ action: 'release-penalty', target: 'b', by: 'me' }, 110_000);
    expect(run(130, 111).state.engines[1]!.health).toBe(1);
  });

  it('takes what Envoys count of answers for what a full engine gets done where no filter tells', () => {
    const shareAt = (doneRps: number) => {
      const signals = new Signals(configOf(['a', 'b'], 10, '{}', WITH_LATENCY), [], 0);
      const counts = new LoadCounts(1n);
      for (let second = 0; second <= 110; second++) {
        const full = second === 0 ? { issued: 60, succeeded: 0 } : { issued: doneRps, succeeded: doneRps };
        const engines = [{ engineId: 'b', ...full, failed: 0, inProgress: 60 }];
        const report = counts.add([{ poolId: 'm', dropped: 0, engines }]);
        signals.acceptLoadReport('f', 'n', report, second * 1_000);
        signals.evaluate(second * 1_000);
      }
      return signals.evaluate(110_000).state.engines[1]!.health;
    };
    expect(shareAt(10)).toBe(1);
    expect(shareAt(7)).toBeCloseTo(0.7);
  });

  it('takes up no correction of an engine that is not configured any more', () => {
    const signals = new Signals(configOf(['a']), [], 0);
    const gone = { engineId: 'b', share: 0.7, sinceMs: 0 };
    signals.resume({ ...signals.operations, capacities: [gone, { ...gone, engineId: 'a' }] }, 0);
    expect(signals.evaluate(0).capacities.map(({ engineId }) => engineId)).toEqual(['a']);
    expect(signals.operations.capacities).toMatchObject([{ engineId: 'a', share: 0.7 }]);
  });

  it('penalises an engine that turns slow, in capacity and latency, and goes on with that after a restart', () => {
    const config = configOf(['a', 'b'], 10, '{}', WITH_LATENCY);
    const signals = withSlowB(config);
    const [a, b] = signals.evaluate(61_000).state.engines;
    expect(a).toMatchObject({ penalty: 0, latencyFactor: 1 });
    expect(b!.latencyFactor).toBeGreaterThan(5);
    expect(b!.penalty).toBeCloseTo(1 - 1 / b!.latencyFactor);

    const restarted = new Signals(config, [], 70_000);
    restarted.resume(signals.operations, 70_000);
    expect(restarted.evaluate(70_000).state.engines[1]).toMatchObject({ latencyFactor: b!.latencyFactor });
    restarted.act({ action: 'release-penalty', target: 'b', by: 'me' }, 71_000);
    expect(restarted.evaluate(71_000).state.engines[1]).toMatchObject({ latencyFactor: 1, penalty: 0 });
  });

  it('takes an engine for as fast as it is, not as its profile says, and shows both', () => {
    const profile = (seconds: number) =>
      `{work: {secondsPerRequest: ${seconds}}, ttft: {baseSeconds: ${seconds}, queueSeconds: 0.01}, tbot: {}, maxFittedRho: 0.95}`;
    const config = loadConfig('/none/fleet.yaml', () =>
      [
        'frontends: [{id: f, region: r}]',
        'engines:',
        ...['a', 'b', 'c'].map(
          (id, at) =>
            `- {id: ${id}, region: r, models: [m], profile: ${id === 'c' ? 'fast' : 'p'}, endpoints: [10.0.0.${at + 1}:80]}`,
        ),
        `profiles: {p: ${profile(0.3)}, fast: ${profile(0.1)}}`,
        'demand: {f: {requestsPerSecond: 3, promptTokens: 100, outputTokens: 1}}',
      ].join('\n'),
    );
    const signals = new Signals(config, [], 0);
    for (let second = 0; second <= 60; second++) {
      // Every engine takes 0.3 s; the profile of c says 0.1.
      const usage = {
        planned: second,
        ended: second,
        firstTokenCount: second,
        firstTokenSecondsSum: 0.3 * second,
      };
      signals.acceptReport('f', 'n', reportOf(3 * second, { a: usage, b: usage, c: usage }), second * 1_000);
      signals.evaluate(second * 1_000);
    }
    const { state, outliers } = signals.evaluate(61_000);
    expect(state.engines.map(({ latencyFactor }) => Math.round(10 * latencyFactor) / 10)).toEqual([1, 1, 3]);
    expect(state.engines[2]!.penalty).toBeCloseTo(2 / 3, 1);
    expect(outliers[2]).toMatchObject({
      engineId: 'c',
      state: 'penalised',
      evidence: { observedSeconds: expect.closeTo(0.3, 2), expectedSeconds: expect.closeTo(0.1, 2) },
    });
  });

  it('gives an engine that is healthy before it can serve little until it serves, and then its share step by step', () => {
    const profile = WITH_LATENCY;
    const signals = new Signals(configOf(['a', 'b'], 12, '{}', profile), [], 0);
    const joinsAt = 60;
    const servesAt = joinsAt + 90;
    const sent = { a: 0, b: 0, c: 0 };
    const shares: number[] = [];
    for (let second = 0; second <= servesAt + 90; second++) {
      if (second === joinsAt)
        signals.reconfigure(configOf(['a', 'b', 'c'], 12, '{}', profile), second * 1_000);
      const { engines } = signals.evaluate(second * 1_000).state;
      const capacities = engines.map((engine) => effectiveCapacity(engine));
      const total = capacities.reduce((sum, capacity) => sum + capacity, 0);
      shares.push((capacities[2] ?? 0) / total);
      for (const [at, { id }] of engines.entries()) {
        sent[id as 'a'] += (12 * capacities[at]!) / total;
      }
      const usage = (planned: number, ended: number) => ({
        planned,
        ended,
        status2xx: ended,
        firstTokenCount: ended,
        firstTokenSecondsSum: 0.06 * ended,
      });
      const whole = { a: Math.round(sent.a), b: Math.round(sent.b), c: Math.round(sent.c) };
      signals.acceptReport(
        'f',
        'n',
        reportOf(12 * second, {
          a: usage(whole.a, whole.a),
          b: usage(whole.b, whole.b),
          c: usage(whole.c, second < servesAt ? 0 : whole.c),
        }),
        second * 1_000,
      );
    }
    const fair = 1 / 3;
    const hung = shares.slice(joinsAt + 10, servesAt);
    expect(Math.max(...hung)).toBeLessThan(fair / 5);
    // Enough to see that it serves at last.
    expect(Math.min(...hung)).toBeGreaterThan(0.02);
    const later = shares.slice(servesAt);
    for (const [at, share] of later.slice(1).entries()) expect(share).toBeLessThan(2.1 * later[at]!);
    for (const share of later.slice(30)) expect(share).toBeCloseTo(fair, 2);
  });

  it('only shows the penalty of a slow engine if the policy wants that, unless an operator puts it in force', () => {
    const signals = withSlowB(configOf(['a', 'b'], 10, '{outlierPenalty: observe}', WITH_LATENCY));
    const shown = signals.evaluate(61_000);
    expect(shown.outliers[1]).toMatchObject({ engineId: 'b', state: 'observed' });
    expect(shown.state.engines[1]).toMatchObject({ latencyFactor: 1, penalty: 0 });

    signals.act({ action: 'hold-penalty', target: 'b', by: 'me' }, 62_000);
    const held = signals.evaluate(62_000);
    expect(held.outliers[1]).toMatchObject({ state: 'penalised' });
    expect(held.state.engines[1]!.latencyFactor).toBeGreaterThan(5);
  });

  it('calls no engine slow whose profile knows only a rate', () => {
    const { outliers } = withSlowB(configOf(['a', 'b'])).evaluate(61_000);
    expect(outliers.map(({ state }) => state)).toEqual(['usual', 'usual']);
  });

  describe('with load reports of an Envoy', () => {
    const second = (issued: number, inProgress = 0) => [
      {
        poolId: 'm',
        dropped: 0,
        engines: [{ engineId: 'a', issued, succeeded: issued, failed: 0, inProgress }],
      },
    ];
    /** So many seconds of 50 requests each. */
    const reporting = (seconds: number) => {
      const signals = new Signals(configOf(['a', 'b']), [], 0);
      const counts = new LoadCounts(1n);
      const report = (issued: number, atMs: number, inProgress?: number) =>
        signals.acceptLoadReport('f', 'n', counts.add(second(issued, inProgress)), atMs);
      for (let at = 0; at <= seconds; at++) {
        report(at === 0 ? 0 : 50, at * 1_000, 4);
        signals.evaluate(at * 1_000);
      }
      return { signals, report };
    };

    it('without a filter, demand is what they say, and their requests are no work from elsewhere', () => {
      const { signals } = reporting(20);
      const { state, silentFrontends } = signals.evaluate(20_000);
      expect(state.demands).toMatchObject([{ source: 'measured' }]);
      expect(state.demands[0]!.requestsPerSecond).toBeCloseTo(50, 0);
      expect(signals.inFlight(20_000)).toEqual(
        new Map([
          ['a', 4],
          ['b', 0],
        ]),
      );
      expect(silentFrontends).toEqual([]);
    });

    it('counts nothing twice once the filter of the same Envoy reports', () => {
      const { signals, report } = reporting(20);
      for (let at = 20; at <= 40; at++) {
        // The filter has counted since it started, which is before its first report.
        signals.acceptReport('f', 'n', reportOf(at * 50), at * 1_000);
        expect(report(50, at * 1_000 + 500)).toBe(false);
        const [demand] = signals.evaluate(at * 1_000 + 500).state.demands;
        expect(demand!.requestsPerSecond).toBeCloseTo(50, 0);
      }
      expect(signals.totals.pools).toMatchObject([{ offered: 40 * 50 }]);
      expect(signals.inFlight(40_500)!.get('a')).toBe(0);
    });

    it('holds the demand of an Envoy that falls silent', () => {
      const { signals } = reporting(20);
      expect(signals.evaluate(200_000).state.demands).toMatchObject([{ source: 'held' }]);
      expect(signals.evaluate(200_000).state.demands[0]!.requestsPerSecond).toBeCloseTo(50, 0);
    });
  });

  it('drains engines and replicas, except the last ones of a pool', () => {
    const signals = new Signals(configOf(['a', 'b']), [], 0);
    const drain = (target: string) => signals.act({ action: 'drain', target, overSeconds: 0, by: 'me' }, 0);
    drain('a');
    expect(signals.evaluate(1_000).state.engines.map((engine) => engine.drain)).toEqual([0, 1]);
    drain('b');
    expect(signals.evaluate(2_000).state.engines.map((engine) => engine.drain)).toEqual([1, 1]);
    signals.act({ action: 'undrain', target: 'a', by: 'me' }, 3_000);
    signals.act({ action: 'undrain', target: 'b', by: 'me' }, 3_000);
    drain('10.0.0.2:80');
    expect(readyOf(signals, 4_000)).toEqual({ a: [true], b: [false] });
  });
});
