import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TurnGaps } from './turn-gaps.js';

const POOL = 7n;
const turn = (key: bigint, turns = 1) => ({ pool: POOL, key, turns });

/** Conversations of 100 turns, one with each of these keys, with this gap. */
function talk(gaps: TurnGaps, keys: readonly bigint[], gapMs: number, turns = 100): void {
  for (let n = 0; n < turns; n++) for (const key of keys) gaps.add(turn(key), n * gapMs);
}

describe('turn gaps', () => {
  it('are the mean time between turns of a conversation, whoever reports them', () => {
    const gaps = new TurnGaps();
    talk(gaps, [1n, 2n, 3n], 20_000);
    const view = gaps.view(POOL)!;
    expect(view.gapSeconds).toBeCloseTo(20, 6);
    expect(view.followUpShare).toBeGreaterThan(0.95);
  });

  it('are unknown before fifty were counted', () => {
    const gaps = new TurnGaps();
    talk(gaps, [1n], 1_000, 51);
    expect(gaps.view(POOL)).toBeUndefined();
    gaps.add(turn(1n), 51_000);
    expect(gaps.view(POOL)?.gapSeconds).toBeCloseTo(1, 6);
  });

  it('are taken of the conversation with the least key where several would be watched in one place', () => {
    const gaps = new TurnGaps();
    for (let n = 0; n < 100; n++) {
      gaps.add(turn(1n), n * 10_000);
      gaps.add(turn(65n), n * 10_000 + 5_000);
    }
    expect(gaps.view(POOL)?.gapSeconds).toBeCloseTo(10, 6);
  });

  it('do not count when they are longer than ten minutes: the conversation begins anew', () => {
    const gaps = new TurnGaps();
    talk(gaps, [1n], 600_000, 300);
    expect(gaps.view(POOL)).toBeUndefined();
  });

  it('count as many as there were turns in one report', () => {
    const gaps = new TurnGaps();
    for (let n = 0; n < 60; n++) gaps.add(turn(1n, 2), n * 30_000);
    expect(gaps.view(POOL)?.gapSeconds).toBeCloseTo(15, 0);
  });

  it('hold for move costs once they differ by more than a quarter from what holds', () => {
    const gaps = new TurnGaps();
    talk(gaps, [1n], 24_000);
    expect(gaps.inForce(POOL, 20)).toBe(20);
    expect(gaps.inForce(POOL, 60)).toBeCloseTo(24, 6);
    expect(gaps.inForce(POOL, 60)).toBeCloseTo(24, 6);
  });

  it('are within ten minutes, and shares within 0 and 1, whatever is reported', () => {
    const anyTurn = fc.record({
      key: fc.bigInt({ min: 0n, max: 200n }),
      turns: fc.integer({ min: 0, max: 20 }),
      afterMs: fc.integer({ min: -1_000, max: 900_000 }),
    });
    fc.assert(
      fc.property(fc.array(anyTurn, { maxLength: 200 }), (turns) => {
        const gaps = new TurnGaps();
        let nowMs = 0;
        for (const { key, turns: count, afterMs } of turns) {
          nowMs += afterMs;
          gaps.add(turn(key, count), nowMs);
          const view = gaps.view(POOL);
          if (view === undefined) continue;
          expect(view.gapSeconds).toBeGreaterThanOrEqual(0);
          expect(view.gapSeconds).toBeLessThanOrEqual(600);
          expect(view.followUpShare).toBeGreaterThan(0);
          expect(view.followUpShare).toBeLessThanOrEqual(1);
        }
      }),
    );
  });
});
