import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DemandEstimator } from './demand-estimator.js';

const START_MS = 1_600_000_000_000;

/** A small seeded generator (mulberry32), so that every run draws the same traffic. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function poisson(mean: number, random: () => number): number {
  const gap = () => -Math.log(1 - random());
  let count = 0;
  for (let sum = gap(); sum < mean; sum += gap()) count++;
  return count;
}

interface Run {
  readonly seed: number;
  readonly expectedRps: number;
  readonly seconds: number;
  readonly nodes?: number;
  /** Requests per second at a time in seconds. */
  readonly rps: (second: number) => number;
  /** Whether a node's report of this second arrives. */
  readonly reports?: (node: number, second: number) => boolean;
}

/** Moves of the band, in seconds since the start. */
function play(run: Run): {
  estimator: DemandEstimator;
  moves: { second: number; rps: number }[];
  endMs: number;
} {
  const random = generator(run.seed);
  const nodes = run.nodes ?? 1;
  const estimator = new DemandEstimator([
    { frontendId: 'f', poolId: 'p', requestsPerSecond: run.expectedRps, count: Infinity, source: 'expected' },
  ]);
  const lastMs = Array.from({ length: nodes }, () => START_MS);
  const pending = Array.from({ length: nodes }, () => 0);
  const moves: { second: number; rps: number }[] = [];
  for (let second = 0; second < run.seconds; second++) {
    for (let node = 0; node < nodes; node++) {
      const nowMs = START_MS + (second + 1 + node / nodes) * 1_000;
      pending[node]! += poisson(run.rps(second) / nodes, random);
      if (run.reports?.(node, second) ?? true) {
        estimator.add('f', `n${node}`, new Map([['p', pending[node]!]]), lastMs[node]!, nowMs);
        lastMs[node] = nowMs;
        pending[node] = 0;
      }
      if (estimator.evaluate(nowMs)) moves.push({ second: second + 1, rps: rpsOf(estimator, nowMs) });
    }
  }
  return { estimator, moves, endMs: START_MS + (run.seconds + 1) * 1_000 };
}

function rpsOf(estimator: DemandEstimator, nowMs: number): number {
  return estimator.estimates(nowMs)[0]!.requestsPerSecond;
}

const seeds = Array.from({ length: 20 }, (_, index) => 17 * index + 3);

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

  it('a rise by half at 40 requests/s is seen within 3 s in half of the cases and within 5 s in nine of ten', () => {
    const seconds = seeds
      .map((seed) => {
        const rps = (second: number) => (second < 120 ? 40 : 60);
        const { moves } = play({ seed, expectedRps: 40, seconds: 180, rps });
        return moves.find(({ second }) => second > 120)!.second - 120;
      })
      .sort((a, b) => a - b);
    expect(seconds[Math.floor(seeds.length / 2)]).toBeLessThanOrEqual(3);
    expect(seconds[Math.floor(seeds.length * 0.9)]).toBeLessThanOrEqual(5);
  });

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

  it('traffic that ends is believed after 10 s', () => {
    const rps = (second: number) => (second < 60 ? 100 : 0);
    const { moves } = play({ seed: 3, expectedRps: 100, seconds: 90, rps });
    expect(moves).toEqual([{ second: 70, rps: 0 }]);
  });

  it('keeps measurements over a reconfiguration and drops rows that are gone', () => {
    const { estimator, endMs } = play({ seed: 2, expectedRps: 0, seconds: 100, rps: () => 50 });
    const before = rpsOf(estimator, endMs);
    const seed = { frontendId: 'f', requestsPerSecond: 7, count: Infinity, source: 'expected' as const };
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

  it('never gives a rate that is negative or no number, whatever is reported', () => {
    const report = fc.record({ count: fc.nat(10_000), ms: fc.integer({ min: 0, max: 20_000 }) });
    fc.assert(
      fc.property(fc.array(report, { maxLength: 50 }), (reports) => {
        const estimator = new DemandEstimator([
          { frontendId: 'f', poolId: 'p', requestsPerSecond: 0, count: Infinity, source: 'expected' },
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

it('a frontend that was silent for long is measured anew when it is back', () => {
  const estimator = new DemandEstimator([
    { frontendId: 'f', poolId: 'p', requestsPerSecond: 100, count: Infinity, source: 'expected' },
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
