import type { SignalName } from '../../fleet/fleet.js';
import type { PageReading, PageValue } from './engine-metrics.js';
import { GrowthRatio } from './growth-ratio.js';
import { MOST_SAMPLES } from './metrics-text.js';

/** What follows from the growth of two counters. */
const RATIOS = {
  prefixHitShare: ['prefixHits', 'prefixQueries'],
  meanFirstTokenSeconds: ['firstTokenSeconds', 'firstTokens'],
  meanTokenGapSeconds: ['tokenGapSeconds', 'tokenGaps'],
} as const satisfies Readonly<Record<string, readonly [SignalName, SignalName]>>;
export type RatioName = keyof typeof RATIOS;

const REASONS: Readonly<Record<Extract<PageValue, { problem: string }>['problem'], string>> = {
  missing: 'not on the page',
  invalid: 'not a valid number',
  crowded: `more than ${MOST_SAMPLES} series on the page`,
};

/** The last known value of one signal of one replica. A value that was never there is undefined, never 0. */
export interface SignalReading {
  readonly value: number | undefined;
  /** When the value was read; 0 when it never was. */
  readonly atMs: number;
  /** Name of the metric it was read from. */
  readonly source: string | undefined;
  /** Why there is no newer value, and since when. */
  readonly problem?: { readonly reason: string; readonly sinceMs: number };
}

/** What the metrics page of one replica said last. */
export class ReplicaReading {
  readonly #signals = new Map<SignalName, SignalReading>();
  readonly #ratios = Object.entries(RATIOS).map(([name, of]) => ({ name, of, growth: new GrowthRatio() }));

  constructor(signals: Iterable<SignalName>) {
    for (const signal of signals) this.#signals.set(signal, { value: undefined, atMs: 0, source: undefined });
  }

  get signals(): ReadonlyMap<SignalName, SignalReading> {
    return this.#signals;
  }

  /**
   * Over about the last minute: share of prompt tokens found in the prefix cache (0..1), mean seconds to the first token and
   * between two. Undefined while unknown.
   */
  get ratios(): Readonly<Record<RatioName, number | undefined>> {
    const values = Object.fromEntries(this.#ratios.map(({ name, growth }) => [name, growth.value]));
    const { prefixHitShare, ...means } = values as Record<RatioName, number | undefined>;
    return { ...means, prefixHitShare: prefixHitShare && Math.min(1, prefixHitShare) };
  }

  accept(page: PageReading, nowMs: number): void {
    for (const [signal, read] of page) {
      if ('value' in read) this.#signals.set(signal, { ...read, atMs: nowMs });
      else this.#miss(signal, REASONS[read.problem], nowMs);
    }
    for (const { of, growth } of this.#ratios) {
      const [part, whole] = of.map((signal) => page.get(signal));
      if (part !== undefined && whole !== undefined && 'value' in part && 'value' in whole) {
        growth.add(part.value, whole.value, nowMs);
      }
    }
  }

  /** The page could not be read; what it said before stays, and ages. */
  fail(reason: string, nowMs: number): void {
    for (const signal of this.#signals.keys()) this.#miss(signal, reason, nowMs);
  }

  #miss(signal: SignalName, reason: string, nowMs: number): void {
    const last = this.#signals.get(signal)!;
    const sinceMs = last.problem?.sinceMs ?? nowMs;
    this.#signals.set(signal, { ...last, problem: { reason, sinceMs } });
  }
}

/** A value is as good as new for this long: three looks at the page. */
export const FRESH_MS = 6_000;
/** From here on it says nothing any more. */
const WORTHLESS_MS = 60_000;

/** 0..1, how far a value can still be trusted: falls evenly from 1 at an age of 6 s to 0 at 60 s. */
export function confidence({ value, atMs }: SignalReading, nowMs: number): number {
  if (value === undefined) return 0;
  return Math.min(1, Math.max(0, (WORTHLESS_MS - (nowMs - atMs)) / (WORTHLESS_MS - FRESH_MS)));
}

/** The value while it can be trusted at all. */
export function trustedValue(reading: SignalReading | undefined, nowMs: number): number | undefined {
  return reading !== undefined && confidence(reading, nowMs) > 0 ? reading.value : undefined;
}
