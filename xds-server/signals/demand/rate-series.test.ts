import fc from 'fast-check';
import { expect, it } from 'vitest';
import { RateSeries } from './rate-series.js';

it('a window over everything that was added holds exactly that', () => {
  const reports = fc.array(fc.record({ ms: fc.integer({ min: 1, max: 5_000 }), count: fc.nat(500) }), {
    minLength: 1,
    maxLength: 60,
  });
  fc.assert(
    fc.property(reports, fc.integer({ min: 1, max: 1e6 }), (items, offset) => {
      const series = new RateSeries();
      let atMs = 1_600_000_000_000 + offset;
      let total = 0;
      for (const { ms, count } of items) {
        series.add(count, atMs, atMs + ms);
        atMs += ms;
        total += count;
      }
      expect(series.windows(atMs, 0).at(-1)!.count).toBeCloseTo(total, 6);
      const endMs = Math.ceil(atMs / 500) * 500;
      expect(series.windows(endMs, 0).at(-1)!.count).toBeCloseTo(total, 6);
    }),
  );
});

it('windows end at the given time and reach back no further than told', () => {
  const series = new RateSeries();
  const startMs = 1_600_000_000_000;
  for (let second = 0; second < 60; second++) {
    series.add(second < 30 ? 10 : 20, startMs + second * 1_000, startMs + (second + 1) * 1_000);
  }
  const windows = series.windows(startMs + 60_000, startMs + 20_000);
  expect(windows.find(({ seconds }) => seconds === 10)!.count).toBeCloseTo(200);
  expect(windows.at(-1)).toEqual({ seconds: 40, count: expect.closeTo(700) });
  expect(series.windows(startMs + 30_000, startMs).at(-1)!.count).toBeCloseTo(300);
});

it('looks back 17 min, in steps of 4 s where a window is longer than 8 min', () => {
  const series = new RateSeries();
  const startMs = 1_600_000_000_000;
  const endMs = startMs + 2_000_000;
  for (let atMs = startMs; atMs < endMs; atMs += 500) series.add(5, atMs, atMs + 500);
  const windows = series.windows(endMs, startMs);
  for (const { seconds, count } of windows) expect(count).toBeCloseTo(10 * seconds);
  expect(windows.at(-1)!.seconds).toBeGreaterThan(1_000);
  expect(windows.map(({ seconds }) => seconds)).toEqual(
    windows.map(({ seconds }) => seconds).sort((a, b) => a - b),
  );
  expect(series.windows(endMs, endMs - 700_300).at(-1)).toEqual({
    seconds: 700,
    count: expect.closeTo(7_000),
  });
});

it('a window that ends within a bin holds its share of what sources tell of the bin', () => {
  const series = new RateSeries();
  const startMs = 1_600_000_000_000;
  series.add(100, startMs, startMs + 10_000);
  series.add(100, startMs, startMs + 9_900);
  const [window] = series.windows(startMs + 9_900, startMs);
  expect(window!.seconds).toBeCloseTo(2.15);
  expect(Math.abs(window!.count / (2.15 * 20.1) - 1)).toBeLessThan(0.02);
});

it('forgets what is older than the ring', () => {
  const series = new RateSeries();
  const startMs = 1_600_000_000_000;
  series.add(1_000, startMs, startMs + 1_000);
  series.add(7, startMs + 10_000_000, startMs + 10_000_500);
  expect(series.windows(startMs + 10_001_000, 0).at(-1)!.count).toBeCloseTo(7);
  series.add(5, startMs, startMs + 1_000);
  expect(series.windows(startMs + 10_001_000, 0).at(-1)!.count).toBeCloseTo(7);
});

it('finds where the last events go back to', () => {
  const series = new RateSeries();
  const startMs = 1_600_000_000_000;
  series.add(5, startMs, startMs + 500);
  series.add(40, startMs + 10_000, startMs + 12_000);
  expect(series.startOfLast(20, startMs + 12_000)).toBe(startMs + 11_000);
  expect(series.startOfLast(41, startMs + 12_000)).toBe(startMs + 250);
  expect(series.startOfLast(46, startMs + 12_000)).toBeUndefined();
});
