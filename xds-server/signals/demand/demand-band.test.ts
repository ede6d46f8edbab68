import { expect, it } from 'vitest';
import { DemandBand } from './demand-band.js';
import { RateSeries } from './rate-series.js';

const START_MS = 1_600_000_000_000;
const FIRST = { requestsPerSecond: 65, evidence: 150 };

/** What a band makes of 8 s of 60 requests/s each that follow a first measurement of 65. */
function refined(band: DemandBand): ReturnType<DemandBand['observe']> {
  const endMs = START_MS + 8_000;
  const series = new RateSeries();
  for (let ms = 0; ms < 8_000; ms += 500) series.add(30, START_MS + ms, START_MS + ms + 500);
  const windows = series.windows(endMs, START_MS).map((window) => ({ ...window, dispersion: 1 }));
  return band.observe(windows, endMs, 1);
}

it('the rate of a surge follows what is counted more closely than another young one, as requests may be refused by it', () => {
  const surging = new DemandBand({ requestsPerSecond: 40, evidence: 1_600 });
  surging.surgeTo(FIRST, START_MS);
  expect(refined(surging)).toBe('small');
  expect(surging.state.requestsPerSecond).toBeCloseTo(60, 6);
  const young = new DemandBand(FIRST);
  young.begin(START_MS);
  expect(refined(young)).toBeUndefined();
  expect(young.state.requestsPerSecond).toBe(65);
});
