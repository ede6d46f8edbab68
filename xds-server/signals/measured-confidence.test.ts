import { expect, it } from 'vitest';
import { measuredConfidence } from './measured-confidence.js';

it('measurements are trusted for a minute, then evenly less until they are ten minutes old', () => {
  expect([0, 60_000, 330_000, 600_000, 900_000].map((nowMs) => measuredConfidence(0, nowMs))).toEqual([
    1, 1, 0.5, 0, 0,
  ]);
});
