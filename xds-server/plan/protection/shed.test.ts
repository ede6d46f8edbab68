import fc from 'fast-check';
import { expect, it } from 'vitest';
import { shedEntries } from './shed.js';

const fractions = fc.oneof(
  fc.double({ min: 0.001, max: 0.9999, noNaN: true }),
  fc.double({ min: -6, max: -1, noNaN: true }).map((exponent) => 1 - 10 ** exponent),
);

function published(fraction: number, inForce?: number): number {
  const previous = inForce === undefined ? [] : [{ priority: 0, fraction: inForce }];
  return shedEntries([{ priority: 0, fraction }], previous)[0]?.fraction ?? 0;
}

it('a fraction is rounded up, and takes no more than a fiftieth of what is served', () => {
  fc.assert(
    fc.property(fractions, (fraction) => {
      const served = 1 - published(fraction);
      expect(served).toBeLessThanOrEqual((1 - fraction) * (1 + 1e-9));
      expect(served).toBeGreaterThan((1 - fraction) * 0.979);
    }),
  );
  expect(published(1 / 3)).toBe(0.335);
  expect(published(0.9999)).toBe(0.9999);
  expect(published(1)).toBe(1);
});

it('one in force stays while it refuses enough, and takes no more than a 25th of what is served', () => {
  fc.assert(
    fc.property(fractions, fractions, (fraction, inForce) => {
      const served = 1 - published(fraction, inForce);
      expect(served).toBeLessThanOrEqual((1 - fraction) * (1 + 1e-9));
      expect(served).toBeGreaterThan((1 - fraction) * 0.959);
    }),
  );
  expect(published(0.31, 0.325)).toBe(0.325);
  expect(published(0.31, 0.335)).toBe(0.31);
  expect(published(0.99, 0.9903)).toBe(0.9903);
  expect(published(0.99, 0.991)).toBe(0.99);
});
