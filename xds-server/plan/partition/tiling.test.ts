import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NOBODY, Tiling } from './tiling.js';

const LENGTH = 40;
const strokes = fc.array(fc.tuple(fc.nat(LENGTH - 1), fc.nat(LENGTH), fc.integer({ min: NOBODY, max: 3 })), {
  maxLength: 30,
});

describe('Tiling', () => {
  it('holds after any strokes what an array of points would hold, in the fewest runs', () => {
    fc.assert(
      fc.property(strokes, (list) => {
        const tiling = new Tiling(LENGTH);
        const points = new Array<number>(LENGTH).fill(NOBODY);
        for (const [start, size, owner] of list) {
          const end = Math.min(LENGTH, start + size);
          tiling.paint(start, end, owner);
          points.fill(owner, start, end);
        }
        const runs = points
          .map((owner, start) => ({ start, owner }))
          .filter(({ start, owner }) => start === 0 || points[start - 1] !== owner);
        expect(tiling.runs()).toEqual(runs);
        points.forEach((owner, point) => {
          expect(tiling.ownerOf(tiling.runAt(point))).toBe(owner);
        });
        expect(tiling.lengths(4)).toEqual(
          [0, 1, 2, 3].map((owner) => points.filter((other) => other === owner).length),
        );
      }),
    );
  });
});
