import fc from 'fast-check';
import { expect, it } from 'vitest';
import { estimate, median, quantile } from './statistics.js';

const values = fc.array(fc.double({ min: 0, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 40 });

it('a median has as many values below as above', () => {
  expect(median([5, 1, 3])).toBe(3);
  expect(median([4, 1, 3, 2])).toBe(2.5);
});

it('a quantile is the smallest value with enough of the others below', () => {
  const hundred = Array.from({ length: 100 }, (_, at) => at + 1);
  expect(quantile(hundred, 0.5)).toBe(50);
  expect(quantile(hundred, 0.99)).toBe(99);
  expect(quantile([7], 0.99)).toBe(7);
});

it('an interval holds its value and stays within what was measured', () => {
  fc.assert(
    fc.property(values, (measured) => {
      const { value, low, high } = estimate(measured.length, (rounds) =>
        median(rounds.map((round) => measured[round]!)),
      );
      expect(value).toBe(median(measured));
      expect(low).toBeLessThanOrEqual(value);
      expect(high).toBeGreaterThanOrEqual(value);
      expect(low).toBeGreaterThanOrEqual(Math.min(...measured));
      expect(high).toBeLessThanOrEqual(Math.max(...measured));
    }),
    { numRuns: 30 },
  );
});

it('what all rounds share does not widen the interval of a difference', () => {
  const floor = Array.from({ length: 20 }, (_, round) => 100 + 50 * Math.sin(round));
  const { low, high } = estimate(20, (rounds) =>
    median(rounds.map((round) => floor[round]! + 10 - floor[round]!)),
  );
  expect([low, high]).toEqual([10, 10]);
});
