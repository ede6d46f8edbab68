import { expect, it } from 'vitest';
import { HoldUps } from './hold-ups.js';

it('a tick that is seconds late is the end of a hold-up, after which a second passes before anything is judged', () => {
  const holdUps = new HoldUps(1_000);
  expect([holdUps.hasEnded(1_200), holdUps.isSettled(1_200)]).toEqual([false, true]);
  expect([holdUps.hasEnded(4_000), holdUps.isSettled(4_000)]).toEqual([false, true]);
  expect([holdUps.hasEnded(9_000), holdUps.isSettled(9_000)]).toEqual([true, false]);
  expect([holdUps.hasEnded(9_200), holdUps.isSettled(9_999)]).toEqual([false, false]);
  expect([holdUps.hasEnded(10_000), holdUps.isSettled(10_000)]).toEqual([false, true]);
});
