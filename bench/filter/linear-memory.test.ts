import { expect, it } from 'vitest';
import { memoriesIn } from './linear-memory.js';

it('a wasm memory is what may be written at the start of a reservation', () => {
  const maps = [
    '10000-20000 rw-p 00000000 00:00 0 ',
    // Directly behind a thread's stack, in one line with it or not.
    '7e0000000000-7e0000800000 rw-p 00000000 00:00 0 ',
    '7e0000800000-7e0000840000 rw-p 00000000 00:00 0 ',
    '7e0000840000-7e0200800000 ---p 00000000 00:00 0 ',
    '7f0000000000-7f0000880000 rw-p 00000000 00:00 0 ',
    '7f0000880000-7f0200800000 ---p 00000000 00:00 0 ',
    '7f1000000000-7f1000021000 rw-p 00000000 00:00 0 ',
    '7f1000021000-7f1004000000 ---p 00000000 00:00 0 ',
  ].join('\n');
  expect(memoriesIn(maps)).toEqual([0x40000, 0x80000]);
});
