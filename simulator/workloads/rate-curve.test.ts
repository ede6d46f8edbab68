import fc from 'fast-check';
import { expect, it } from 'vitest';
import { day, steps } from './rate-curve.js';

it('a step holds from its time on, the first value also before', () => {
  const curve = steps([10, 5], [20, 9], [30, 1]);
  expect([0, 10, 19.9, 20, 35].map((at) => curve.at(at))).toEqual([5, 5, 5, 9, 1]);
  expect(curve.peak).toBe(9);
});

it('a day stays between its trough and its peak, with the ratio and the mean that were asked for', () => {
  fc.assert(
    fc.property(
      fc.double({ min: 1, max: 5, noNaN: true }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (ratio, phase) => {
        const curve = day(10, ratio, 100, phase);
        const values = Array.from({ length: 1000 }, (_, index) => curve.at(index / 10));
        expect(Math.max(...values)).toBeLessThanOrEqual(curve.peak + 1e-9);
        expect(Math.max(...values) / Math.min(...values)).toBeCloseTo(ratio, 2);
        expect(values.reduce((a, b) => a + b, 0) / 1000).toBeCloseTo(10, 6);
      },
    ),
  );
});
