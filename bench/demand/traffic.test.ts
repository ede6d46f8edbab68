import { expect, it } from 'vitest';
import { Random } from '../../simulator/random.js';
import { type TrafficKind, traffics } from './traffic.js';

const STEP_SECONDS = 0.05;

/** Mean per second, and variance over mean of counts of windows. */
function momentsOf(kind: TrafficKind, windowSeconds: number): { mean: number; dispersion: number } {
  const traffic = traffics[kind](new Random(3, kind));
  const counts = Array.from({ length: 4_000 / windowSeconds }, () => {
    let count = 0;
    for (let step = 0; step < windowSeconds / STEP_SECONDS; step++) count += traffic(40, STEP_SECONDS);
    return count;
  });
  const mean = counts.reduce((sum, count) => sum + count, 0) / counts.length;
  const variance = counts.reduce((sum, count) => sum + (count - mean) ** 2, 0) / (counts.length - 1);
  return { mean: mean / windowSeconds, dispersion: variance / mean };
}

it.each([
  ['even', 2, 0],
  ['independent', 2, 1],
  ['batches', 2, 2],
  ['gusts', 2, 1.4],
  ['gusts', 16, 1.9],
] as const)('%s traffic has its rate, and over %d s a dispersion of %d', (kind, seconds, dispersion) => {
  const moments = momentsOf(kind, seconds);
  expect(Math.abs(moments.mean / 40 - 1)).toBeLessThan(0.02);
  expect(Math.abs(moments.dispersion - dispersion)).toBeLessThan(0.3);
});
