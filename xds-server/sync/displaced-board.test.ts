import { describe, expect, it } from 'vitest';
import { MAX_DISPLACED_ROWS } from '../../wire/layout.js';
import { type PrivateState, PrivateStateReader } from '../signals/testing/private-state.js';
import { DisplacedBoard } from './displaced-board.js';

function started() {
  const clock = { ms: 1_700_000_000_000 };
  return { clock, board: new DisplacedBoard(() => clock.ms) };
}

function hashes(count: number, from = 0): bigint[] {
  return Array.from({ length: count }, (_, index) => BigInt(from + index) * 2n);
}

describe('displaced keys', () => {
  it('are told to the other Envoys of the frontend, to each once', () => {
    const { board } = started();
    board.add('west', 'one', hashes(3));
    const news = board.after('west', 'two', 0)!;
    expect(news.hashes).toEqual(hashes(3));
    expect(board.after('west', 'two', news.cursor)).toBeUndefined();
    expect(board.after('west', 'one', 0)).toBeUndefined();
    expect(board.after('east', 'two', 0)).toBeUndefined();
    board.add('west', 'one', hashes(2, 10));
    expect(board.after('west', 'two', news.cursor)!.hashes).toEqual(hashes(2, 10));
  });

  it('come in pieces that a filter takes', () => {
    const { board } = started();
    const all = hashes(2 * MAX_DISPLACED_ROWS + 7);
    board.add('west', 'one', all);
    const heard: bigint[] = [];
    for (
      let cursor = 0, news = board.after('west', 'two', 0);
      news;
      news = board.after('west', 'two', cursor)
    ) {
      expect(news.hashes.length).toBeLessThanOrEqual(MAX_DISPLACED_ROWS);
      expect(news.cursor).toBeGreaterThan(cursor);
      heard.push(...news.hashes);
      cursor = news.cursor;
    }
    expect(heard).toEqual(all);
  });

  it('are forgotten after 15 minutes, and the oldest when there are many', () => {
    const { board, clock } = started();
    board.add('west', 'one', hashes(5));
    clock.ms += 900_000;
    board.add('west', 'one', hashes(1, 100));
    expect(board.after('west', 'two', 0)!.hashes).toEqual(hashes(1, 100));
    board.add('west', 'one', hashes(20_000));
    let rows = 0;
    for (let news = board.after('west', 'two', 0); news; news = board.after('west', 'two', news.cursor))
      rows += news.hashes.length;
    expect(rows).toBe(8_192);
  });

  it('have greater numbers after a restart of the server than any before', () => {
    const { board, clock } = started();
    board.add('west', 'one', hashes(5_000));
    const before = board.after('west', 'two', 0)!.cursor;
    clock.ms += 1_000;
    const later = new DisplacedBoard(() => clock.ms);
    later.add('west', 'one', hashes(1));
    expect(later.after('west', 'two', before)!.hashes).toEqual(hashes(1));
  });

  it('are told, and grow old, when the clock is set back, with and without a restart of the server', () => {
    const { board, clock } = started();
    board.add('west', 'one', hashes(3));
    const { cursor } = board.after('west', 'two', 0)!;
    clock.ms -= 3_600_000;
    board.add('west', 'one', hashes(2, 10));
    expect(board.after('west', 'two', cursor)!.hashes).toEqual(hashes(2, 10));
    expect(board.after('west', 'three', 0)!.hashes).toHaveLength(5);

    const later = new DisplacedBoard(() => clock.ms);
    later.add('west', 'one', hashes(2, 20));
    const news = later.after('west', 'two', cursor)!;
    expect(news.hashes).toEqual(hashes(2, 20));
    expect(later.after('west', 'two', news.cursor)).toBeUndefined();
    later.add('west', 'one', hashes(1, 30));
    expect(later.after('west', 'two', news.cursor)!.hashes).toEqual(hashes(1, 30));

    clock.ms += 900_000;
    expect(board.after('west', 'three', 0)).toBeUndefined();
  });

  it('are forgotten of frontends of which nothing young is left, when another one begins', () => {
    const { board, clock } = started();
    const reader = new PrivateStateReader();
    for (let at = 0; at < 50; at++) {
      clock.ms += 600_000;
      board.add(`f${at}`, 'one', hashes(1));
      board.add('stays', 'one', hashes(1));
    }
    const { fields } = reader.read(board) as PrivateState;
    const { entries } = fields['#rows'] as { entries: readonly [string, unknown][] };
    expect(entries.map(([id]) => id)).toEqual(['stays', 'f48', 'f49']);
    reader.close();
  });
});
