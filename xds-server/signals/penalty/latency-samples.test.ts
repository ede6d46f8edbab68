import fc from 'fast-check';
import { expect, it } from 'vitest';
import { LatencySamples, LONGEST_QUIET_WINDOW_MS, typical } from './latency-samples.js';

/** With an answer each half a second, or less often. */
function samplesOf(seconds: number, everyMs = 500): LatencySamples {
  const samples = new LatencySamples('firstToken');
  const times = { observedSeconds: 0.1, expectedSeconds: 0.1, mostSeconds: 0.1, slowness: 1 };
  for (let atMs = 0; atMs < seconds * 1_000; atMs += everyMs) {
    samples.add({ atMs, kind: 'firstToken', count: 1, ...times });
  }
  return samples;
}

it('answers are forgotten in time also while nobody judges engines by them', () => {
  expect(samplesOf(3_600).save().samples.length).toBeLessThan(2 * samplesOf(60).save().samples.length);
  expect(samplesOf(3_600).recent(3_600_000)).toHaveLength(20);
});

it('with more time, of answers that are rare the last eight count, and of others none but those of half a minute', () => {
  const rare = samplesOf(600, 10_000);
  expect(rare.recent(600_000)).toBeUndefined();
  expect(rare.recent(600_000, LONGEST_QUIET_WINDOW_MS)).toHaveLength(8);
  expect(rare.recent(600_000)).toBeUndefined();
  expect(rare.recent(900_000, LONGEST_QUIET_WINDOW_MS)).toBeUndefined();
  const often = samplesOf(600, 3_000);
  expect(often.recent(600_000, LONGEST_QUIET_WINDOW_MS)).toEqual(often.recent(600_000));
});

it('what is typical is the least value up to which half of the answers are, in whatever order samples come', () => {
  const value = fc.oneof(fc.nat(5), fc.double({ min: 0, max: 10, noNaN: true }), fc.constant(Infinity));
  const sample = fc.record({ slowness: value, count: fc.integer({ min: 1, max: 9 }) });
  fc.assert(
    fc.property(fc.array(sample, { maxLength: 60 }), (drawn) => {
      const times = { atMs: 0, observedSeconds: 0, expectedSeconds: 0, mostSeconds: 0 };
      const samples = drawn.map((each) => ({ kind: 'pace' as const, ...times, ...each }));
      const answers = drawn.flatMap(({ slowness, count }) => Array.from({ length: count }, () => slowness));
      answers.sort((a, b) => a - b);
      expect(typical(samples, ({ slowness }) => slowness)).toBe(answers[(answers.length - 1) >> 1] ?? 0);
    }),
  );
});
