import fc from 'fast-check';
import { expect, it } from 'vitest';
import { StandingPage } from './standing-page.js';

/** Reads the page every 2 s, with as many answers each second; the first time that it is said to stand, and since when. */
function watch(
  seconds: number,
  tokens: (second: number) => number | undefined,
  ended: (second: number) => number,
  unanswered: (second: number) => number = () => 0,
): { readonly second: number; readonly sinceMs: number } | undefined {
  const page = new StandingPage();
  for (let second = 0; second < seconds; second++) {
    const nowMs = 1_000 * second;
    if (second % 2 === 0) {
      const sinceMs = page.read(tokens(second), nowMs);
      if (sinceMs !== undefined) return { second, sinceMs };
    }
    page.addEnded(ended(second), unanswered(second), nowMs - 500);
  }
  return undefined;
}

it('a page stands still whose counter does not grow while twenty requests are answered', () => {
  const frozen = (second: number) => Math.min(second, 9) * 100;
  expect(watch(60, frozen, () => 10)).toEqual({ second: 18, sinceMs: 10_000 });
  expect(watch(600, frozen, () => 1)!.second).toBeGreaterThan(30);
});

it('a page does not stand still that grows, has no counter, or whose replica answers nothing', () => {
  expect(
    watch(
      600,
      (second) => second,
      () => 100,
    ),
  ).toBeUndefined();
  expect(
    watch(
      600,
      () => undefined,
      () => 100,
    ),
  ).toBeUndefined();
  expect(
    watch(
      600,
      () => 7,
      () => 0,
    ),
  ).toBeUndefined();
  expect(
    watch(
      600,
      () => 7,
      () => 100,
      () => 100,
    ),
  ).toBeUndefined();
});

it('a page that grows again no longer stands still', () => {
  const page = new StandingPage();
  const read = (tokens: number, nowMs: number) => {
    page.addEnded(50, 0, nowMs - 1_000);
    return page.read(tokens, nowMs);
  };
  for (let second = 0; second < 20; second += 2) read(5, 1_000 * second);
  expect(read(5, 20_000)).toBe(0);
  expect(read(6, 22_000)).toBeUndefined();
  expect(read(6, 24_000)).toBeUndefined();
});

it('no page of a replica that counts a token for every answer is said to stand still, however late reports are', () => {
  const second = fc.record({ answers: fc.nat(5), failures: fc.nat(5), isReported: fc.boolean() });
  fc.assert(
    fc.property(fc.array(second, { maxLength: 200 }), (seconds) => {
      const page = new StandingPage();
      let tokens = 0;
      let told = { ended: 0, unanswered: 0, fromMs: -500 };
      for (const [at, { answers, failures, isReported }] of seconds.entries()) {
        tokens += answers;
        expect(page.read(tokens, 1_000 * at)).toBeUndefined();
        told = { ...told, ended: told.ended + answers + failures, unanswered: told.unanswered + failures };
        if (!isReported) continue;
        page.addEnded(told.ended, told.unanswered, told.fromMs);
        told = { ended: 0, unanswered: 0, fromMs: 1_000 * at };
      }
    }),
  );
});
