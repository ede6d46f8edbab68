import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TurnGaps } from './turn-gaps.js';

const POOL = 7n;
const turn = (key: bigint, turns = 1) => ({ pool: POOL, key, turns });
const NODE = 'n';

/** Conversations of 100 turns, one with each of these keys, with this gap. */
function talk(gaps: TurnGaps, keys: readonly bigint[], gapMs: number, turns = 100): void {
  for (let n = 0; n < turns; n++) {
    gaps.add(
      NODE,
      keys.map((key) => turn(key)),
      0,
      n * gapMs,
    );
  }
}

describe('turn gaps', () => {
  it('are the mean time between turns of a conversation', () => {
    const gaps = new TurnGaps();
    talk(gaps, [1n, 2n, 3n], 20_000);
    const view = gaps.view(POOL)!;
    expect(view.gapSeconds).toBeCloseTo(20, 6);
    expect(view.followUpShare).toBeGreaterThan(0.95);
  });

  it('are unknown before fifty were counted', () => {
    const gaps = new TurnGaps();
    talk(gaps, [1n], 16_000, 45);
    expect(gaps.view(POOL)).toBeUndefined();
    for (let n = 45; n < 70; n++) gaps.add(NODE, [turn(1n)], 0, n * 16_000);
    expect(gaps.view(POOL)?.gapSeconds).toBeCloseTo(16, 6);
  });

  it('are unknown before ten minutes have passed in which all turns of the same conversations were counted', () => {
    const gaps = new TurnGaps();
    talk(gaps, [8n], 5_000, 120);
    expect(gaps.view(POOL)).toBeUndefined();
    gaps.add(NODE, [turn(8n)], 0, 600_000);
    expect(gaps.view(POOL)).toBeDefined();
    for (let n = 1; n <= 120; n++) gaps.add(NODE, [turn(8n)], 3, 600_000 + n * 5_000);
    expect(gaps.view(POOL)).toBeUndefined();
    gaps.add(NODE, [turn(8n)], 3, 1_210_000);
    expect(gaps.view(POOL)?.gapSeconds).toBeCloseTo(5, 0);
  });

  it('are those between all turns, whichever Envoys they came through', () => {
    const gaps = new TurnGaps();
    for (let n = 0; n < 100; n++) gaps.add(`n${n % 3}`, [turn(1n)], 0, n * 10_000);
    expect(gaps.view(POOL)?.gapSeconds).toBeCloseTo(10, 6);
  });

  it('are not counted of conversations of which an Envoy that still reports leaves out turns', () => {
    const gaps = new TurnGaps();
    for (let n = 0; n < 200; n++) {
      gaps.add('full', n % 2 === 0 ? [turn(8n)] : [], 3, n * 5_000);
      gaps.add('empty', n % 2 === 0 ? [turn(1n), turn(4n)] : [turn(8n)], 0, n * 5_000);
    }
    expect(gaps.view(POOL)?.gapSeconds).toBeCloseTo(5, 6);
    expect(gaps.view(POOL)?.gaps).toBeLessThan(200);
    const heard = gaps.view(POOL)!.gaps;
    for (let n = 0; n < 200; n++) gaps.add('empty', [turn(1n)], 0, 1_061_000 + n * 1_000);
    expect(gaps.view(POOL)!.gaps).toBeGreaterThan(heard + 100);
  });

  it('do not count when they are longer than ten minutes: the conversation begins anew', () => {
    const gaps = new TurnGaps();
    talk(gaps, [1n], 600_000, 300);
    expect(gaps.view(POOL)).toBeUndefined();
  });

  it('count as many as there were turns in one report', () => {
    const gaps = new TurnGaps();
    for (let n = 0; n < 60; n++) gaps.add(NODE, [turn(1n, 2)], 0, n * 30_000);
    expect(gaps.view(POOL)?.gapSeconds).toBeCloseTo(15, 0);
  });

  it('hold for move costs once they differ by more than a quarter from what holds', () => {
    const gaps = new TurnGaps();
    talk(gaps, [1n], 24_000);
    expect(gaps.inForce(POOL, 20)).toBe(20);
    expect(gaps.inForce(POOL, 60)).toBeCloseTo(24, 6);
    expect(gaps.inForce(POOL, 60)).toBeCloseTo(24, 6);
  });

  it('of pools that are gone are forgotten, also where they held', () => {
    const gaps = new TurnGaps();
    talk(gaps, [1n], 24_000);
    gaps.inForce(POOL, 60);
    gaps.keep(new Map([[POOL, 'm']]));
    expect(gaps.view(POOL)).toBeDefined();
    gaps.keep(new Map());
    expect(gaps.view(POOL)).toBeUndefined();
    expect(gaps.inForce(POOL, 60)).toBe(60);
  });

  it('are measured right of more conversations than are followed', () => {
    const gaps = new TurnGaps();
    const keys = Array.from({ length: 6_000 }, (_, index) => BigInt(index));
    talk(gaps, keys, 300_000, 4);
    expect(gaps.view(POOL)?.gapSeconds).toBeCloseTo(300, 6);
  });

  it('are within ten minutes, and shares within 0 and 1, whatever is reported', () => {
    const anyReport = fc.record({
      key: fc.bigInt({ min: 0n, max: 200n }),
      turns: fc.integer({ min: 0, max: 20 }),
      level: fc.nat({ max: 3 }),
      node: fc.constantFrom('a', 'b'),
      afterMs: fc.integer({ min: -1_000, max: 900_000 }),
    });
    fc.assert(
      fc.property(fc.array(anyReport, { maxLength: 200 }), (reports) => {
        const gaps = new TurnGaps();
        let nowMs = 0;
        for (const { key, turns, level, node, afterMs } of reports) {
          nowMs += afterMs;
          gaps.add(node, [turn(key, turns)], level, nowMs);
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
