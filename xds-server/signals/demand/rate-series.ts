import { pack, unpack } from '../saved.js';

/** Counts of the last 512 s are kept by quarters of a second, those of 17 min by spans of 4 s. */
const BIN_MS = 250;
const BINS = 2048;
const WIDE_BIN_MS = 4_000;
const WIDE_BINS = 256;

/** Window lengths that are looked at, in bins: from 2 s to all there is. */
const WINDOW_BINS = [
  8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 28, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256, 384, 512,
  768, 1024, 1536, 2048,
];
const WIDE_WINDOW_BINS = [160, 192];

/** A count over the time up to the end of a series. */
export interface WindowCount {
  readonly seconds: number;
  readonly count: number;
}

/** A count, and its variance over its mean in steady traffic. */
export interface ObservedWindow extends WindowCount {
  readonly dispersion: number;
}

/** Counts over time. Looking at any window takes the same time, however long it is. */
export class RateSeries {
  readonly #fine = new Ring(BIN_MS, BINS);
  readonly #wide = new Ring(WIDE_BIN_MS, WIDE_BINS);
  /** Up to when events were told of. */
  #latestMs = 0;

  /** Adds `count` events, spread evenly over the time from `fromMs` to `toMs`. */
  add(count: number, fromMs: number, toMs: number): void {
    this.#latestMs = Math.max(this.#latestMs, toMs);
    if (count <= 0) return;
    this.#fine.add(count, fromMs, toMs);
    this.#wide.add(count, fromMs, toMs);
  }

  /**
   * Counts over windows of growing length that end at `endMs` and begin with a bin, no earlier than `sinceMs`; the
   * last one reaches back to it, as far as the series goes.
   */
  windows(endMs: number, sinceMs: number): readonly WindowCount[] {
    this.#fine.advance(Math.floor(endMs / BIN_MS));
    this.#wide.advance(Math.floor(endMs / WIDE_BIN_MS));
    const fine = this.#windowsOf(this.#fine, WINDOW_BINS, endMs, sinceMs);
    const longest = fine.at(-1)?.seconds ?? Number.POSITIVE_INFINITY;
    if (sinceMs >= this.#fine.oldestMs) return fine;
    const wide = this.#windowsOf(this.#wide, WIDE_WINDOW_BINS, endMs, sinceMs);
    return [...fine, ...wide.filter(({ seconds }) => seconds > longest)];
  }

  /** Events from one time to another, both rounded down to bins; none where nothing is kept any more. */
  count(fromMs: number, toMs: number): number {
    const end = Math.floor(toMs / BIN_MS);
    this.#fine.advance(end - 1);
    return Math.max(0, this.#fine.before(end) - this.#fine.before(Math.floor(fromMs / BIN_MS)));
  }

  /** Start of the bin that the last `count` events before `endMs` go back to; undefined when there are not as many. */
  startOfLast(count: number, endMs: number): number | undefined {
    const end = Math.floor(endMs / BIN_MS);
    this.#fine.advance(end - 1);
    const total = this.#fine.before(end);
    for (let bin = end - 1; bin > this.#fine.oldest; bin--) {
      if (total - this.#fine.before(bin) >= count) return bin * BIN_MS;
    }
    return undefined;
  }

  save() {
    return { fine: this.#fine.save(), wide: this.#wide.save(), latestMs: this.#latestMs };
  }

  restore({ fine, wide, latestMs }: SavedRateSeries): void {
    this.#fine.restore(fine);
    this.#wide.restore(wide);
    this.#latestMs = latestMs;
  }

  #windowsOf(ring: Ring, lengths: readonly number[], endMs: number, sinceMs: number): readonly WindowCount[] {
    const { binMs } = ring;
    const end = Math.floor(endMs / binMs);
    const since = Math.max(Math.ceil(sinceMs / binMs), ring.oldest + 1);
    const total = ring.before(end) + ring.begun(endMs, this.#latestMs);
    const longest = end - since;
    const fitting = lengths.filter((length) => length < longest);
    if (longest > 0) fitting.push(longest);
    return fitting.map((length) => ({
      seconds: (endMs - (end - length) * binMs) / 1000,
      count: Math.max(0, total - ring.before(end - length)),
    }));
  }
}

type SavedRateSeries = ReturnType<RateSeries['save']>;

/** The last bins of one width. */
class Ring {
  readonly binMs: number;
  /** By bin, all that was ever counted up to its end. */
  readonly #totals: Float64Array;
  /** Number of the newest bin, counted from the epoch; older bins than the ring holds are gone. */
  #newest = 0;

  constructor(binMs: number, bins: number) {
    this.binMs = binMs;
    this.#totals = new Float64Array(bins);
  }

  get oldest(): number {
    return Math.max(0, this.#newest - this.#totals.length + 1);
  }

  /** From when on counts are known. */
  get oldestMs(): number {
    return (this.oldest + 1) * this.binMs;
  }

  add(count: number, fromMs: number, toMs: number): void {
    const { binMs } = this;
    const last = Math.max(Math.ceil(toMs / binMs) - 1, Math.floor(fromMs / binMs));
    this.advance(last);
    for (let bin = Math.max(Math.floor(fromMs / binMs), this.oldest); bin <= this.#newest; bin++) {
      const elapsedMs = Math.min(toMs, (bin + 1) * binMs) - fromMs;
      this.#totals[bin % this.#totals.length]! +=
        toMs > fromMs ? (count * elapsedMs) / (toMs - fromMs) : count;
    }
  }

  /** Events of the bin that a time is in, up to that time: they are evenly spread over what was told of it. */
  begun(endMs: number, latestMs: number): number {
    const bin = Math.floor(endMs / this.binMs);
    const toldMs = Math.min(latestMs, (bin + 1) * this.binMs) - bin * this.binMs;
    if (toldMs <= 0) return 0;
    return (this.before(bin + 1) - this.before(bin)) * Math.min(1, (endMs - bin * this.binMs) / toldMs);
  }

  /** All that was counted before a bin; what is older than the ring counts as before its oldest. */
  before(bin: number): number {
    return this.#totals[Math.min(this.#newest, Math.max(this.oldest, bin - 1)) % this.#totals.length]!;
  }

  advance(bin: number): void {
    if (bin <= this.#newest) return;
    const total = this.#totals[this.#newest % this.#totals.length]!;
    const steps = Math.min(bin - this.#newest, this.#totals.length);
    for (let step = 0; step < steps; step++) this.#totals[(bin - step) % this.#totals.length] = total;
    this.#newest = bin;
  }
  save() {
    // Most series of a large fleet may never have counted anything.
    const totals = this.#totals[this.#newest % this.#totals.length] === 0 ? '' : pack(this.#totals);
    return { totals, newest: this.#newest };
  }

  restore({ totals, newest }: ReturnType<Ring['save']>): void {
    this.#totals.set(unpack(totals));
    this.#newest = newest;
  }
}
