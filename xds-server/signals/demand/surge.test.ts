import fc from 'fast-check';
import { expect, it } from 'vitest';
import { RateSeries } from './rate-series.js';
import { type KnownRate, surgeSign } from './surge.js';

const START_MS = 1_600_000_000_000;

function known(requestsPerSecond: number, rows = 1): KnownRate {
  return { requestsPerSecond, evidence: Infinity, width: 0.05, rows };
}

interface Given {
  readonly dispersion?: number;
  readonly held?: number;
  readonly historySeconds?: number;
  readonly rows?: number;
}

/** Strength after even traffic at `rate`, and then `factor` times as much for `seconds`. */
function strength(rate: number, factor: number, seconds: number, given: Given = {}): number {
  const { dispersion = 1, held = rate, historySeconds = 400, rows = 1 } = given;
  const series = new RateSeries();
  const changeMs = START_MS + historySeconds * 1_000;
  const endMs = changeMs + seconds * 1_000;
  series.add(rate * historySeconds, START_MS, changeMs);
  series.add(rate * factor * seconds, changeMs, endMs);
  const windows = series.windows(endMs, START_MS).map((window) => ({ ...window, dispersion }));
  return surgeSign(windows, known(held, rows)).strength;
}

it('a rise by half is a surge after 2.5 s at 40 requests/s, and at 5, where there is no hurry, after half a minute', () => {
  expect(strength(40, 1.5, 2.25)).toBeLessThan(1);
  expect(strength(40, 1.5, 2.5)).toBeGreaterThanOrEqual(1);
  expect(strength(5, 1.5, 26)).toBeLessThan(1);
  expect(strength(5, 1.5, 32)).toBeGreaterThanOrEqual(1);
});

it('what shows within 2.5 s must be clearer', () => {
  expect(strength(45, 1.5, 2.25)).toBeLessThan(1);
  expect(strength(45, 1.5, 2.5)).toBeGreaterThanOrEqual(1);
  expect(strength(60, 1.5, 2.25)).toBeGreaterThanOrEqual(1);
});

it('no rise by up to a fifth is ever a surge', () => {
  const rate = fc.double({ min: 0.1, max: 1_000, noNaN: true });
  const factor = fc.double({ min: 0, max: 1.2, noNaN: true });
  const seconds = fc.double({ min: 0.1, max: 120, noNaN: true });
  fc.assert(
    fc.property(rate, factor, seconds, (...rise) => {
      expect(strength(...rise)).toBeLessThan(1);
    }),
  );
});

it('requests that come in lumps must show a surge for longer', () => {
  expect(strength(40, 1.5, 4.75, { dispersion: 2 })).toBeLessThan(1);
  expect(strength(40, 1.5, 5.25, { dispersion: 2 })).toBeGreaterThanOrEqual(1);
});

it('one of many rows must show a surge for longer, by twice the logarithm of their number', () => {
  expect(strength(40, 1.5, 3.5, { rows: 20 })).toBeLessThan(1);
  expect(strength(40, 1.5, 4, { rows: 20 })).toBeGreaterThanOrEqual(1);
});

it('a rise counts from where the rate was, not from where it is held', () => {
  expect(strength(42, 1.5, 2.5, { held: 40 })).toBeGreaterThanOrEqual(1);
  expect(strength(42, 1.4, 2.5, { held: 40 })).toBeLessThan(1);
  expect(strength(40, 1.5, 2.5, { held: 42 })).toBeGreaterThanOrEqual(1);
});

it('a surge soon after the start is found as fast', () => {
  expect(strength(40, 1.5, 2.5, { historySeconds: 2 })).toBeGreaterThanOrEqual(1);
});

it('a burst of a second is no surge, and neither are a few requests where there were none', () => {
  expect(strength(40, 2, 1)).toBeLessThan(1);
  expect(strength(0, 1, 1)).toBe(0);
  const windows = [{ seconds: 2, count: 100, dispersion: 1 }];
  expect(surgeSign(windows, known(0)).strength).toBeLessThan(1);
});

it('requests that were held up for some seconds and then come together are no surge', () => {
  const rate = fc.integer({ min: 20, max: 1_000 });
  const stillSeconds = fc.double({ min: 0.5, max: 6, noNaN: true });
  const burstSeconds = fc.double({ min: 0.05, max: 2, noNaN: true });
  fc.assert(
    fc.property(rate, stillSeconds, burstSeconds, (requestsPerSecond, still, burst) => {
      const series = new RateSeries();
      const fromMs = START_MS + 60_000;
      const burstMs = fromMs + still * 1_000;
      const endMs = burstMs + burst * 1_000;
      series.add(60 * requestsPerSecond, START_MS, fromMs);
      series.add((still + burst) * requestsPerSecond, burstMs, endMs);
      series.add(5 * requestsPerSecond, endMs, endMs + 5_000);
      for (let lookMs = burstMs; lookMs <= endMs + 5_000; lookMs += 100) {
        const windows = series.windows(lookMs, START_MS).map((window) => ({ ...window, dispersion: 1 }));
        expect(surgeSign(windows, known(requestsPerSecond)).strength).toBeLessThan(1);
      }
    }),
  );
});
