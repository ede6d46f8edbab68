import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { capacityPenalty, Penalty } from './penalty.js';

/** Advances twice a second with the same excess. */
function run(penalty: Penalty, excess: number | undefined, fromMs: number, toMs: number): number {
  for (let nowMs = fromMs; nowMs <= toMs; nowMs += 500) penalty.advance(excess, nowMs);
  return penalty.severity;
}

describe('a penalty', () => {
  it('begins when an engine has been twice as slow for two seconds, not before', () => {
    const penalty = new Penalty();
    expect(run(penalty, 1.9, 0, 60_000)).toBe(1);
    expect(run(penalty, 4, 60_500, 62_000)).toBe(1);
    run(penalty, 1, 62_500, 62_500);
    expect(run(penalty, 4, 63_000, 64_500)).toBe(1);
    expect(run(penalty, 4, 65_000, 65_000)).toBe(4);
    expect(penalty.sinceMs).toBe(65_000);
  });

  it('follows what gets worse at once, and is never above ten', () => {
    const penalty = new Penalty();
    run(penalty, 3, 0, 2_000);
    expect(run(penalty, 8, 2_500, 2_500)).toBe(8);
    expect(run(penalty, 50, 3_000, 3_000)).toBe(10);
  });

  it('is not moved by small changes', () => {
    const penalty = new Penalty();
    run(penalty, 4, 0, 2_000);
    expect(run(penalty, 4.9, 2_500, 20_000)).toBe(4);
    expect(run(penalty, 3.3, 20_500, 60_000)).toBe(4);
  });

  it('ends step by step within 20 s when the engine is as fast as before', () => {
    const penalty = new Penalty();
    run(penalty, 10, 0, 2_000);
    expect(run(penalty, 1, 2_500, 7_000)).toBe(5);
    expect(run(penalty, 1, 7_500, 22_000)).toBe(1);
    expect(penalty.sinceMs).toBeUndefined();
  });

  it('does not end because the load is gone that would explain more, while answers are as slow as before', () => {
    const penalty = new Penalty();
    run(penalty, 4, 0, 2_000);
    for (let nowMs = 2_500; nowMs <= 60_000; nowMs += 500) penalty.advance(0.5, nowMs, 3.5);
    expect(penalty.severity).toBe(4);
    for (let nowMs = 60_500; nowMs <= 90_000; nowMs += 500) penalty.advance(0.5, nowMs, 1);
    expect(penalty.severity).toBe(1);
  });

  it('falls to how slow the engine was at most lately, as answers scatter', () => {
    const penalty = new Penalty();
    run(penalty, 8, 0, 2_000);
    for (let at = 0; at < 200; at++) penalty.advance(0.5, 2_500 + 500 * at, at % 20 === 0 ? 3 : 1.5);
    expect(penalty.severity).toBe(3);
  });

  it('leaves at once the capacity that is surely used since it rose, while answers are still late from the queue', () => {
    const penalty = new Penalty();
    run(penalty, 8, 0, 2_000);
    expect(penalty.capacitySeverity).toBe(8);
    penalty.advance(7, 6_000, 1, { slowness: 2, sinceMs: 1_000 });
    expect(penalty.capacitySeverity).toBe(8);
    penalty.advance(7, 8_000, 1, { slowness: 2, sinceMs: 3_000 });
    expect([penalty.severity, penalty.capacitySeverity]).toEqual([8, 2]);
    penalty.advance(7, 8_500, 1, { slowness: 4, sinceMs: 3_500 });
    expect(penalty.capacitySeverity).toBe(2);
    penalty.advance(10, 9_000);
    expect([penalty.severity, penalty.capacitySeverity]).toEqual([10, 10]);
  });

  it('falls to what the engine can be at most by what it gets done, whatever its answers were like before', () => {
    const penalty = new Penalty();
    run(penalty, 10, 0, 2_000);
    const limit = (nowMs: number, slowness: number) => ({ slowness, sinceMs: nowMs - 5_000 });
    // At first that tells of the time before it was slow.
    for (let nowMs = 2_500; nowMs < 7_000; nowMs += 500) penalty.advance(0.5, nowMs, 10, limit(nowMs, 1));
    expect(penalty.severity).toBe(10);
    // It has worked off its queue in a moment, and then has little to do.
    for (let nowMs = 7_500; nowMs <= 18_000; nowMs += 500) {
      penalty.advance(0.5, nowMs, 10, limit(nowMs, nowMs < 9_000 ? 1.5 : 8));
    }
    expect(penalty.severity).toBe(1.5);
    // That is forgotten when it is slow again.
    penalty.advance(6, 18_500, 6, limit(18_500, 8));
    for (let nowMs = 19_000; nowMs <= 30_000; nowMs += 500) penalty.advance(0.5, nowMs, 6, limit(nowMs, 8));
    expect(penalty.severity).toBe(6);
  });

  it('ends within half a minute where it is below 1.3 by what the engine surely gets done, however slow it was and however late its answers are', () => {
    const past = fc.double({ min: 2, max: 20, noNaN: true });
    const below = fc.double({ min: 1, max: 1.29, noNaN: true });
    fc.assert(
      fc.property(past, below, below, (before, excess, surely) => {
        const penalty = new Penalty();
        run(penalty, before, 0, 2_000);
        // Its queue is as long as when it was slow.
        for (let nowMs = 2_500; nowMs <= 32_000; nowMs += 500)
          penalty.advance(excess, nowMs, 20, { slowness: surely, sinceMs: nowMs - 6_000 });
        expect(penalty.severity).toBe(1);
      }),
    );
  });

  it('of an engine that turns slow again and again does not believe each of its pauses, and ends within 2 min after the last', () => {
    const penalty = new Penalty();
    const least: number[] = [];
    const advance = (nowMs: number, slowness: number) => {
      // Its few requests tell little of a queue: only their times do.
      penalty.advance(slowness > 1 ? 10 : 0.5, nowMs, slowness);
      return penalty.severity;
    };
    for (let turn = 0; turn < 8; turn++) {
      const severities = Array.from({ length: 80 }, (_, step) =>
        advance((turn * 80 + step) * 500, step < 40 ? 10 : 1),
      );
      least.push(Math.min(...severities.slice(10)));
    }
    expect(least[0]).toBeLessThan(10);
    expect(least.slice(2)).toEqual([10, 10, 10, 10, 10, 10]);
    const lastSlowMs = (7 * 80 + 39) * 500;
    let nowMs = 8 * 80 * 500;
    while (advance(nowMs, 1) > 1) nowMs += 500;
    expect(nowMs - lastSlowMs).toBeLessThan(120_000);
  });

  it('eases while nothing is heard, so that requests come back', () => {
    const penalty = new Penalty();
    run(penalty, 10, 0, 2_000);
    expect(run(penalty, undefined, 2_500, 11_500)).toBe(10);
    expect(run(penalty, undefined, 12_000, 12_000)).toBe(7);
    expect(run(penalty, undefined, 12_500, 80_000)).toBe(1);
  });

  it('leaves the share of the capacity that an engine so much slower has, and at any input at least a tenth', () => {
    expect(capacityPenalty(1)).toBe(0);
    expect(capacityPenalty(2)).toBe(0.5);
    expect(capacityPenalty(10)).toBe(0.9);
    const excess = fc.option(fc.double({ min: 0, max: 1e6, noNaN: true }), { nil: undefined });
    fc.assert(
      fc.property(fc.array(excess, { maxLength: 100 }), (list) => {
        const penalty = new Penalty();
        for (const [at, value] of list.entries()) {
          penalty.advance(value, at * 1_000);
          expect(penalty.severity).toBeGreaterThanOrEqual(1);
          expect(penalty.severity).toBeLessThanOrEqual(10);
          expect(capacityPenalty(penalty.severity)).toBeLessThanOrEqual(0.9);
          expect(penalty.severity > 1).toBe(penalty.sinceMs !== undefined);
        }
      }),
    );
  });
});
