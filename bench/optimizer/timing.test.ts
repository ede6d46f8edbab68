import { expect, test } from 'vitest';
import { quantiles } from './timing.js';

test('quantiles are values that occurred, the smallest with enough of the others below', () => {
  const hundred = Array.from({ length: 100 }, (_, at) => 100 - at);
  expect(quantiles(hundred)).toEqual({ p50: 50, p99: 99 });
  expect(quantiles([3, 1, 2])).toEqual({ p50: 2, p99: 3 });
});
