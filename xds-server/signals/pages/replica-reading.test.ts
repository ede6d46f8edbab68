import { describe, expect, it } from 'vitest';
import { GrowthRatio } from './growth-ratio.js';
import { confidence, ReplicaReading, trustedValue } from './replica-reading.js';

const running = (value: number) => new Map([['running', { value, source: 'x' }]] as const);
const missing = new Map([['running', { problem: 'missing' }]] as const);

describe('a reading', () => {
  it('that was never there is unknown, not zero', () => {
    const reading = new ReplicaReading(['running']);
    reading.fail('status 500', 1_000);
    expect(reading.signals.get('running')).toEqual({
      value: undefined,
      atMs: 0,
      source: undefined,
      problem: { reason: 'status 500', sinceMs: 1_000 },
    });
    expect(trustedValue(reading.signals.get('running'), 1_000)).toBeUndefined();
  });

  it('stays while its page is gone, loses confidence and then says nothing', () => {
    const reading = new ReplicaReading(['running']);
    reading.accept(running(7), 0);
    reading.accept(missing, 2_000);
    reading.fail('status 500', 4_000);
    const signal = reading.signals.get('running')!;
    expect(signal).toMatchObject({ value: 7, atMs: 0, problem: { reason: 'status 500', sinceMs: 2_000 } });
    expect([6_000, 33_000, 60_000].map((nowMs) => confidence(signal, nowMs))).toEqual([1, 0.5, 0]);
    expect([59_000, 60_000].map((nowMs) => trustedValue(signal, nowMs))).toEqual([7, undefined]);
    reading.accept(running(3), 70_000);
    expect(reading.signals.get('running')).toEqual({ value: 3, source: 'x', atMs: 70_000 });
  });
});

describe('a ratio', () => {
  it('is that of the counters’ growth', () => {
    const share = new GrowthRatio();
    share.add(900, 1_000, 0);
    expect(share.value).toBeUndefined();
    share.add(910, 1_040, 2_000);
    expect(share.value).toBeCloseTo(0.25);
  });

  it('counts from zero when an engine has restarted', () => {
    const share = new GrowthRatio();
    share.add(900, 1_000, 0);
    share.add(3, 10, 2_000);
    expect(share.value).toBeCloseTo(0.3);
  });

  it('of hits is at most 1, and means are told of the time since the page was first read', () => {
    const reading = new ReplicaReading(['prefixHits', 'prefixQueries', 'firstTokenSeconds', 'firstTokens']);
    expect(reading.ratios).toEqual({});
    const page = (hits: number, seconds: number, tokens: number) =>
      new Map([
        ['prefixHits', { value: hits, source: 'h' }],
        ['prefixQueries', { value: tokens, source: 'q' }],
        ['firstTokenSeconds', { value: seconds, source: 's' }],
        ['firstTokens', { value: tokens, source: 't' }],
      ] as const);
    reading.accept(page(0, 500, 100), 0);
    reading.accept(page(50, 503, 110), 2_000);
    expect(reading.ratios).toEqual({ prefixHitShare: 1, meanFirstTokenSeconds: expect.closeTo(0.3) });
  });
});
