import { expect, it } from 'vitest';
import { SnapshotBoard } from './snapshot-board.js';

const content = (planId: string) => ({
  planId,
  frontendId: 'f',
  salt: '',
  models: [],
  pools: [],
  engines: [],
});

it('an Envoy is a holder while it calls with the newest snapshot of its frontend', () => {
  let nowMs = 1_000;
  const board = new SnapshotBoard(() => nowMs);
  expect(board.isHolder('f', 'n')).toBe(false);
  board.noteHolder('f', 'n', 0);
  expect(board.isHolder('f', 'n')).toBe(false);
  board.publish(content('0'.repeat(16)));
  board.noteHolder('f', 'n', 0);
  expect(board.isHolder('f', 'n')).toBe(false);
  board.noteHolder('f', 'n', board.current('f')!.version);
  expect(board.isHolder('f', 'n')).toBe(true);
  expect(board.isHolder('f', 'other')).toBe(false);
  expect(board.isHolder('g', 'n')).toBe(false);
  board.publish(content('1'.repeat(16)));
  expect(board.isHolder('f', 'n')).toBe(false);
  board.noteHolder('f', 'n', board.current('f')!.version);
  nowMs += 2_001;
  expect(board.isHolder('f', 'n')).toBe(false);
});
