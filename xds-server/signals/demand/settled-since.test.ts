import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Pool } from '../../fleet/fleet.js';
import type { Move } from './demand-band.js';
import { SettledSince, settledSince } from './settled-since.js';

const HOUR_MS = 3_600_000;

it('a large change of demand makes conditions new', () => {
  expect(settledSince(0, 'large', HOUR_MS)).toBe(HOUR_MS);
});

it('a small change after a quiet hour leaves a quarter of it', () => {
  expect(settledSince(0, 'small', HOUR_MS)).toBe(0.75 * HOUR_MS);
});

it('small changes every so often never count as conditions that hold for longer than a third of that', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: HOUR_MS }), (periodMs) => {
      let nowMs = 0;
      let sinceMs = 0;
      for (let change = 0; change < 50; change++) {
        nowMs += periodMs;
        sinceMs = settledSince(sinceMs, 'small', nowMs);
        expect(nowMs - sinceMs).toBeLessThanOrEqual(periodMs / 3 + 1);
      }
    }),
  );
});

function poolOf(id: string, ...engineIds: string[]): Pool {
  return { id, model: id, needs: [], engineIds };
}

describe('pools that share engines, also by way of others', () => {
  // `joined` shares `b` with `first` and `c` with `second`.
  const pools = [
    poolOf('first', 'a', 'b'),
    poolOf('second', 'c'),
    poolOf('apart', 'd'),
    poolOf('joined', 'b', 'c'),
  ];

  it('have the same time, and what happens to them changes nothing for others', () => {
    const settled = new SettledSince(pools, 0);
    settled.demandMoved(new Map([['second', 'large']]), 40_000);
    const times = { first: 10, second: 10, joined: 10, apart: 50 };
    expect(settled.at(50_000)).toEqual({ settledSeconds: 10, settledSecondsByPool: times });
    settled.enginesChanged(new Set(['d']), 55_000);
    expect(settled.at(60_000)).toEqual({
      settledSeconds: 5,
      settledSecondsByPool: { first: 20, second: 20, joined: 20, apart: 5 },
    });
  });

  it('several moves at one time are one, the largest', () => {
    const holding = (...moves: [string, Move][]) => {
      const settled = new SettledSince(pools, 0);
      settled.demandMoved(new Map(moves), 100_000);
      return settled.at(100_000).settledSecondsByPool;
    };
    expect(holding(['first', 'small'], ['second', 'small'])).toMatchObject({ joined: 25, apart: 100 });
    expect(holding(['first', 'large'], ['second', 'small'])).toMatchObject({ joined: 0, apart: 100 });
    expect(holding(['first', 'small'], ['second', 'large'])).toMatchObject({ joined: 0, apart: 100 });
  });

  it('have cold caches for a minute after engines came or went or demand moved far, and others do not', () => {
    const settled = new SettledSince(pools, 0);
    const cold = (second: number) => ['a', 'b', 'c', 'd'].filter((id) => settled.isCold(id, second * 1_000));
    expect(cold(0)).toEqual([]);
    settled.enginesChanged(new Set(['c']), 100_000);
    expect(cold(159)).toEqual(['a', 'b', 'c']);
    expect(cold(160)).toEqual([]);
    settled.demandMoved(new Map([['first', 'small']]), 200_000);
    settled.demandMoved(new Map([['apart', 'large']]), 200_000);
    expect(cold(201)).toEqual(['d']);
  });

  it('have them for five minutes at most when that happens again and again, until it has not for as long', () => {
    for (const everySeconds of [1, 50, 150, 299]) {
      const settled = new SettledSince(pools, 0);
      const isColdAfter = (second: number) => {
        if (second % everySeconds === 0) settled.enginesChanged(new Set(['d']), second * 1_000);
        return settled.isCold('d', second * 1_000);
      };
      const seconds = Array.from({ length: 3_600 }, (_, second) => second);
      expect(Math.max(...seconds.filter(isColdAfter))).toBeLessThan(300);
      settled.enginesChanged(new Set(['d']), 3_600_000 + 300_000);
      expect(settled.isCold('d', 3_600_000 + 359_000)).toBe(true);
    }
  });
});
