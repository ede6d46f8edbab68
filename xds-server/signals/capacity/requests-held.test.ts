import { expect, it } from 'vitest';
import { RequestsHeld } from './requests-held.js';

const START_MS = 1_600_000_000_000;

function held(requests: readonly number[]): RequestsHeld {
  const each = new RequestsHeld();
  requests.forEach((count, second) => {
    each.add(count, START_MS + second * 1_000);
  });
  return each;
}

it('tells the most and the fewest requests of the last seconds', () => {
  const watched = held([9, 1, 5, 7, 3, 4]);
  expect(watched.most(3, START_MS + 5_000)).toBe(7);
  expect(watched.least(3, START_MS + 5_000)).toBe(3);
  expect(watched.least(5, START_MS + 5_000)).toBe(1);
});

it('does not know the fewest of a time that it did not watch', () => {
  expect(held([5, 5]).least(3, START_MS + 1_000)).toBeUndefined();
  expect(new RequestsHeld().least(1, START_MS)).toBeUndefined();
  expect(new RequestsHeld().most(1, START_MS)).toBe(0);
});

it('looks a minute back, and at two and a half times a second at most', () => {
  const watched = held(Array.from({ length: 100 }, (_, second) => (second < 30 ? 100 : 5)));
  expect(watched.most(1_000, START_MS + 99_000)).toBe(5);
  watched.add(50, START_MS + 99_100);
  expect(watched.most(1_000, START_MS + 99_100)).toBe(5);
});
