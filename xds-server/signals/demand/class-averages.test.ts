import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { noPoolUsage, type PoolUsage } from '../../../wire/usage-report.js';
import { type Average, ClassAveragesWatch } from './class-averages.js';

const usageOf = (counts: Partial<PoolUsage>): PoolUsage => ({ ...noPoolUsage(1n), ...counts });

const CHATS = usageOf({
  bodiesRead: 100,
  followUps: 75,
  promptCount: 80,
  promptTokens: 80_000,
  cachedOfTokens: 60_000,
  cachedTokens: 45_000,
  outputCount: 50,
  outputTokens: 5_000,
});

describe('averages of a class', () => {
  it('are unknown, and not 0, before anything tells them', () => {
    const watch = new ClassAveragesWatch();
    const nothing = { promptTokens: null, outputTokens: null, followUpShare: null, hitShare: null };
    expect(watch.view('f', 'm', 0, 0)).toEqual(nothing);
    watch.add('f', 'm', usageOf({ offered: 9 }), 0);
    expect(watch.view('f', 'm', 0, 0)).toEqual(nothing);
    watch.add('f', 'm', usageOf({ bodiesRead: 2 }), 0);
    expect(watch.view('f', 'm', 0, 0)).toMatchObject({ ...nothing, followUpShare: { value: 0 } });
  });

  it('are of each frontend, pool and priority by itself, with what tells them, of how many and how old', () => {
    const watch = new ClassAveragesWatch();
    watch.add('f', 'm', CHATS, 0);
    watch.add('f', 'm', usageOf({ priority: 1, bodiesRead: 400, followUps: 0 }), 0);
    const fresh = { ageSeconds: 30 };
    expect(watch.view('f', 'm', 0, 30_000)).toEqual({
      promptTokens: { value: 1_000, source: 'answers', requests: 80, confidence: 0.4, ...fresh },
      outputTokens: { value: 100, source: 'answers', requests: 50, confidence: 0.25, ...fresh },
      followUpShare: { value: 0.75, source: 'bodies', requests: 100, confidence: 0.5, ...fresh },
      hitShare: { value: 0.75, source: 'answers', requests: 60, confidence: 0.3, ...fresh },
    });
    expect(watch.view('f', 'm', 1, 30_000).followUpShare).toMatchObject({ value: 0, confidence: 1 });
    expect(watch.view('g', 'm', 0, 30_000).followUpShare).toBeNull();
    expect(watch.view('f', 'm', 1, 330_000).followUpShare).toMatchObject({
      confidence: 0.5,
      ageSeconds: 330,
    });
  });

  it('follow what comes within about ten minutes', () => {
    const watch = new ClassAveragesWatch();
    watch.add('f', 'm', usageOf({ bodiesRead: 1_000, followUps: 1_000 }), 0);
    watch.add('f', 'm', usageOf({ bodiesRead: 1_000 }), 1_200_000);
    expect(watch.view('f', 'm', 0, 1_200_000).followUpShare!.value).toBeCloseTo(
      Math.exp(-2) / (1 + Math.exp(-2)),
    );
  });

  it('are forgotten of rows that are gone', () => {
    const watch = new ClassAveragesWatch();
    for (const frontendId of ['f', 'g']) watch.add(frontendId, 'm x', CHATS, 0);
    watch.keep([{ frontendId: 'g', poolId: 'm x' }]);
    expect(watch.view('f', 'm x', 0, 0).promptTokens).toBeNull();
    expect(watch.view('g', 'm x', 0, 0).promptTokens).not.toBeNull();
  });

  it('are shares of 0 to 1 and finite, however reports come', () => {
    const share = fc.tuple(fc.nat(1e6), fc.double({ min: 0, max: 1, noNaN: true }));
    const report = fc.record({
      bodies: share,
      cache: share,
      prompts: share,
      afterMs: fc.integer({ min: -1_000, max: 1e9 }),
    });
    fc.assert(
      fc.property(fc.array(report, { maxLength: 30 }), (reports) => {
        const watch = new ClassAveragesWatch();
        let nowMs = 0;
        for (const { bodies, cache, prompts, afterMs } of reports) {
          nowMs += afterMs;
          const usage = usageOf({
            bodiesRead: bodies[0],
            followUps: Math.floor(bodies[0] * bodies[1]),
            cachedOfTokens: cache[0],
            cachedTokens: Math.floor(cache[0] * cache[1]),
            promptCount: prompts[0],
            promptTokens: Math.floor(prompts[0] * prompts[1] * 1e4),
          });
          watch.add('f', 'm', usage, nowMs);
          const view = watch.view('f', 'm', 0, nowMs);
          for (const average of Object.values(view) as (Average | null)[]) {
            if (average === null) continue;
            for (const number of [average.value, average.requests, average.ageSeconds]) {
              expect(Number.isFinite(number)).toBe(true);
              expect(number).toBeGreaterThanOrEqual(0);
            }
            expect(average.confidence).toBeGreaterThanOrEqual(0);
            expect(average.confidence).toBeLessThanOrEqual(1);
          }
          for (const { value } of [view.followUpShare, view.hitShare].filter((each) => each !== null)) {
            expect(value).toBeLessThanOrEqual(1);
          }
        }
      }),
    );
  });
});
