import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Random } from '../../../simulator/random.js';
import { RequestSizes, type SizeCounts, type TokenSizes } from './request-sizes.js';

const ASSUMED: TokenSizes = { promptTokens: 512, uncachedPromptTokens: 512, outputTokens: 128 };
const LARGE: TokenSizes = { promptTokens: 4_000, uncachedPromptTokens: 1_000, outputTokens: 60 };

/** Answers of this size, which tell what was in a cache, and as many more that tell nothing but events. */
function countsOf(answers: number, sizes: TokenSizes, silent = 0): SizeCounts {
  const promptTokens = answers * sizes.promptTokens;
  return {
    told: answers,
    promptCount: answers,
    promptTokens,
    outputCount: answers + silent,
    outputTokens: (answers + silent) * sizes.outputTokens,
    cachedTokens: promptTokens - answers * sizes.uncachedPromptTokens,
    cachedOfTokens: promptTokens,
  };
}

interface Stretch {
  readonly seconds: number;
  readonly perSecond?: number;
  readonly configured?: TokenSizes;
  readonly isUsual?: boolean;
  readonly fromMs?: number;
  readonly stepSeconds?: number;
}

/** Answers for some time; the times at which what is in force has changed, in seconds. */
function answer(
  sizes: RequestSizes,
  counts: (perSecond: number) => SizeCounts,
  { seconds, perSecond = 10, configured = ASSUMED, isUsual = true, fromMs = 0, stepSeconds = 1 }: Stretch,
): readonly number[] {
  const changes: number[] = [];
  for (let second = 0; second <= seconds; second += stepSeconds) {
    const nowMs = fromMs + second * 1_000;
    if (sizes.add('f', 'm', counts(perSecond * stepSeconds), configured, isUsual, nowMs))
      changes.push(nowMs / 1_000);
  }
  return changes;
}

describe('request sizes', () => {
  it('are those configured until ten minutes after two hundred answers have told their tokens', () => {
    const sizes = new RequestSizes();
    expect(answer(sizes, (n) => countsOf(n, LARGE), { seconds: 599, perSecond: 100 })).toEqual([]);
    expect(sizes.inForce('f', 'm')).toBeUndefined();
    expect(sizes.view('f', 'm')).toBeUndefined();
    const idle = new RequestSizes();
    answer(idle, (n) => countsOf(n, LARGE), { seconds: 900, perSecond: 0 });
    expect(answer(idle, (n) => countsOf(n, LARGE), { seconds: 590, fromMs: 900_000 })).toEqual([]);
    const few = new RequestSizes();
    expect(answer(few, (n) => countsOf(n, LARGE), { seconds: 3_600, perSecond: 0.3 })).toEqual([]);
  });

  it('are those measured after that, of each frontend and pool by itself', () => {
    const sizes = new RequestSizes();
    expect(answer(sizes, (n) => countsOf(n, LARGE), { seconds: 650 })).toEqual([620]);
    expect(sizes.inForce('f', 'm')).toEqual(LARGE);
    expect(sizes.view('f', 'm')!.answers).toBeGreaterThan(3_000);
    expect(sizes.inForce('f', 'other')).toBeUndefined();
    expect(sizes.inForce('other', 'm')).toBeUndefined();
  });

  it('stay as configured while what is measured hardly differs', () => {
    const sizes = new RequestSizes();
    const near = { promptTokens: 560, uncachedPromptTokens: 450, outputTokens: 118 };
    expect(answer(sizes, (n) => countsOf(n, near), { seconds: 2_000 })).toEqual([]);
    expect(sizes.view('f', 'm')!.promptTokens).toBeCloseTo(560);
  });

  it('follow what changes, and not more often than every five minutes', () => {
    const sizes = new RequestSizes();
    const changes = answer(sizes, (n) => countsOf(n, LARGE), { seconds: 700 });
    const later = answer(sizes, (n) => countsOf(n, { ...LARGE, outputTokens: 600 }), {
      seconds: 3_600,
      fromMs: 701_000,
    });
    const times = [...changes, ...later];
    for (const [at, time] of times.slice(1).entries()) expect(time - times[at]!).toBeGreaterThanOrEqual(300);
    expect(sizes.inForce('f', 'm')!.outputTokens).toBeGreaterThan(500);
    expect(sizes.inForce('f', 'm')!.promptTokens).toBe(4_000);
    expect(times.length).toBeLessThan(8);
  });

  it('keep the configured share of uncached prompt where answers do not tell it', () => {
    const sizes = new RequestSizes();
    const counts = (n: number) => ({ ...countsOf(n, LARGE), cachedTokens: 0, cachedOfTokens: 0 });
    const configured = { ...ASSUMED, uncachedPromptTokens: 128 };
    answer(sizes, counts, { seconds: 650, configured });
    expect(sizes.inForce('f', 'm')).toEqual({ ...LARGE, uncachedPromptTokens: 1_000 });
    expect(sizes.view('f', 'm')!.uncachedPromptTokens).toBeNull();
  });

  it('leave out what was in caches after conversations had to move', () => {
    const sizes = new RequestSizes();
    const cold = { ...LARGE, uncachedPromptTokens: 4_000 };
    answer(sizes, (n) => countsOf(n, LARGE), { seconds: 650 });
    answer(sizes, (n) => countsOf(n, cold), { seconds: 900, fromMs: 651_000, isUsual: false });
    expect(sizes.inForce('f', 'm')!.uncachedPromptTokens).toBe(1_000);
  });

  it('are waited for until it is known what usually is in caches, where answers tell it', () => {
    const sizes = new RequestSizes();
    const cold = { ...LARGE, uncachedPromptTokens: 4_000 };
    expect(answer(sizes, (n) => countsOf(n, cold), { seconds: 700, isUsual: false })).toEqual([]);
    answer(sizes, (n) => countsOf(n, LARGE), { seconds: 60, fromMs: 701_000 });
    expect(sizes.inForce('f', 'm')).toEqual(LARGE);
  });

  it('are not taken from answers that are the fewer ones to tell their tokens', () => {
    const sizes = new RequestSizes();
    expect(answer(sizes, (n) => countsOf(n, LARGE, 2 * n), { seconds: 900 })).toEqual([]);
    expect(sizes.view('f', 'm')).toBeUndefined();
  });

  it('are held when answers no longer tell them', () => {
    const sizes = new RequestSizes();
    answer(sizes, (n) => countsOf(n, LARGE), { seconds: 650 });
    answer(sizes, (n) => countsOf(n, LARGE), { seconds: 7_200, perSecond: 0, fromMs: 651_000 });
    expect(sizes.view('f', 'm')).toBeUndefined();
    expect(sizes.inForce('f', 'm')).toEqual(LARGE);
  });

  it('are forgotten of pools that are gone', () => {
    const sizes = new RequestSizes();
    answer(sizes, (n) => countsOf(n, LARGE), { seconds: 650 });
    sizes.keep([{ frontendId: 'f', poolId: 'm' }]);
    expect(sizes.inForce('f', 'm')).toEqual(LARGE);
    sizes.keep([{ frontendId: 'g', poolId: 'm' }]);
    expect(sizes.inForce('f', 'm')).toBeUndefined();
    expect(sizes.view('f', 'm')).toBeUndefined();
    expect(sizes.measured).toEqual([]);
  });

  it('go on as they were after a restart', () => {
    const sizes = new RequestSizes();
    answer(sizes, (n) => countsOf(n, LARGE), { seconds: 650 });
    const restarted = new RequestSizes();
    restarted.resume(sizes.measured);
    expect(restarted.inForce('f', 'm')).toEqual(LARGE);
    expect(answer(restarted, (n) => countsOf(n, LARGE), { seconds: 2_000, fromMs: 651_000 })).toEqual([]);
  });

  it('move for no chance in what comes, and follow what has changed for good', () => {
    const traffic = fc.record({
      seed: fc.integer(),
      perSecond: fc.double({ min: 2, max: 50, noNaN: true }),
      // Of one request's tokens, standard deviation over mean: 1.3 is as wide as chats are.
      spread: fc.double({ min: 0, max: 1.3, noNaN: true }),
      factor: fc.constantFrom(0.5, 1.6, 3),
    });
    fc.assert(
      fc.property(traffic, ({ seed, perSecond, spread, factor }) => {
        const random = new Random(seed);
        const sizes = new RequestSizes();
        const noisy = (of: TokenSizes) => (answers: number) => {
          const around = (tokens: number) =>
            Math.max(1, tokens * (1 + (spread * random.normal()) / Math.sqrt(answers)));
          const promptTokens = around(of.promptTokens);
          const share = of.uncachedPromptTokens / of.promptTokens;
          return countsOf(answers, {
            promptTokens,
            uncachedPromptTokens: promptTokens * share,
            outputTokens: around(of.outputTokens),
          });
        };
        const steady = { seconds: 3_600, perSecond, configured: LARGE, stepSeconds: 10 };
        expect(answer(sizes, noisy(LARGE), steady)).toEqual([]);
        const other = { ...LARGE, outputTokens: LARGE.outputTokens * factor };
        const changes = answer(sizes, noisy(other), { ...steady, fromMs: 3_601_000 });
        expect(changes.length).toBeGreaterThan(0);
        expect(changes.length).toBeLessThan(8);
        expect(changes[0]! - 3_601).toBeLessThan(900);
        expect(sizes.inForce('f', 'm')!.outputTokens / other.outputTokens).toBeGreaterThan(0.65);
        expect(sizes.inForce('f', 'm')!.outputTokens / other.outputTokens).toBeLessThan(1.5);
      }),
      { numRuns: 30 },
    );
  });

  it('are finite, in bounds and have no more uncached than prompt, whatever is reported', () => {
    const count = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 1e6 }), fc.constant(1e15));
    const report = fc.record({
      counts: fc.record({
        told: count,
        promptCount: count,
        promptTokens: count,
        outputCount: count,
        outputTokens: count,
        cachedTokens: count,
        cachedOfTokens: count,
      }),
      isUsual: fc.boolean(),
      afterMs: fc.integer({ min: -10_000, max: 400_000 }),
    });
    const tokens = fc.double({ min: 0, max: 1e7, noNaN: true });
    const configured = fc.record({
      promptTokens: tokens,
      uncachedPromptTokens: tokens,
      outputTokens: fc.double({ min: 1, max: 1e7, noNaN: true }),
    });
    fc.assert(
      fc.property(fc.array(report, { maxLength: 60 }), configured, (reports, from) => {
        const sizes = new RequestSizes();
        let nowMs = 1_000_000;
        let changedMs = Number.NEGATIVE_INFINITY;
        for (const { counts, isUsual, afterMs } of reports) {
          nowMs += afterMs;
          if (sizes.add('f', 'm', counts, from, isUsual, nowMs)) {
            expect(nowMs - changedMs).toBeGreaterThanOrEqual(300_000);
            changedMs = nowMs;
          }
          const held = sizes.inForce('f', 'm');
          if (held === undefined) continue;
          for (const [name, value] of Object.entries(held) as [keyof TokenSizes, number][]) {
            expect(Number.isFinite(value)).toBe(true);
            expect(value).toBeGreaterThanOrEqual(name === 'outputTokens' ? 1 : 0);
            expect(value).toBeLessThanOrEqual(Math.max(1e6, from[name] / 64) * 1.01);
          }
          expect(held.uncachedPromptTokens).toBeLessThanOrEqual(held.promptTokens);
        }
      }),
    );
  });
});
