import { describe, expect, it } from 'vitest';
import { classKey, id64 } from '../../wire/hash.js';
import { noPoolUsage, type UsageReport } from '../../wire/usage-report.js';
import type { ClassRate } from '../fleet/operations.js';
import { Signals } from './signals.js';
import { configOf, reportOf, WITH_LATENCY } from './testing/one-model.js';
import { LoadCounts } from './usage/load-counts.js';

describe('Signals: demand', () => {
  it('takes nothing for a surge or a fall that it hears late because this process was held up', () => {
    for (const heldSeconds of [4, 12, 20, 60]) {
      const signals = new Signals(configOf(['a'], { rps: 60 }), [], 0);
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

  it('goes on with the rates of before a restart', () => {
    const held = [{ frontendId: 'f', poolId: 'm', requestsPerSecond: 33 }];
    const { state } = new Signals(configOf(['a']), held, 10_000).evaluate(10_000);
    expect(state.demands[0]).toMatchObject({ requestsPerSecond: 33, source: 'held' });
  });

  it('takes requests for as large as answers tell, also after a restart, and tells work by that', () => {
    const config = configOf(['a'], { profile: WITH_LATENCY });
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
    restarted.reconfigure(configOf(['a'], { rps: 20 }), 660_000);
    expect(restarted.evaluate(660_000).state.demands[0]).toMatchObject(sizes);
  });

  it('measures demand and keeps it when the frontend falls silent', () => {
    const signals = new Signals(configOf(['a'], { rps: 0 }), [], 0);
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
    tellOfMinuteWithBatches(signals);
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
    tellOfMinuteWithBatches(signals);
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
});

/** For a minute, 20 usual requests a second and 40 of priority -10. */
function tellOfMinuteWithBatches(signals: Signals): void {
  for (let second = 0; second <= 60; second++) {
    const { vms } = reportOf(second * 20);
    const batch = { ...noPoolUsage(classKey(id64('m'), -10)), offered: second * 40 };
    const report = { vms: [{ ...vms[0]!, pools: [...vms[0]!.pools, batch] }] };
    signals.acceptReport('f', 'n', report, second * 1_000);
    signals.evaluate(second * 1_000);
  }
}
