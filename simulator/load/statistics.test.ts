import fc from 'fast-check';
import { expect, it } from 'vitest';
import { meanOf, quantile } from './statistics.js';

it('gives the smallest value that the share of all values does not exceed', () => {
  expect([0, 0.25, 0.5, 0.9, 1].map((q) => quantile([4, 1, 3, 2], q))).toEqual([1, 1, 2, 4, 4]);
  const values = fc.array(fc.double({ noNaN: true }), { minLength: 1 });
  fc.assert(
    fc.property(values, fc.double({ min: 0.01, max: 1, noNaN: true }), (list, q) => {
      const value = quantile(list, q);
      expect(list.filter((other) => other <= value).length).toBeGreaterThanOrEqual(q * list.length);
      expect(list.filter((other) => other < value).length).toBeLessThan(q * list.length);
    }),
  );
});

it('has no value for nothing', () => {
  expect([meanOf([]), quantile([], 0.5)]).toEqual([Number.NaN, Number.NaN]);
});
