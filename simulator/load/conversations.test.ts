import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Random } from '../random.js';
import {
  conversationTurns,
  exampleConversations,
  fromLater,
  longestLifeSeconds,
  type Turn,
} from './conversations.js';

function turnsUntil(seconds: number, requestsPerSecond: number, seed: number): Turn[] {
  const turns: Turn[] = [];
  for (const turn of conversationTurns(exampleConversations, requestsPerSecond, new Random(seed), 'x')) {
    if (turn.atSeconds >= seconds) break;
    turns.push(turn);
  }
  return turns;
}

describe('conversationTurns', () => {
  it('gives the rate that was asked for once the longest conversation could have ended', () => {
    const from = longestLifeSeconds(exampleConversations);
    const turns = turnsUntil(from + 1000, 50, 7).filter(({ atSeconds }) => atSeconds >= from);
    // 12,500 conversations of 4 turns on average: the count's standard error is below 1 %.
    expect(Math.abs(turns.length / 1000 / 50 - 1)).toBeLessThan(0.03);
    expect(Math.abs(turns.filter(({ streamed }) => streamed).length / turns.length - 0.5)).toBeLessThan(0.02);
    expect(Math.abs(turns.filter(({ index }) => index === 0).length / turns.length - 0.25)).toBeLessThan(
      0.02,
    );
  });

  it('orders turns by time, and the turns of a conversation by their number, with gaps as asked', () => {
    fc.assert(
      fc.property(fc.integer(), fc.double({ min: 1, max: 100, noNaN: true }), (seed, rate) => {
        const turns = turnsUntil(20, rate, seed);
        const times = turns.map(({ atSeconds }) => atSeconds);
        expect(times).toEqual([...times].sort((a, b) => a - b));
        const last = new Map<string, Turn>();
        for (const turn of turns) {
          const before = last.get(turn.conversationId);
          expect(turn.index).toBe(before ? before.index + 1 : 0);
          if (before) {
            const gap = turn.atSeconds - before.atSeconds;
            expect(gap).toBeGreaterThanOrEqual(exampleConversations.turnGapSeconds.min - 1e-9);
            expect(gap).toBeLessThanOrEqual(exampleConversations.turnGapSeconds.max + 1e-9);
            expect(before.last).toBe(false);
          }
          last.set(turn.conversationId, turn);
        }
      }),
      { numRuns: 30 },
    );
  });

  it('has its whole rate from the first second when it begins with conversations under way', () => {
    const life = longestLifeSeconds(exampleConversations);
    const all = turnsUntil(life + 40, 50, 3);
    const later = [...fromLater(all, life)];
    expect(later.map(({ atSeconds }) => atSeconds + life)).toEqual(
      all.flatMap(({ atSeconds }) => (atSeconds < life ? [] : [expect.closeTo(atSeconds)])),
    );
    const begun = later.filter(({ atSeconds }) => atSeconds < 10).length;
    expect(Math.abs(begun / 10 / 50 - 1)).toBeLessThan(0.2);
    const next = new Map<string, number>();
    for (const { conversationId, index } of later) {
      expect(index).toBe(next.get(conversationId) ?? 0);
      next.set(conversationId, index + 1);
    }
  });

  it('is a function of the seed', () => {
    expect(turnsUntil(10, 20, 1)).toEqual(turnsUntil(10, 20, 1));
    expect(turnsUntil(10, 20, 1)).not.toEqual(turnsUntil(10, 20, 2));
  });
});
