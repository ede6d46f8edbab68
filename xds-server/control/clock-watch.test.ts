import { expect, it } from 'vitest';
import { ClockWatch } from './clock-watch.js';

it('says how far the clock is behind what it has shown, until it has caught up', () => {
  const watch = new ClockWatch();
  const steps = [1_000, 100_000, 96_000, 40_000, 41_000, 95_500, 100_001];
  expect(steps.map((nowMs) => watch.behindMs(nowMs))).toEqual([0, 0, 0, 60_000, 59_000, 0, 0]);
});
