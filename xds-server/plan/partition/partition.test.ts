import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HASH_SPACE } from '../plan.js';
import {
  evolvePartition,
  MAX_FORMER_PER_ENGINE,
  MAX_RUNS_PER_ENGINE,
  maxRunsOfOneEngine,
  type Partition,
  type PreviousPartition,
} from './partition.js';
import { quantise } from './quantise.js';
import { endOf } from './segments.js';

const engineIds = ['e0', 'e1', 'e2', 'e3', 'e4', 'e5', 'e6', 'e7'];

/** Weights of all engines; about a third of the entries is 0. */
const weights = fc
  .array(fc.oneof({ weight: 2, arbitrary: fc.double({ min: 0.001, max: 1, noNaN: true }) }, fc.constant(0)), {
    minLength: engineIds.length,
    maxLength: engineIds.length,
  })
  .filter((list) => list.some((weight) => weight > 0));

const steps = fc.array(weights, { minLength: 1, maxLength: 12 });

function lengthsOf(list: readonly number[]): Map<string, number> {
  const lengths = quantise(list, HASH_SPACE);
  return new Map(
    engineIds.map((id, index) => [id, lengths[index]!] as const).filter(([, length]) => length > 0),
  );
}

/** Segments whose backup is the next other owner of the row, as any rule would do. */
function withBackups({ runs, former }: Partition): PreviousPartition {
  const owners = [...new Set(runs.map(({ ownerId }) => ownerId))].sort();
  return {
    segments: runs.map(({ start, ownerId }) => {
      const backupId = owners[(owners.indexOf(ownerId) + 1) % owners.length]!;
      return { start, ownerId, backupId: backupId === ownerId ? null : backupId };
    }),
    former,
  };
}

function owned(runs: Partition['runs']): Map<string, number> {
  const lengths = new Map<string, number>();
  runs.forEach(({ start, ownerId }, index) => {
    lengths.set(ownerId, (lengths.get(ownerId) ?? 0) + endOf(runs, index) - start);
  });
  return lengths;
}

/** Points whose owner differs, by [old owner, new owner]. */
function moves(before: Partition['runs'], after: Partition['runs']): Map<string, number> {
  const result = new Map<string, number>();
  for (let i = 0, j = 0, at = 0; at < HASH_SPACE; ) {
    const end = Math.min(endOf(before, i), endOf(after, j));
    const [from, to] = [before[i]!.ownerId, after[j]!.ownerId];
    if (from !== to) result.set(`${from}>${to}`, (result.get(`${from}>${to}`) ?? 0) + end - at);
    at = end;
    if (endOf(before, i) === at) i++;
    if (endOf(after, j) === at) j++;
  }
  return result;
}

function sum(values: Iterable<number>): number {
  return [...values].reduce((total, value) => total + value, 0);
}

function evolve(
  previous: PreviousPartition,
  list: readonly number[],
  eligibleCount = engineIds.length,
): Partition {
  return evolvePartition(previous, lengthsOf(list), eligibleCount);
}

const nothing: PreviousPartition = { segments: [] };

describe('evolvePartition', () => {
  it('covers the space in ascending runs whose owned lengths are the lengths asked for', () => {
    fc.assert(
      fc.property(steps, (list) => {
        let previous = nothing;
        for (const step of list) {
          const next = evolve(previous, step);
          expect(next.runs[0]!.start).toBe(0);
          next.runs.forEach((run, index) => {
            expect(endOf(next.runs, index)).toBeGreaterThan(run.start);
            expect(next.runs[index + 1]?.ownerId).not.toBe(run.ownerId);
          });
          expect(new Map([...owned(next.runs)].sort())).toEqual(lengthsOf(step));
          previous = withBackups(next);
        }
      }),
    );
  });

  it('moves exactly half the sum of the differences while there are few runs', () => {
    fc.assert(
      fc.property(steps, (list) => {
        let previous = nothing;
        let runs: Partition['runs'] | undefined;
        for (const step of list) {
          const next = evolve(previous, step);
          if (runs !== undefined && runs.length <= MAX_RUNS_PER_ENGINE * engineIds.length) {
            const [before, after] = [owned(runs), owned(next.runs)];
            const differences = engineIds.map((id) => Math.abs((before.get(id) ?? 0) - (after.get(id) ?? 0)));
            expect(sum(moves(runs, next.runs).values())).toBe(sum(differences) / 2);
          }
          runs = next.runs;
          previous = withBackups(next);
        }
      }),
    );
  });

  it('gives up the smallest runs when there are more than the limit, at most at twice their size', () => {
    const runs = Array.from({ length: 200 }, (_, index) => ({
      start: index * 1000,
      ownerId: engineIds[index % 3]!,
    }));
    const lengths = new Map([...owned(runs)].sort());
    const next = evolvePartition({ segments: runs.map((run) => ({ ...run, backupId: null })) }, lengths, 3);
    expect(new Map([...owned(next.runs)].sort())).toEqual(lengths);
    expect(next.runs.length).toBeLessThanOrEqual(MAX_RUNS_PER_ENGINE * 3);
    expect(sum(moves(runs, next.runs).values())).toBeLessThanOrEqual(2 * 200 * 1000);
  });

  it('lays the engines of a first partition side by side in the order of their ids', () => {
    fc.assert(
      fc.property(weights, (list) => {
        const owners = evolve(nothing, list).runs.map(({ ownerId }) => ownerId);
        expect(owners).toEqual([...lengthsOf(list).keys()].sort());
      }),
    );
  });

  it('depends neither on the order of the lengths nor on anything but its arguments', () => {
    fc.assert(
      fc.property(steps, weights, (list, last) => {
        let previous = nothing;
        for (const step of list) previous = withBackups(evolve(previous, step));
        const reversed = new Map([...lengthsOf(last)].reverse());
        expect(evolvePartition(previous, reversed, engineIds.length)).toEqual(evolve(previous, last));
      }),
    );
  });

  it('gives the segments of a leaving engine to their backups as far as the lengths allow', () => {
    const segments = [
      { start: 0, ownerId: 'e0', backupId: 'e2' },
      { start: HASH_SPACE / 4, ownerId: 'e0', backupId: 'e1' },
      { start: HASH_SPACE / 2, ownerId: 'e1', backupId: 'e2' },
      { start: (HASH_SPACE / 4) * 3, ownerId: 'e2', backupId: 'e1' },
    ];
    const { runs } = evolvePartition({ segments }, lengthsOf([0, 1, 1]), 3);
    expect(runs).toEqual([
      { start: 0, ownerId: 'e2' },
      { start: HASH_SPACE / 4, ownerId: 'e1' },
      { start: (HASH_SPACE / 4) * 3, ownerId: 'e2' },
    ]);
  });

  it('returns to the same partition when an engine leaves and comes back, and when one comes and leaves', () => {
    fc.assert(
      fc.property(steps, fc.nat(engineIds.length - 1), (list, index) => {
        let previous = nothing;
        for (const step of list) previous = withBackups(evolve(previous, step));
        const last = list.at(-1)!;
        const without = last.map((weight, other) => (other === index ? 0 : weight));
        fc.pre(without.some((weight) => weight > 0) && last[index]! > 0);
        const before = evolve(previous, last);
        fc.pre(before.runs.length <= MAX_RUNS_PER_ENGINE * engineIds.length);
        const away = evolve(withBackups(before), without);
        expect(evolve(withBackups(away), last).runs).toEqual(before.runs);
      }),
    );
  });

  it('moves only to an added engine, only from a removed one, and finds the earlier map when it returns', () => {
    const four = withBackups(evolve(nothing, [1, 1, 1, 1, 0]));
    const five = evolve(four, [1, 1, 1, 1, 1]);
    for (const move of moves(four.segments, five.runs).keys()) expect(move).toMatch(/>e4$/);

    const removed = evolve(withBackups(five), [1, 1, 0, 1, 1]);
    const spread = moves(five.runs, removed.runs);
    expect([...spread.keys()].sort()).toEqual(['e2>e0', 'e2>e1', 'e2>e3', 'e2>e4']);
    for (const length of spread.values()) expect(length / HASH_SPACE).toBeCloseTo(0.05, 6);

    expect(evolve(withBackups(removed), [1, 1, 1, 1, 1]).runs).toEqual(five.runs);
  });

  it('remembers everybody when nobody can serve', () => {
    const before = evolve(withBackups(evolve(nothing, [3, 1, 2])), [1, 2, 3]);
    const empty = evolvePartition(withBackups(before), new Map(), 3);
    expect(empty.runs).toEqual([]);
    expect(evolve({ segments: [], former: empty.former }, [1, 2, 3], 3).runs).toEqual(before.runs);
  });

  it('keeps runs and memory within their bounds through a thousand steps', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        let state = seed >>> 0;
        const random = () => {
          state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
          return state / 2 ** 32;
        };
        let previous = nothing;
        const list: number[] = engineIds.map(() => random());
        for (let step = 0; step < 1000; step++) {
          list[Math.floor(random() * list.length)] = random() < 0.2 ? 0 : random();
          if (Math.max(...list) === 0) list[0] = 1;
          const next = evolve(previous, list);
          for (const id of engineIds) {
            expect(next.runs.filter(({ ownerId }) => ownerId === id).length).toBeLessThanOrEqual(
              maxRunsOfOneEngine(engineIds.length),
            );
          }
          expect(next.runs.length).toBeLessThanOrEqual(MAX_RUNS_PER_ENGINE * engineIds.length);
          expect(next.former.length).toBeLessThanOrEqual(MAX_FORMER_PER_ENGINE * engineIds.length);
          previous = withBackups(next);
        }
      }),
      { numRuns: 3 },
    );
  });
});
