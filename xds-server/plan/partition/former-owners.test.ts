import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FormerOwners } from './former-owners.js';

const LENGTH = 30;
const transfers = fc.array(fc.tuple(fc.nat(LENGTH - 1), fc.integer({ min: 1, max: 12 }), fc.nat(3)), {
  maxLength: 25,
});

describe('FormerOwners', () => {
  it('lists for every point its owners before the present one, latest first, each once', () => {
    fc.assert(
      fc.property(transfers, (list) => {
        const former = new FormerOwners();
        const owners = new Array<number>(LENGTH).fill(0);
        const histories = owners.map((): number[] => []);
        for (const [start, size, to] of list) {
          for (let point = start; point < Math.min(LENGTH, start + size); point++) {
            const from = owners[point]!;
            if (from === to) continue;
            former.transferred(point, point + 1, from, to);
            owners[point] = to;
            const history = histories[point]!.filter((owner) => owner !== from && owner !== to);
            histories[point] = [from, ...history];
          }
        }
        histories.forEach((history, point) => {
          const claims = former.all().filter(({ start, end }) => start <= point && point < end);
          expect(claims.map(({ owner }) => owner)).toEqual(history);
        });
      }),
    );
  });

  it('joins neighbouring parts of one change, but never a new part with an old one', () => {
    const former = new FormerOwners([{ start: 0, end: 5, owner: 1 }]);
    former.transferred(5, 6, 1, 2);
    former.transferred(6, 8, 1, 3);
    expect(former.all()).toEqual([
      { start: 5, end: 8, owner: 1 },
      { start: 0, end: 5, owner: 1 },
    ]);
  });

  it('forgets the oldest first, but keeps half of its memory for owners that are away', () => {
    const claims = [1, 1, 1, 1, 2, 2, 2].map((owner, index) => ({ start: index, end: index + 1, owner }));
    const former = new FormerOwners(claims);
    const starts = (limit: number, away: number) =>
      former.remembered(limit, (owner) => owner === away).map(({ start }) => start);
    expect(starts(7, 2)).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect(starts(4, 2)).toEqual([0, 1, 4, 5]);
    expect(starts(2, 2)).toEqual([0, 4]);
    expect(starts(2, 1)).toEqual([0, 1]);
  });
});
