import fc from 'fast-check';
import { expect, it } from 'vitest';
import { settledSince } from './settled-since.js';

const HOUR_MS = 3_600_000;

it('a large change of demand makes conditions new', () => {
  expect(settledSince(0, 'large', HOUR_MS)).toBe(HOUR_MS);
});

it('a small change after a quiet hour leaves a quarter of it', () => {
  expect(settledSince(0, 'small', HOUR_MS)).toBe(0.75 * HOUR_MS);
});

it('small changes every so often never count as conditions that hold for longer than a third of that', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: HOUR_MS }), (periodMs) => {
      let nowMs = 0;
      let sinceMs = 0;
      for (let change = 0; change < 50; change++) {
        nowMs += periodMs;
        sinceMs = settledSince(sinceMs, 'small', nowMs);
        expect(nowMs - sinceMs).toBeLessThanOrEqual(periodMs / 3 + 1);
      }
    }),
  );
});
