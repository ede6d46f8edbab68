import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RoundTrip } from './round-trip.js';

/** A pair that is configured with 40 ms and measured every 5 s. */
function measured(...ms: readonly number[]): { pair: RoundTrip; nowMs: number } {
  const pair = new RoundTrip(0.04);
  let nowMs = 0;
  for (const each of ms) {
    nowMs += 5_000;
    pair.add(each / 1_000, 1, nowMs);
    pair.evaluate(nowMs);
  }
  return { pair, nowMs };
}

describe('a round trip', () => {
  it('is the configured one until three measurements differ from it', () => {
    const { pair, nowMs } = measured(80, 81);
    expect(pair.evaluate(nowMs)).toMatchObject({ seconds: 0.04, isMeasured: false });
    pair.add(0.082, 1, nowMs);
    expect(pair.evaluate(nowMs)).toMatchObject({ seconds: 0.08, isMeasured: true, isLimited: false });
  });

  it('stays the configured one while the measured one is close', () => {
    const { pair, nowMs } = measured(45, 44, 300, 46);
    const view = pair.evaluate(nowMs);
    expect(view).toMatchObject({ seconds: 0.04, isMeasured: false });
    expect(view.measured).toMatchObject({ seconds: 0.044, samples: 4, atMs: nowMs });
  });

  it('does not rise while anything of two minutes was faster, and does when nothing was', () => {
    const { pair, nowMs } = measured(80, 80, 80, ...Array<number>(20).fill(150));
    expect(pair.evaluate(nowMs).seconds).toBe(0.08);
    for (let at = nowMs; at < nowMs + 30_000; at += 5_000) pair.add(0.15, 1, at);
    expect(pair.evaluate(nowMs + 30_000).seconds).toBe(0.15);
  });

  it('does not move for small changes of what is measured', () => {
    const { pair, nowMs } = measured(80, 80, 80, 78, 76, 74);
    expect(pair.evaluate(nowMs).seconds).toBe(0.08);
    pair.add(0.06, 1, nowMs);
    expect(pair.evaluate(nowMs).seconds).toBe(0.08);
    expect(pair.evaluate(nowMs + 30_000).seconds).toBe(0.06);
  });

  it('is at most four times as long as configured, and says that more was measured', () => {
    const { pair, nowMs } = measured(500, 500, 500);
    expect(pair.evaluate(nowMs)).toMatchObject({ seconds: 0.16, isMeasured: true, isLimited: true });
  });

  it('is what is measured where nothing is configured, up to a second', () => {
    for (const [measuredSeconds, seconds, isLimited] of [
      [0.18, 0.18, false],
      [4, 1, true],
    ] as const) {
      const pair = new RoundTrip(0);
      for (const atMs of [0, 1, 2]) pair.add(measuredSeconds, 1, atMs);
      expect(pair.evaluate(2)).toMatchObject({ seconds, isLimited });
    }
  });

  it('is the configured one again when nothing was measured for ten minutes', () => {
    const { pair, nowMs } = measured(80, 80, 80);
    expect(pair.evaluate(nowMs + 599_000).seconds).toBe(0.08);
    expect(pair.evaluate(nowMs + 600_000)).toMatchObject({ seconds: 0.04, isMeasured: false });
    expect(pair.evaluate(nowMs + 600_000).measured).toBeUndefined();
  });

  it('is never measured where an engine cannot be reached', () => {
    const pair = new RoundTrip(Number.POSITIVE_INFINITY);
    for (const atMs of [0, 1, 2]) pair.add(0.01, 1, atMs);
    expect(pair.evaluate(2)).toMatchObject({ seconds: Number.POSITIVE_INFINITY, isMeasured: false });
  });

  it('is within its limits and moves at most twice a minute, whatever is measured', () => {
    const anySample = fc.record({
      seconds: fc.double({ min: 0, max: 1e6, noNaN: true }),
      samples: fc.integer({ min: 1, max: 5 }),
      afterMs: fc.integer({ min: 0, max: 400_000 }),
    });
    const anyConfigured = fc.double({ min: 0, max: 60, noNaN: true });
    fc.assert(
      fc.property(anyConfigured, fc.array(anySample, { maxLength: 60 }), (configured, samples) => {
        const pair = new RoundTrip(configured);
        let nowMs = 0;
        let last = configured;
        let movedMs = Number.NEGATIVE_INFINITY;
        for (const { seconds, samples: count, afterMs } of samples) {
          nowMs += afterMs;
          pair.add(seconds, count, nowMs);
          const view = pair.evaluate(nowMs);
          expect(view.seconds).toBeGreaterThanOrEqual(configured / 4);
          const most = configured === 0 ? 1 : Math.max(4 * configured, configured + 0.05);
          expect(view.seconds).toBeLessThanOrEqual(most);
          if (!view.isMeasured) expect(view.seconds).toBe(configured);
          if (view.seconds === last) continue;
          // Forgetting is not moving.
          if (view.measured !== undefined) {
            expect(nowMs - movedMs).toBeGreaterThanOrEqual(30_000);
            movedMs = nowMs;
          }
          last = view.seconds;
        }
      }),
    );
  });

  it('is the same whether it is evaluated anew or as far as anything can have changed', () => {
    const anyStep = fc.record({
      seconds: fc.option(fc.double({ min: 0, max: 0.5, noNaN: true }), { nil: undefined }),
      afterMs: fc.integer({ min: 0, max: 90_000 }),
    });
    fc.assert(
      fc.property(fc.array(anyStep, { maxLength: 60 }), (steps) => {
        const pair = new RoundTrip(0.04);
        const anew = new RoundTrip(0.04);
        let nowMs = 0;
        for (const { seconds, afterMs } of steps) {
          nowMs += afterMs;
          if (seconds !== undefined) for (const each of [pair, anew]) each.add(seconds, 1, nowMs);
          anew.inherit(anew);
          expect(pair.evaluate(nowMs)).toEqual(anew.evaluate(nowMs));
        }
      }),
    );
  });
});
