import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { turningPoints } from './steadiness.js';

describe('turning points', () => {
  it('are none in a series that stands still, or moves within the band', () => {
    expect(turningPoints([], 0.02)).toEqual({ largest: 0, turns: 0 });
    expect(turningPoints([0.5, 0.51, 0.495, 0.505], 0.02)).toEqual({ largest: 0, turns: 0 });
  });

  it('are none in one change, however large; its size is told', () => {
    const { largest, turns } = turningPoints([0.2, 0.2, 0.5, 0.9, 0.9], 0.02);
    expect(turns).toBe(0);
    expect(largest).toBeCloseTo(0.7);
  });

  it('are all peaks and troughs of a wave beyond the first swing', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.double({ min: 0.1, max: 0.5, noNaN: true }),
        (waves, size) => {
          const series = Array.from({ length: waves }, () => [0.5, 0.5 + size]).flat();
          const result = turningPoints(series, 0.02);
          expect(result.turns).toBe(2 * waves - 2);
          expect(result.largest).toBeCloseTo(size);
        },
      ),
    );
  });
});
