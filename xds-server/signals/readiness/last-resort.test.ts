import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Fleet } from '../../fleet/fleet.js';
import { eligibleIds, lastResortsOf, withoutLastResorts } from '../../fleet/last-resort.js';
import { changedResorts, type Fitness, lastResorts } from './last-resort.js';

function poolsOf(pools: Readonly<Record<string, readonly string[]>>): Fleet['pools'] {
  return Object.entries(pools).map(([id, engineIds]) => ({ id, model: id, needs: [], engineIds }));
}

const ids = ['a', 'b', 'c', 'd'];
const some = fc.subarray(ids, { minLength: 1 });
const pools = fc.record({ p: some, q: some, r: some }).map(poolsOf);
const fitness = fc
  .tuple(...ids.map(() => fc.constantFrom<Fitness | null>('fit', 'drained', 'lost', null)))
  .map((all) => new Map(ids.flatMap((id, at) => (all[at] === null ? [] : [[id, all[at]!] as const]))));

describe('an engine that is the last of one pool', () => {
  it('is left out of pools that have somebody fitter, and of no other', () => {
    const found = lastResorts(
      poolsOf({ base: ['a', 'b', 'c'], adapter: ['b'], both: ['b', 'd'], spare: ['c', 'd'] }),
      new Map([
        ['a', 'fit'],
        ['b', 'lost'],
        ['d', 'drained'],
      ]),
    );
    expect([...found]).toEqual([
      ['base', ['b']],
      ['both', ['b']],
    ]);
  });

  it('pools of which somebody is fit keep the fit only, others the fittest they have', () => {
    fc.assert(
      fc.property(pools, fitness, (list, fitnessOf) => {
        const fleet = { pools: list } as Fleet;
        const narrowed = withoutLastResorts(fleet, lastResorts(list, fitnessOf));
        narrowed.pools.forEach((pool, at) => {
          const before = list[at]!.engineIds;
          const able = (each: readonly string[]) => each.flatMap((id) => fitnessOf.get(id) ?? []);
          expect(new Set(able(pool.engineIds)).size).toBeLessThanOrEqual(1);
          expect(able(pool.engineIds)[0]).toBe(able(before).sort(byFitness)[0]);
          expect(eligibleIds(pool)).toEqual(before);
        });
      }),
    );
  });
});

const byFitness = (a: Fitness, b: Fitness) => order.indexOf(a) - order.indexOf(b);
const order: readonly Fitness[] = ['fit', 'drained', 'lost'];

it('a fleet without last resorts is the fleet itself, and none is left when all are taken back', () => {
  fc.assert(
    fc.property(pools, fitness, (list, fitnessOf) => {
      const fleet = { pools: list } as Fleet;
      expect(withoutLastResorts(fleet, new Map())).toBe(fleet);
      const resorts = lastResorts(list, fitnessOf);
      const narrowed = withoutLastResorts(fleet, resorts);
      expect(lastResortsOf(narrowed)).toEqual(resorts);
      expect(withoutLastResorts(narrowed, new Map())).toEqual(fleet);
    }),
  );
});

it('no pool is left empty by last resorts of another fleet', () => {
  const fleet = { pools: poolsOf({ p: ['a', 'b'] }) } as Fleet;
  expect(withoutLastResorts(fleet, new Map([['p', ['a', 'b']]]))).toEqual(fleet);
});

it('changes are those engines that one of two times names', () => {
  const before = new Map([
    ['p', ['a', 'b']],
    ['q', ['a']],
  ]);
  expect(changedResorts(before, before)).toEqual(new Set());
  expect(changedResorts(before, new Map([['p', ['a', 'c']]]))).toEqual(new Set(['a', 'b', 'c']));
});
