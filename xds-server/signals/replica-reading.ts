import type { SignalName } from '../fleet/fleet.js';
import type { PageReading, PageValue } from './engine-metrics.js';
import { HitShare } from './hit-share.js';
import { MOST_SAMPLES } from './metrics-text.js';

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
  readonly #hitShare = new HitShare();

  constructor(signals: Iterable<SignalName>) {
    for (const signal of signals) this.#signals.set(signal, { value: undefined, atMs: 0, source: undefined });
  }

  get signals(): ReadonlyMap<SignalName, SignalReading> {
    return this.#signals;
  }

  /** 0..1, share of prompt tokens found in the prefix cache over about the last minute; undefined while unknown. */
  get hitShare(): number | undefined {
    return this.#hitShare.value;
  }

  accept(page: PageReading, nowMs: number): void {
    for (const [signal, read] of page) {
      if ('value' in read) this.#signals.set(signal, { ...read, atMs: nowMs });
      else this.#miss(signal, REASONS[read.problem], nowMs);
    }
    const hits = page.get('prefixHits');
    const queries = page.get('prefixQueries');
    if (hits !== undefined && queries !== undefined && 'value' in hits && 'value' in queries) {
      this.#hitShare.add(hits.value, queries.value, nowMs);
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
