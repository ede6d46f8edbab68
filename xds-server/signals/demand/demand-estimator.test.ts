import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Random } from '../../../simulator/random.js';
import { play, replay, rpsOf, START_MS, seeds, twoPools, twoSeeds } from '../testing/demand-runs.js';
import { conversationCounts } from '../testing/traffic.js';
import { DemandEstimator, rateConfidence } from './demand-estimator.js';

describe('DemandEstimator', () => {
  it.each([5, 40, 400])('noise of %d requests/s moves no band that is right', (rate) => {
    const moves = seeds.map(
      (seed) => play({ seed, expectedRps: rate, seconds: 600, rps: () => rate }).moves.length,
    );
    expect(moves.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(1);
  });

  it.each([5, 40, 400])('a wrong expectation of %d requests/s gives way to what is measured', (rate) => {
    for (const expectedRps of [0, rate / 2, rate * 3]) {
      for (const seed of seeds.slice(0, 5)) {
        const { estimator, endMs } = play({ seed, expectedRps, seconds: 400, rps: () => rate });
        const estimate = estimator.estimates(endMs)[0]!;
        expect(Math.abs(estimate.requestsPerSecond / rate - 1)).toBeLessThan(0.12);
        expect(estimate.source).toBe('measured');
      }
    }
  });

  it('conversations, whose turns come in lumps, move no band that is right', () => {
    const moves = seeds.map((seed) => {
      const counts = conversationCounts(40, 3_600, new Random(seed, 'conversations'));
      return replay([counts], 40).moves.filter(({ second }) => second > 900).length;
    });
    // Fifteen hours together.
    expect(moves.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(5);
  });

  it.each([40, 400])('a rise of %d requests/s by a fifth gives one new rate, which is right', (rate) => {
    const counts = seeds.slice(0, 12).map((seed) => {
      const rps = (second: number) => (second < 300 ? rate : 1.2 * rate);
      const moves = play({ seed, expectedRps: rate, seconds: 900, rps }).moves;
      expect(Math.abs(moves.at(-1)!.rps / (1.2 * rate) - 1)).toBeLessThan(0.08);
      return moves.length;
    });
    expect(counts.filter((count) => count === 1).length).toBeGreaterThanOrEqual(10);
  });

  it('a rise of 5 requests/s by a fifth gives one new rate, however many minutes it takes to know it', () => {
    for (const seed of seeds.slice(0, 12)) {
      const rps = (second: number) => (second < 1_200 ? 5 : 6);
      const moves = play({ seed, expectedRps: 5, seconds: 2_400, rps }).moves;
      expect(moves).toHaveLength(1);
      expect(Math.abs(moves[0]!.rps / 6 - 1)).toBeLessThan(0.08);
    }
  });

  it('a rate that changes while it is young is never taken for the mean of before and after', () => {
    for (let changeAt = 220; changeAt < 640; changeAt += 40) {
      const counts = Array.from({ length: 1_000 }, (_, second) => (second < changeAt ? 10 : 12));
      const rates = replay([counts], 1).moves.map(({ rates }) => rates[0]!);
      expect(rates.filter((rate) => rate > 10.5 && rate < 11.5)).toEqual([]);
      expect(rates.at(-1)).toBeGreaterThanOrEqual(11.5);
    }
  });

  it('a rise from a rate that is a little off the held one gives one new rate', () => {
    for (const seed of seeds.slice(0, 8)) {
      const rps = (second: number) => (second < 500 ? 415 : 1.2 * 415);
      const { moves } = play({ seed, expectedRps: 400, seconds: 800, rps });
      expect(moves).toHaveLength(1);
      expect(Math.abs(moves[0]!.rps / (1.2 * 415) - 1)).toBeLessThan(0.06);
    }
  });

  it('a rise is not taken for larger than it is because chance shows it first', () => {
    const errors = Array.from({ length: 40 }, (_, seed) => {
      const rps = (second: number) => (second < 300 ? 56 : 1.2 * 56);
      return play({ seed, expectedRps: 56, seconds: 600, rps }).moves[0]!.rps / (1.2 * 56) - 1;
    });
    expect(Math.abs(errors.reduce((sum, error) => sum + error, 0) / errors.length)).toBeLessThan(0.02);
    expect(errors.filter((error) => error > 0.08).length).toBeLessThanOrEqual(4);
  });

  it('keeps measurements over a reconfiguration and drops rows that are gone', () => {
    const { estimator, endMs } = play({ seed: 2, expectedRps: 0, seconds: 100, rps: () => 50 });
    const before = rpsOf(estimator, endMs);
    const seed = { frontendId: 'f', requestsPerSecond: 7, evidence: Infinity, source: 'expected' as const };
    estimator.reseed([
      { ...seed, poolId: 'p' },
      { ...seed, poolId: 'q' },
    ]);
    expect(estimator.estimates(endMs).map((row) => [row.poolId, row.requestsPerSecond])).toEqual([
      ['p', before],
      ['q', 7],
    ]);
    estimator.reseed([{ ...seed, poolId: 'q' }]);
    expect(estimator.estimates(endMs)).toHaveLength(1);
  });

  it('knows over a reconfiguration how much the requests of a frontend scatter, unless its pools are others', () => {
    const random = new Random(5, 'conversations');
    const pools = [0, 1].map(() => conversationCounts(40, 1_200, random));
    const estimator = twoPools();
    for (let second = 1; second <= 1_200; second++) {
      const nowMs = START_MS + second * 1_000;
      const counts = new Map(pools.map((each, pool) => [`p${pool}`, each[second - 1]!]));
      estimator.add('f', 'n', counts, nowMs - 1_000, nowMs);
      estimator.evaluate(nowMs);
    }
    const nowMs = START_MS + 1_208_000;
    const more = new Map(twoSeeds.map(({ poolId }) => [poolId, 8 * 55]));
    estimator.add('f', 'n', more, nowMs - 8_000, nowMs);
    const strength = estimator.surgeStrength('f', nowMs);
    estimator.reseed(twoSeeds);
    expect(estimator.surgeStrength('f', nowMs)).toBe(strength);
    estimator.reseed([...twoSeeds, { ...twoSeeds[0]!, poolId: 'p2' }]);
    expect(estimator.surgeStrength('f', nowMs)).toBeGreaterThan(strength);
  });

  it('never gives a rate that is negative or no number, whatever is reported', () => {
    const report = fc.record({ count: fc.nat(10_000), ms: fc.integer({ min: 0, max: 20_000 }) });
    fc.assert(
      fc.property(fc.array(report, { maxLength: 50 }), (reports) => {
        const estimator = new DemandEstimator([
          { frontendId: 'f', poolId: 'p', requestsPerSecond: 0, evidence: Infinity, source: 'expected' },
        ]);
        let nowMs = START_MS;
        for (const { count, ms } of reports) {
          estimator.add('f', 'n', new Map([['p', count]]), nowMs, nowMs + ms);
          nowMs += ms;
          estimator.evaluate(nowMs);
          expect(rpsOf(estimator, nowMs)).toBeGreaterThanOrEqual(0);
          expect(rpsOf(estimator, nowMs)).toBeLessThan(Infinity);
        }
      }),
    );
  });
});

it('a rate is trusted by how many requests it is of and how long ago anyone reported, and not at all before any were', () => {
  expect(rateConfidence({ evidence: 400, dispersion: 1, ageSeconds: 1 })).toBeCloseTo(0.95);
  expect(rateConfidence({ evidence: 400, dispersion: 4, ageSeconds: 1 })).toBeCloseTo(0.9);
  expect(rateConfidence({ evidence: 400, dispersion: 1, ageSeconds: 330 })).toBeCloseTo(0.475);
  expect(rateConfidence({ evidence: 1, dispersion: 9, ageSeconds: undefined })).toBe(0);
  for (const evidence of [0, Number.POSITIVE_INFINITY]) {
    expect(rateConfidence({ evidence, dispersion: 1, ageSeconds: undefined })).toBe(0);
  }
});
