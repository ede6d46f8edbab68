import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { play, rpsOf, START_MS } from '../testing/demand-runs.js';
import { DemandEstimator } from './demand-estimator.js';

describe('DemandEstimator without reports or requests', () => {
  it('a quiet start says nothing about the demand', () => {
    const rps = (second: number) => (second < 100 ? 0 : 90);
    const { moves, estimator, endMs } = play({ seed: 1, expectedRps: 90, seconds: 200, rps });
    expect(moves).toEqual([]);
    expect(estimator.estimates(endMs)[0]!.source).toBe('measured');
  });

  it('single requests before the traffic sets in say nothing about it', () => {
    const rps = (second: number) => (second < 100 ? 0.1 : 90);
    const { moves } = play({ seed: 1, expectedRps: 90, seconds: 200, rps });
    expect(moves).toEqual([]);
  });

  it('a few requests do not replace the expectation', () => {
    const { estimator, endMs } = play({ seed: 1, expectedRps: 90, seconds: 10, rps: () => 1 });
    expect(estimator.estimates(endMs)[0]).toMatchObject({ requestsPerSecond: 90, source: 'expected' });
  });

  it('silence keeps the demand for ever and marks it as held', () => {
    const { estimator, endMs } = play({
      seed: 4,
      expectedRps: 0,
      seconds: 4_000,
      nodes: 2,
      rps: () => 40,
      reports: (_, second) => second < 100,
    });
    const estimate = estimator.estimates(endMs)[0]!;
    expect(estimate.source).toBe('held');
    expect(estimate.requestsPerSecond).toBeGreaterThan(34);
    expect(estimator.silentMs('f', endMs)).toBeGreaterThan(3_800_000);
  });

  it('an Envoy that falls silent for half a minute takes no demand away', () => {
    const { moves } = play({
      seed: 9,
      expectedRps: 100,
      seconds: 200,
      nodes: 2,
      rps: () => 100,
      reports: (node, second) => node === 0 || second < 100 || second > 128,
    });
    expect(moves).toEqual([]);
  });

  it('an Envoy that was removed is forgotten while the others report', () => {
    const { estimator, endMs } = play({
      seed: 9,
      expectedRps: 100,
      seconds: 300,
      nodes: 2,
      rps: () => 100,
      reports: (node, second) => node === 0 || second < 100,
    });
    expect(rpsOf(estimator, endMs)).toBeLessThan(60);
  });

  it('counts move a rate once: to look at them again before the next report moves nothing', () => {
    const estimator = new DemandEstimator([
      { frontendId: 'f', poolId: 'p', requestsPerSecond: 30, evidence: Infinity, source: 'expected' },
    ]);
    const report = (count: number, fromMs: number, toMs: number) => {
      estimator.add('f', 'n', new Map([['p', count]]), START_MS + fromMs, START_MS + toMs);
      estimator.evaluate(START_MS + toMs);
    };
    report(186, 0, 100);
    report(0, 100, 4_250);
    const rps = rpsOf(estimator, START_MS + 4_250);
    expect(rps).toBeGreaterThan(40);
    for (const laterMs of [500, 1_000, 2_500]) {
      expect(estimator.evaluate(START_MS + 4_250 + laterMs).size).toBe(0);
      expect(rpsOf(estimator, START_MS + 4_250)).toBe(rps);
    }
  });

  it('silence never lowers a rate, whatever was reported before it and however long it lasts', () => {
    const report = fc.record({ count: fc.nat(2_000), ms: fc.integer({ min: 100, max: 5_000 }) });
    const looks = fc.array(fc.integer({ min: 2_500, max: 600_000 }), { minLength: 1, maxLength: 10 });
    fc.assert(
      fc.property(fc.array(report, { minLength: 1, maxLength: 50 }), looks, (reports, silences) => {
        const estimator = new DemandEstimator([
          { frontendId: 'f', poolId: 'p', requestsPerSecond: 30, evidence: Infinity, source: 'expected' },
        ]);
        let nowMs = START_MS;
        for (const { count, ms } of reports) {
          estimator.add('f', 'n', new Map([['p', count]]), nowMs, nowMs + ms);
          nowMs += ms;
          estimator.evaluate(nowMs);
        }
        let before = rpsOf(estimator, nowMs);
        for (const silentMs of silences) {
          nowMs += silentMs;
          estimator.evaluate(nowMs);
          expect(rpsOf(estimator, nowMs)).toBeGreaterThanOrEqual(before);
          before = rpsOf(estimator, nowMs);
        }
      }),
    );
  });

  it('a frontend that was silent for long is measured anew when it is back', () => {
    const estimator = new DemandEstimator([
      { frontendId: 'f', poolId: 'p', requestsPerSecond: 100, evidence: Infinity, source: 'expected' },
    ]);
    const report = (rps: number, nowMs: number, fromMs: number) => {
      estimator.add('f', 'n', new Map([['p', rps]]), fromMs, nowMs);
      estimator.evaluate(nowMs);
    };
    for (let second = 1; second <= 120; second++)
      report(100, START_MS + second * 1_000, START_MS + (second - 1) * 1_000);
    const backMs = START_MS + 720_000;
    expect(estimator.estimates(backMs)[0]).toMatchObject({ source: 'held', ageSeconds: 600 });
    expect(rpsOf(estimator, backMs)).toBeCloseTo(100, 0);
    report(0, backMs, backMs);
    // A difference that a settled rate would need minutes to follow.
    for (let second = 1; second <= 20; second++)
      report(92, backMs + second * 1_000, backMs + (second - 1) * 1_000);
    expect(rpsOf(estimator, backMs + 20_000)).toBeCloseTo(92, 0);
  });
});
