import { describe, expect, it } from 'vitest';
import { id64 } from '../../wire/hash.js';
import { FIRST_TOKEN_BOUNDS, LOAD_NAMES, noVmUsage, type UsageReport } from '../../wire/usage-report.js';
import type { Config } from '../config/config.js';
import { loadConfig } from '../config/load.js';
import type { ProbeResult } from './readiness/replica-health.js';
import { Signals } from './signals.js';
import { configOf, readyOf, refused, reportOf } from './testing/one-model.js';

/** Two models that share no engine. */
function twoModels(endpointsOfOther = '"10.0.0.2:80"', rpsOfOther = 10): Config {
  return loadConfig('/none/fleet.yaml', () =>
    [
      'frontends: [{id: f, region: r}]',
      'engines:',
      '- {id: a, region: r, models: [m], profile: p, endpoints: ["10.0.0.1:80"]}',
      `- {id: b, region: r, models: [other], profile: p, endpoints: [${endpointsOfOther}]}`,
      'profiles: {p: {requestsPerSecond: 100}}',
      `demand: {f: {models: {m: {requestsPerSecond: 10}, other: {requestsPerSecond: ${rpsOfOther}}}}}`,
    ].join('\n'),
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
    const config = twoModels();
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

  it('replicas that are added to an engine, or taken away, make conditions new where it serves, and another demand everywhere', () => {
    const signals = new Signals(twoModels(), [], 0);
    signals.reconfigure(twoModels('"10.0.0.2:80", "10.0.0.3:80"'), 100_000);
    expect(signals.evaluate(150_000).state.settledSecondsByPool).toEqual({ m: 150, other: 50 });
    signals.reconfigure(twoModels('"10.0.0.3:80"'), 200_000);
    expect(signals.evaluate(250_000).state.settledSecondsByPool).toEqual({ m: 250, other: 50 });
    signals.reconfigure(twoModels('"10.0.0.3:80"', 20), 300_000);
    expect(signals.evaluate(350_000).state.settledSecondsByPool).toEqual({ m: 50, other: 50 });
  });

  it('takes a dead replica out and restarts the clock of settled conditions', () => {
    const signals = new Signals(configOf(['a', 'b']), [], 0);
    signals.evaluate(0);
    signals.acceptProbe('a', '10.0.0.1:80', refused, 60_000);
    signals.acceptProbe('a', '10.0.0.1:80', refused, 60_100);
    expect(readyOf(signals, 60_100)).toEqual({ a: [false], b: [true] });
    expect(signals.evaluate(61_100).state.settledSeconds).toBe(1);
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
    expect([...signals.totals.engines]).toMatchObject([{ engineId: 'a', planned: 40, status2xx: 39 }]);
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
    let sequence = 0;
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
    expect([...signals.totals.latencies]).toEqual([
      { frontendId: 'f', engineId: 'a', firstTokens: buckets(5), paces: [] },
    ]);
    expect(signals.totals.loads).toMatchObject([{ engineId: 'a', address: '10.0.0.1:80', reports: 6 }]);
    expect([...signals.totals.load('10.0.0.1:80')!.readings]).toEqual([
      ['kvUse', { value: 0.75, atMs: 2_000 }],
    ]);
  });
});
