import { expect, it } from 'vitest';
import { LatencySamples } from './latency-samples.js';

/** With an answer each half a second. */
function samplesOf(seconds: number): LatencySamples {
  const samples = new LatencySamples();
  const times = { observedSeconds: 0.1, expectedSeconds: 0.1, mostSeconds: 0.1, slowness: 1 };
  for (let atMs = 0; atMs < seconds * 1_000; atMs += 500) {
    samples.add({ atMs, kind: 'firstToken', count: 1, ...times });
  }
  return samples;
}

it('answers are forgotten in time also while nobody judges engines by them', () => {
  expect(samplesOf(3_600).save().samples.length).toBeLessThan(2 * samplesOf(60).save().samples.length);
  expect(samplesOf(3_600).recent(3_600_000)).toHaveLength(20);
});
