import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { DelayLine } from './delay-line.js';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});

afterEach(() => {
  vi.useRealTimers();
});

it('carries actions out after the delay, in their order', () => {
  const line = new DelayLine(20);
  const done: number[] = [];
  for (const at of [0, 5, 5, 12]) {
    vi.advanceTimersByTime(at - performance.now());
    const order = done.length;
    line.push(() => done.push(performance.now(), order));
  }
  vi.advanceTimersByTime(100);
  expect(done.filter((_, index) => index % 2 === 0)).toEqual([20, 25, 25, 32]);
});

it('carries actions out at once without a delay', () => {
  let done = false;
  new DelayLine(0).push(() => {
    done = true;
  });
  expect(done).toBe(true);
});

it('drops what is under way when it is closed', () => {
  const line = new DelayLine(20);
  let done = false;
  line.push(() => {
    done = true;
  });
  line.close();
  vi.advanceTimersByTime(100);
  expect(done).toBe(false);
});
