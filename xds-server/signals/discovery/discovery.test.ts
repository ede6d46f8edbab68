import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { DiscoverySource } from '../../config/config.js';
import { Discovery } from './discovery.js';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const source: DiscoverySource = { kind: 'dns', host: 'engines', port: 80 };
const sources = new Map([['a', source]]);

/** A source that answers with what `answer` holds. */
function discovery(): {
  discovery: Discovery;
  answer: { current: readonly string[] | Error };
  changes: () => number;
  looks: () => number;
} {
  const answer: { current: readonly string[] | Error } = { current: [] };
  let changes = 0;
  let looks = 0;
  const made = new Discovery({
    lookup: async () => {
      looks++;
      if (answer.current instanceof Error) throw answer.current;
      return { addresses: answer.current, secondsToLive: 30 };
    },
    onChange: () => changes++,
  });
  return { discovery: made, answer, changes: () => changes, looks: () => looks };
}

describe('discovery', () => {
  it('looks again when the answer is too old, and takes new replicas at once', async () => {
    const { discovery: made, answer, changes, looks } = discovery();
    answer.current = ['10.0.0.2:80', '10.0.0.1:80'];
    await made.watch(sources);
    expect(made.discovered.get('a')).toMatchObject({
      addresses: ['10.0.0.1:80', '10.0.0.2:80'],
      problem: null,
    });
    answer.current = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80'];
    await vi.advanceTimersByTimeAsync(29_000);
    expect(looks()).toBe(1);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(made.discovered.get('a')!.addresses).toHaveLength(3);
    expect(changes()).toBe(2);
    made.stop();
  });

  it('an address goes when two answers in a row lack it', async () => {
    const { discovery: made, answer } = discovery();
    answer.current = ['10.0.0.1:80', '10.0.0.2:80'];
    await made.watch(sources);
    answer.current = ['10.0.0.1:80'];
    await vi.advanceTimersByTimeAsync(30_000);
    expect(made.discovered.get('a')!.addresses).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(made.discovered.get('a')!.addresses).toEqual(['10.0.0.1:80']);
    made.stop();
  });

  it('failures and empty answers change nothing and are told', async () => {
    const { discovery: made, answer, changes } = discovery();
    answer.current = ['10.0.0.1:80'];
    await made.watch(sources);
    for (const bad of [new Error('no such name'), []]) {
      answer.current = bad;
      await vi.advanceTimersByTimeAsync(40_000);
      expect(made.discovered.get('a')!.addresses).toEqual(['10.0.0.1:80']);
      expect(made.discovered.get('a')!.problem).toMatch(/no such name|empty/);
    }
    expect(changes()).toBe(1);
    made.stop();
  });

  it('goes on with what was known before a restart until there is an answer', async () => {
    const { discovery: made, answer } = discovery();
    answer.current = new Error('no answer');
    await made.watch(sources, new Map([['a', ['10.0.0.9:80']]]));
    expect(made.discovered.get('a')!.addresses).toEqual(['10.0.0.9:80']);
    made.stop();
  });

  it('keeps the replicas of an engine whose new source does not answer', async () => {
    const { discovery: made, answer } = discovery();
    answer.current = ['10.0.0.1:80'];
    await made.watch(sources);
    answer.current = new Error('no answer');
    await made.watch(new Map([['a', { ...source, port: 81 }]]));
    expect(made.discovered.get('a')).toMatchObject({ addresses: ['10.0.0.1:80'], problem: 'no answer' });
    made.stop();
  });

  it('watches no source that is gone', async () => {
    const { discovery: made, answer, looks } = discovery();
    answer.current = ['10.0.0.1:80'];
    await made.watch(sources);
    await made.watch(new Map());
    await vi.advanceTimersByTimeAsync(100_000);
    expect(looks()).toBe(1);
    expect(made.discovered.size).toBe(0);
  });
});
