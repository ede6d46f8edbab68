import { packRows, unpackRows } from '../saved.js';

/** Measurements of this time decide; the least of them is the round trip, the rest waited in engines. */
const WINDOW_MS = 120_000;
/** Older ones count as long as there are fewer than these. */
export const LEAST_SAMPLES = 3;
/** Nothing is known of a pair of which nothing was heard for this long. */
const EXPIRY_MS = 600_000;
const BUCKET_MS = 15_000;

/** What is in force moves only by more than these, so that weights stay still. */
const LEAST_CHANGE_SECONDS = 0.005;
const LEAST_CHANGE_SHARE = 0.15;
const LEAST_STAY_MS = 30_000;

/** A measurement is believed within these limits around what is configured. */
const MOST_FACTOR = 4;
const MOST_ADDED_SECONDS = 0.05;
/** Where nothing is configured, or no time at all, there is nothing to compare it with. */
const MOST_UNKNOWN_SECONDS = 1;

/** What is known of the round trip between a frontend and an engine. */
export interface RoundTripView {
  /** In force. */
  readonly seconds: number;
  readonly isMeasured: boolean;
  readonly configuredSeconds: number;
  /** Undefined before anything was measured, and when all of it is too old. */
  readonly measured?: {
    readonly seconds: number;
    readonly samples: number;
    readonly atMs: number;
  };
  /** Whether `seconds` is at a limit around what is configured, which the measurement is beyond. */
  readonly isLimited: boolean;
}

interface Bucket {
  readonly fromMs: number;
  atMs: number;
  seconds: number;
  samples: number;
}

/**
 * The round trip between a frontend and an engine: what is configured, until measurements differ from it. The measured
 * one is the least of two minutes, as everything besides the network adds to it.
 */
export class RoundTrip {
  readonly #configuredSeconds: number;
  #buckets: Bucket[] = [];
  #believedSeconds: number | undefined;
  #movedMs = Number.NEGATIVE_INFINITY;
  /** The last evaluation, and the time from when to when another one says the same: none after a measurement. */
  #view: RoundTripView;
  #sinceMs = Number.NEGATIVE_INFINITY;
  #untilMs = Number.POSITIVE_INFINITY;

  constructor(configuredSeconds: number) {
    this.#configuredSeconds = configuredSeconds;
    this.#view = this.#viewOf(undefined);
  }

  get configuredSeconds(): number {
    return this.#configuredSeconds;
  }

  /** In force. */
  get seconds(): number {
    return this.#believedSeconds ?? this.#configuredSeconds;
  }

  /** Nothing is measured of what cannot be reached. */
  add(seconds: number, samples: number, atMs: number): void {
    if (!Number.isFinite(this.#configuredSeconds)) return;
    this.#untilMs = Number.NEGATIVE_INFINITY;
    const last = this.#buckets.at(-1);
    if (last !== undefined && atMs - last.fromMs < BUCKET_MS) {
      last.atMs = Math.max(last.atMs, atMs);
      last.seconds = Math.min(last.seconds, seconds);
      last.samples += samples;
      return;
    }
    this.#buckets = this.#buckets.filter((bucket) => atMs - bucket.atMs < EXPIRY_MS);
    this.#buckets.push({ fromMs: atMs, atMs, seconds, samples });
  }

  /** Takes over what another one knew of the same pair, whose configured value was another. */
  inherit(other: RoundTrip): void {
    this.#buckets = other.#buckets;
    this.#untilMs = Number.NEGATIVE_INFINITY;
  }

  get wasMeasured(): boolean {
    return this.#buckets.length > 0;
  }

  /** Of the last evaluation. */
  get view(): RoundTripView {
    return this.#view;
  }

  /** The same object while nothing changes. */
  evaluate(nowMs: number): RoundTripView {
    if (nowMs < this.#sinceMs || nowMs >= this.#untilMs) {
      this.#view = this.#evaluate(nowMs);
      this.#sinceMs = nowMs;
      this.#untilMs = this.#nextChangeMs(nowMs);
    }
    return this.#view;
  }

  #evaluate(nowMs: number): RoundTripView {
    const measured = this.#measured(nowMs);
    this.#believe(measured && withinLimits(measured.seconds, this.#configuredSeconds), nowMs);
    return this.#viewOf(measured);
  }

  #viewOf(measured: RoundTripView['measured']): RoundTripView {
    const { seconds } = this;
    const wanted = measured && withinLimits(measured.seconds, this.#configuredSeconds);
    return {
      seconds,
      isMeasured: this.#believedSeconds !== undefined,
      configuredSeconds: this.#configuredSeconds,
      ...(measured !== undefined && { measured }),
      isLimited: measured !== undefined && seconds === wanted && wanted !== measured.seconds,
    };
  }

  /** The next time at which something becomes too old or may move. */
  #nextChangeMs(nowMs: number): number {
    let nextMs = Number.POSITIVE_INFINITY;
    const consider = (atMs: number) => {
      if (atMs > nowMs && atMs < nextMs) nextMs = atMs;
    };
    for (const { atMs } of this.#buckets) {
      consider(atMs + WINDOW_MS);
      consider(atMs + EXPIRY_MS);
    }
    consider(this.#movedMs + LEAST_STAY_MS);
    return nextMs;
  }

  #believe(wanted: number | undefined, nowMs: number): void {
    if (wanted === undefined) {
      this.#believedSeconds = undefined;
      return;
    }
    if (isClose(wanted, this.seconds) || Math.abs(nowMs - this.#movedMs) < LEAST_STAY_MS) return;
    this.#believedSeconds = isClose(wanted, this.#configuredSeconds) ? undefined : wanted;
    this.#movedMs = nowMs;
  }

  #measured(nowMs: number): RoundTripView['measured'] {
    let seconds = Number.POSITIVE_INFINITY;
    let samples = 0;
    for (let i = this.#buckets.length - 1; i >= 0; i--) {
      const bucket = this.#buckets[i]!;
      const ageMs = nowMs - bucket.atMs;
      if (ageMs >= EXPIRY_MS || (ageMs >= WINDOW_MS && samples >= LEAST_SAMPLES)) break;
      seconds = Math.min(seconds, bucket.seconds);
      samples += bucket.samples;
    }
    return samples < LEAST_SAMPLES ? undefined : { seconds, samples, atMs: this.#buckets.at(-1)!.atMs };
  }

  save() {
    return {
      buckets: packRows(this.#buckets, BUCKET),
      believedSeconds: this.#believedSeconds,
      movedMs: this.#movedMs,
      measured: this.#view.measured,
      sinceMs: this.#sinceMs,
      untilMs: this.#untilMs,
    };
  }

  restore(saved: SavedRoundTrip): void {
    this.#buckets = unpackRows(saved.buckets, BUCKET);
    this.#believedSeconds = saved.believedSeconds;
    this.#movedMs = saved.movedMs;
    this.#view = this.#viewOf(saved.measured);
    this.#sinceMs = saved.sinceMs;
    this.#untilMs = saved.untilMs;
  }
}

type SavedRoundTrip = ReturnType<RoundTrip['save']>;

const BUCKET = ['fromMs', 'atMs', 'seconds', 'samples'] as const;

function withinLimits(seconds: number, configuredSeconds: number): number {
  const most =
    configuredSeconds === 0
      ? MOST_UNKNOWN_SECONDS
      : Math.max(configuredSeconds * MOST_FACTOR, configuredSeconds + MOST_ADDED_SECONDS);
  return Math.min(Math.max(seconds, configuredSeconds / MOST_FACTOR), most);
}

function isClose(seconds: number, otherSeconds: number): boolean {
  return (
    Math.abs(seconds - otherSeconds) <=
    Math.max(LEAST_CHANGE_SECONDS, LEAST_CHANGE_SHARE * Math.max(seconds, otherSeconds))
  );
}
