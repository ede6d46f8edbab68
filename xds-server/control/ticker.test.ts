import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { TICK_MS, Ticker } from './ticker.js';

let nowMs = 0;
let calls: number[] = [];

beforeEach(() => {
  vi.useFakeTimers();
  nowMs = 0;
  calls = [];
});

afterEach(() => {
  vi.useRealTimers();
});

/** A ticker of which each call takes so long. */
function started(tookMs: number): Ticker {
  const ticker = new Ticker(
    () => {
      calls.push(nowMs);
      nowMs += tookMs;
    },
    () => nowMs,
  );
  ticker.start();
  return ticker;
}

/** Time that passes without a call. */
function pass(ms: number, each: () => void = () => undefined): void {
  for (const untilMs = nowMs + ms; nowMs < untilMs; nowMs++) {
    each();
    vi.advanceTimersByTime(1);
  }
}

it('calls at every interval, and once more soon after it is asked to, however often that is', () => {
  const ticker = started(0);
  pass(2 * TICK_MS + 1);
  expect(calls).toHaveLength(2);
  for (const _ of [1, 2, 3]) ticker.soon();
  pass(2);
  expect(calls).toHaveLength(3);
});

it('takes no more than half of the time when it is asked again and again, and still does what it is asked', () => {
  const ticker = started(70);
  pass(10 * TICK_MS, () => ticker.soon());
  for (const [at, beganMs] of calls.entries()) {
    if (at > 0) expect(beganMs - calls[at - 1]!).toBeGreaterThanOrEqual(140);
  }
  expect(calls.length).toBeGreaterThan(10);
  const before = calls.length;
  ticker.soon();
  pass(71);
  expect(calls.length).toBe(before + 1);
});

it('calls at intervals as soon as half of the time is left, where calls take longer than these', () => {
  started(3 * TICK_MS);
  pass(20 * TICK_MS);
  const gaps = calls.slice(1).map((beganMs, at) => beganMs - calls[at]!);
  for (const gap of gaps) expect(gap).toBeGreaterThanOrEqual(6 * TICK_MS);
  expect(gaps.length).toBeGreaterThan(1);
});

it('pauses for no longer than a second after a call within which the process was stopped', () => {
  started(60_000);
  pass(TICK_MS);
  expect(calls).toHaveLength(1);
  pass(TICK_MS + 1_000);
  expect(calls).toHaveLength(2);
});

it('calls neither before it is started nor after it is stopped', () => {
  const ticker = new Ticker(
    () => calls.push(nowMs),
    () => nowMs,
  );
  ticker.soon();
  pass(10);
  ticker.start();
  ticker.soon();
  ticker.stop();
  pass(3 * TICK_MS);
  expect(calls).toEqual([]);
});
