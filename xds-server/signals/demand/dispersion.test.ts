import { expect, it } from 'vitest';
import { Random } from '../../../simulator/random.js';
import { conversationCounts, poissonCounts } from '../testing/traffic.js';
import { Dispersion } from './dispersion.js';
import { RateSeries } from './rate-series.js';

function dispersionOf(counts: readonly number[]): Dispersion {
  const series = new RateSeries();
  const dispersion = new Dispersion();
  counts.forEach((count, second) => {
    series.add(count, second * 1_000, (second + 1) * 1_000);
    dispersion.observe((fromMs, toMs) => series.count(fromMs, toMs), 0, (second + 1) * 1_000);
  });
  return dispersion;
}

it('is 1 before anything was counted', () => {
  for (const seconds of [2, 10, 500]) expect(new Dispersion().of(seconds)).toBe(1);
});

it('is about 1 for independent requests', () => {
  const dispersion = dispersionOf(poissonCounts(40, 3_600, new Random(1, 'poisson')));
  for (const seconds of [2, 4, 16, 100, 500]) expect(dispersion.of(seconds)).toBeLessThan(1.5);
});

it('is that of whole conversations in long windows, and small in those that are shorter than a gap between turns', () => {
  const dispersion = dispersionOf(conversationCounts(40, 3_600, new Random(2, 'conversations')));
  expect(dispersion.of(2)).toBeLessThan(1.5);
  // Two to six turns: the mean of n² over the mean of n is 4.5.
  expect(dispersion.of(60)).toBeGreaterThan(3);
  expect(dispersion.of(60)).toBeLessThan(6);
  expect(dispersion.of(8)).toBeGreaterThan(dispersion.of(2));
});

it('never falls with the length of the window', () => {
  const dispersion = dispersionOf(conversationCounts(10, 1_200, new Random(3, 'conversations')));
  let last = 0;
  for (let seconds = 1; seconds <= 512; seconds *= 1.3) {
    expect(dispersion.of(seconds)).toBeGreaterThanOrEqual(last);
    last = dispersion.of(seconds);
  }
});

it('is hardly touched by a step, a slow rise or a burst', () => {
  const random = new Random(4, 'poisson');
  const steady = poissonCounts(40, 1_200, random);
  const step = [...steady, ...poissonCounts(60, 60, random)];
  const rise = Array.from({ length: 1_200 }, (_, second) => poissonCounts(40 + second / 60, 1, random)[0]!);
  const burst = steady.map((count, second) => (second === 1_000 ? count + 400 : count));
  for (const counts of [step, rise, burst]) expect(dispersionOf(counts).of(4)).toBeLessThan(1.8);
});

it('learns nothing from a step that is not older than what it waits for', () => {
  const random = new Random(5, 'poisson');
  const counts = [...poissonCounts(400, 300, random), ...poissonCounts(480, 59, random)];
  const series = new RateSeries();
  const [waiting, eager] = [new Dispersion(60_000), new Dispersion()];
  counts.forEach((count, second) => {
    series.add(count, second * 1_000, (second + 1) * 1_000);
    for (const each of [waiting, eager]) {
      each.observe((fromMs, toMs) => series.count(fromMs, toMs), 0, (second + 1) * 1_000);
    }
  });
  expect(waiting.of(16)).toBeLessThan(1.5);
  expect(eager.of(16)).toBeGreaterThan(1.5);
});
