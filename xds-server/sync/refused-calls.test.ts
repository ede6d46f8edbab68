import { expect, it } from 'vitest';
import { RefusedCalls } from './refused-calls.js';

function refusedEverySecond(calls: RefusedCalls, problem: string | undefined, from: number, to: number) {
  let logged = 0;
  for (let second = from; second <= to; second++) if (calls.refuse('e', problem, second * 1_000)) logged++;
  return logged;
}

it('a node is unread when its reports have been refused for 10 s, until they are not', () => {
  const calls = new RefusedCalls();
  refusedEverySecond(calls, 'bad', 0, 10);
  expect(calls.unread(10_000)).toEqual(new Map());
  refusedEverySecond(calls, 'bad', 11, 20);
  expect(calls.unread(20_000)).toEqual(new Map([['e', 'bad']]));
  calls.accept('e', 20_500);
  expect(calls.unread(21_000)).toEqual(new Map());
});

it('a node of which other reports are read is no unread one', () => {
  const calls = new RefusedCalls();
  for (let second = 0; second < 60; second++) {
    calls.refuse('e', 'bad', second * 1_000);
    calls.accept('e', second * 1_000 + 500);
  }
  expect(calls.unread(60_000)).toEqual(new Map());
});

it('a node that is refused for another reason, or no longer calls, is no unread one', () => {
  const calls = new RefusedCalls();
  refusedEverySecond(calls, undefined, 0, 20);
  expect(calls.unread(20_000)).toEqual(new Map());
  refusedEverySecond(calls, 'bad', 21, 40);
  expect(calls.unread(51_000)).toEqual(new Map());
});

it('refusals are logged once, whatever is read in between, and again after a minute without any', () => {
  const calls = new RefusedCalls();
  let logged = 0;
  for (let second = 0; second < 200; second++) {
    if (calls.refuse('e', 'bad', second * 1_000)) logged++;
    calls.accept('e', second * 1_000 + 500);
  }
  expect(logged).toBe(1);
  expect(refusedEverySecond(calls, 'bad', 261, 300)).toBe(1);
});
