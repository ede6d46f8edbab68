import { expect, it } from 'vitest';
import { Refusals } from './refusals.js';

it('a refusal is news until it comes again, and over when nobody came for a minute', () => {
  const refusals = new Refusals();
  expect(refusals.note('10.0.0.1:7001', 'token', 0)).toBe(true);
  expect(refusals.note('10.0.0.1:7002', 'token', 40_000)).toBe(false);
  expect(refusals.note('[::1]:7002', 'token', 40_000)).toBe(true);
  expect(refusals.list(100_000)).toMatchObject([{ host: '10.0.0.1' }, { host: '[::1]' }]);
  expect(refusals.list(100_001)).toEqual([]);
  expect(refusals.note('10.0.0.1:7003', 'token', 100_001)).toBe(true);
});
