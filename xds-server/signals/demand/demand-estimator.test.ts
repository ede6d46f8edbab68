import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Random } from '../../../simulator/random.js';
import { conversationCounts, poissonCounts } from '../testing/traffic.js';
import { DemandEstimator, rateConfidence } from './demand-estimator.js';
import { URGENT_STRENGTH } from './surge.js';

const START_MS = 1_600_000_000_000;

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
  const random = new Random(run.seed, 'traffic');
  const nodes = run.nodes ?? 1;
  const estimator = new DemandEstimator([
    {
      frontendId: 'f',
      poolId: 'p',
      requestsPerSecond: run.expectedRps,
      evidence: Infinity,
      source: 'expected',
    },
  ]);
  const lastMs = Array.from({ length: nodes }, () => START_MS);
  const pending = Array.from({ length: nodes }, () => 0);
  const moves: { second: number; rps: number }[] = [];
  for (let second = 0; second < run.seconds; second++) {
    for (let node = 0; node < nodes; node++) {
      const nowMs = START_MS + (second + 1 + node / nodes) * 1_000;
      pending[node]! += poissonCounts(run.rps(second) / nodes, 1, random)[0]!;
      if (run.reports?.(node, second) ?? true) {
        estimator.add('f', `n${node}`, new Map([['p', pending[node]!]]), lastMs[node]!, nowMs);
        lastMs[node] = nowMs;
        pending[node] = 0;
      }
      if (estimator.evaluate(nowMs).size > 0)
        moves.push({ second: second + 1, rps: rpsOf(estimator, nowMs) });
    }
  }
  return { estimator, moves, endMs: START_MS + (run.seconds + 1) * 1_000 };
}

function rpsOf(estimator: DemandEstimator, nowMs: number): number {
  return estimator.estimates(nowMs)[0]!.requestsPerSecond;
}

/** Plays counts of a second each, one list for each pool; the rates after every move. */
function replay(
  pools: readonly (readonly number[])[],
  expectedRps: number,
): { moves: { second: number; rates: readonly number[] }[] } {
  const estimator = new DemandEstimator(
    pools.map((_, pool) => ({
      frontendId: 'f',
      poolId: `p${pool}`,
      requestsPerSecond: expectedRps / pools.length,
      evidence: Infinity,
      source: 'expected',
    })),
  );
  const moves: { second: number; rates: readonly number[] }[] = [];
  for (let second = 0; second < pools[0]!.length; second++) {
    const nowMs = START_MS + (second + 1) * 1_000;
    const counts = new Map(pools.map((each, pool) => [`p${pool}`, each[second]!]));
    estimator.add('f', 'n', counts, nowMs - 1_000, nowMs);
    if (estimator.evaluate(nowMs).size === 0) continue;
    const rates = estimator.estimates(nowMs).map(({ requestsPerSecond }) => requestsPerSecond);
    moves.push({ second: second + 1, rates });
  }
  return { moves };
}

const twoSeeds = ['p0', 'p1'].map((poolId) => ({
  ...{ frontendId: 'f', poolId, requestsPerSecond: 40 },
  ...{ evidence: Infinity, source: 'expected' as const },
}));

function twoPools(): DemandEstimator {
  return new DemandEstimator(twoSeeds);
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

  it('an even rise by half at 40 requests/s is seen within 2.7 s, whenever it begins', () => {
    for (let begin = 20; begin < 21; begin += 0.05) {
      const estimator = new DemandEstimator([
        { frontendId: 'f', poolId: 'p', requestsPerSecond: 40, evidence: Infinity, source: 'expected' },
      ]);
      const sentBy = (second: number) => Math.floor(40 * second + 20 * Math.max(0, second - begin));
      let seen: number | undefined;
      // So often a filter reports when a surge is near.
      for (let tenth = 1; seen === undefined && tenth < 300; tenth++) {
        const [from, to] = [(tenth - 1) / 10, tenth / 10];
        const counts = new Map([['p', sentBy(to) - sentBy(from)]]);
        estimator.add('f', 'n', counts, START_MS + from * 1_000, START_MS + to * 1_000);
        if (estimator.evaluate(START_MS + to * 1_000).size > 0) seen = to;
      }
      expect(seen! - begin).toBeGreaterThan(0);
      expect(seen! - begin).toBeLessThanOrEqual(2.7);
    }
  });

  it('a surge shows in all requests of a frontend before its pools can tell, and is shared among them', () => {
    const seconds = seeds.slice(0, 10).map((seed) => {
      const random = new Random(seed, 'pools');
      const before = Array.from({ length: 20 }, () => poissonCounts(2, 300, random));
      const after = Array.from({ length: 20 }, () => poissonCounts(3, 30, random));
      const { moves } = replay(
        before.map((counts, pool) => [...counts, ...after[pool]!]),
        40,
      );
      expect(moves.filter(({ second }) => second <= 300)).toEqual([]);
      const first = moves[0]!;
      for (const rate of first.rates) expect(rate).toBeGreaterThan(2);
      return first.second - 300;
    });
    expect(seconds.sort((a, b) => a - b)[5]).toBeLessThanOrEqual(3);
    expect(seconds[8]).toBeLessThanOrEqual(9);
  });

  it('a surge of one pool among many is believed on more evidence than one of a frontend that has only this pool', () => {
    const even = (rate: number, seconds: number) => Array.from({ length: seconds }, () => rate);
    const secondsAmong = (others: number) => {
      const surging = [...even(40, 300), ...even(60, 30)];
      const pools = [surging, ...Array.from({ length: others }, () => even(40, 330))];
      return replay(pools, 40 * pools.length).moves[0]!.second - 300;
    };
    expect(secondsAmong(0)).toBe(3);
    expect(secondsAmong(30)).toBe(4);
  });

  it('a surge is worth looking at more often only until it is known, with many Envoys and pools, too', () => {
    const seeds = Array.from({ length: 10 }, (_, pool) => ({
      ...{ frontendId: 'f', poolId: `p${pool}`, requestsPerSecond: 40 },
      ...{ evidence: Number.POSITIVE_INFINITY, source: 'expected' as const },
    }));
    const demand = new DemandEstimator(seeds);
    const urgentMs: number[] = [];
    const nodes = Array.from({ length: 8 }, (_, at) => ({ id: `n${at}`, toldMs: 0, nextMs: 500 + 60 * at }));
    for (let nowMs = 0; nowMs < 120_000; nowMs += 20) {
      for (const node of nodes.filter(({ nextMs }) => nextMs <= nowMs)) {
        const perMs = (nowMs > 60_000 ? 60 : 40) / 1_000 / nodes.length;
        const count = perMs * (nowMs - node.toldMs);
        demand.add('f', node.id, new Map(seeds.map(({ poolId }) => [poolId, count])), node.toldMs, nowMs);
        const isUrgent = demand.surgeStrength('f', nowMs) >= URGENT_STRENGTH;
        if (isUrgent) urgentMs.push(nowMs);
        node.toldMs = nowMs;
        node.nextMs = nowMs + (isUrgent ? 100 : 500);
      }
      if (nowMs % 200 === 0) demand.evaluate(nowMs);
    }
    const total = demand
      .estimates(120_000)
      .reduce((sum, { requestsPerSecond }) => sum + requestsPerSecond, 0);
    expect(Math.abs(total - 600)).toBeLessThan(30);
    expect(urgentMs.length).toBeGreaterThan(0);
    expect(urgentMs.filter((atMs) => atMs < 60_000 || atMs > 65_000)).toEqual([]);
  });

  it('looking how close a frontend is to a surge changes nothing', () => {
    const random = new Random(5, 'conversations');
    const pools = [0, 1].map(() => [
      ...conversationCounts(40, 400, random),
      ...conversationCounts(60, 60, random),
    ]);
    const ratesOf = (estimator: DemandEstimator, second: number) =>
      estimator.estimates(START_MS + second * 1_000).map((row) => [row.requestsPerSecond, row.dispersion]);
    const watched = twoPools();
    const other = twoPools();
    let strongest = 0;
    for (let second = 1; second <= 460; second++) {
      const nowMs = START_MS + second * 1_000;
      for (const estimator of [watched, other]) {
        const counts = new Map(pools.map((each, pool) => [`p${pool}`, each[second - 1]!]));
        estimator.add('f', 'n', counts, nowMs - 1_000, nowMs);
        if (estimator === watched) strongest = Math.max(strongest, watched.surgeStrength('f', nowMs));
        estimator.evaluate(nowMs);
      }
      expect(ratesOf(watched, second)).toEqual(ratesOf(other, second));
    }
    expect(strongest).toBeGreaterThanOrEqual(1);
  });

  it('a surge of one pool is not taken for one of another', () => {
    const random = new Random(1, 'pools');
    const surging = [...poissonCounts(20, 300, random), ...poissonCounts(40, 60, random)];
    const { moves } = replay([surging, poissonCounts(20, 360, random)], 40);
    const [first, second] = moves.at(-1)!.rates;
    expect(Math.abs(first! / 40 - 1)).toBeLessThan(0.15);
    expect(Math.abs(second! / 20 - 1)).toBeLessThan(0.15);
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

  it('tells a surge from a small change', () => {
    for (const [factor, move] of [
      [2, 'large'],
      [1.1, 'small'],
    ] as const) {
      const estimator = new DemandEstimator([
        { frontendId: 'f', poolId: 'p', requestsPerSecond: 400, evidence: Infinity, source: 'expected' },
      ]);
      const moves = new Set<string>();
      for (let second = 1; second <= 500; second++) {
        const nowMs = START_MS + second * 1_000;
        const count = 400 * (second > 100 ? factor : 1);
        estimator.add('f', 'n', new Map([['p', count]]), nowMs - 1_000, nowMs);
        moves.add(estimator.evaluate(nowMs).get('p') ?? 'none');
      }
      expect(moves).toEqual(new Set(['none', move]));
    }
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

  it('the end of a burst that was taken for a surge is believed sooner than another fall', () => {
    for (const seed of seeds) {
      const rps = (second: number) => (second >= 120 && second < 128 ? 300 : 75);
      const { moves } = play({ seed, expectedRps: 75, seconds: 160, rps });
      expect(moves.some(({ second, rps }) => second < 128 && rps > 200)).toBe(true);
      const fall = moves.find(({ second, rps }) => second > 128 && rps < 150)!;
      expect(fall.second).toBeLessThanOrEqual(134);
      expect(Math.abs(fall.rps / 75 - 1)).toBeLessThan(0.25);
    }
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

it('a rate is trusted by how many requests it is of and how long ago anyone reported, and not at all before any were', () => {
  expect(rateConfidence({ evidence: 400, dispersion: 1, ageSeconds: 1 })).toBeCloseTo(0.95);
  expect(rateConfidence({ evidence: 400, dispersion: 4, ageSeconds: 1 })).toBeCloseTo(0.9);
  expect(rateConfidence({ evidence: 400, dispersion: 1, ageSeconds: 330 })).toBeCloseTo(0.475);
  expect(rateConfidence({ evidence: 1, dispersion: 9, ageSeconds: undefined })).toBe(0);
  for (const evidence of [0, Number.POSITIVE_INFINITY]) {
    expect(rateConfidence({ evidence, dispersion: 1, ageSeconds: undefined })).toBe(0);
  }
});
