import { describe, expect, it } from 'vitest';
import { Random } from '../../../simulator/random.js';
import { play, replay, START_MS, seeds, twoPools } from '../testing/demand-runs.js';
import { conversationCounts, poissonCounts } from '../testing/traffic.js';
import { DemandEstimator } from './demand-estimator.js';
import { URGENT_STRENGTH } from './surge.js';

describe('DemandEstimator in a surge', () => {
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

  it('a surge of one pool is not taken for one of another', () => {
    const random = new Random(1, 'pools');
    const surging = [...poissonCounts(20, 300, random), ...poissonCounts(40, 60, random)];
    const { moves } = replay([surging, poissonCounts(20, 360, random)], 40);
    const [first, second] = moves.at(-1)!.rates;
    expect(Math.abs(first! / 40 - 1)).toBeLessThan(0.15);
    expect(Math.abs(second! / 20 - 1)).toBeLessThan(0.15);
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

  it('traffic that ends is believed after 10 s', () => {
    const rps = (second: number) => (second < 60 ? 100 : 0);
    const { moves } = play({ seed: 3, expectedRps: 100, seconds: 90, rps });
    expect(moves).toEqual([{ second: 70, rps: 0 }]);
  });
});
