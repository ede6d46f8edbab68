import { pack, unpack } from '../saved.js';

const BIN_MS = 250;
/** A series looks back 512 s. */
const BINS = 2048;

/** Window lengths that are looked at, in bins: from 2 s to all there is. */
const WINDOW_BINS = [
  8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 28, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256, 384, 512,
  768, 1024, 1536, 2048,
];

/** A count over the time up to the end of a series. */
export interface WindowCount {
  readonly seconds: number;
  readonly count: number;
}

/** A count, and its variance over its mean in steady traffic. */
export interface ObservedWindow extends WindowCount {
  readonly dispersion: number;
}

/** Counts over time, in bins of a quarter of a second. Looking at any window takes the same time, however long it is. */
export class RateSeries {
  /** By bin, all that was ever counted up to its end. */
  readonly #totals = new Float64Array(BINS);
  /** Number of the newest bin, counted from the epoch; older bins than the ring holds are gone. */
  #newest = 0;
  /** Up to when events were told of. */
  #latestMs = 0;

  get #oldest(): number {
    return Math.max(0, this.#newest - BINS + 1);
  }

  /** Adds `count` events, spread evenly over the time from `fromMs` to `toMs`. */
  add(count: number, fromMs: number, toMs: number): void {
    this.#latestMs = Math.max(this.#latestMs, toMs);
    if (count <= 0) return;
    const last = Math.max(Math.ceil(toMs / BIN_MS) - 1, Math.floor(fromMs / BIN_MS));
    this.#advance(last);
    for (let bin = Math.max(Math.floor(fromMs / BIN_MS), this.#oldest); bin <= this.#newest; bin++) {
      const elapsedMs = Math.min(toMs, (bin + 1) * BIN_MS) - fromMs;
      this.#totals[bin % BINS]! += toMs > fromMs ? (count * elapsedMs) / (toMs - fromMs) : count;
    }
  }

  /**
   * Counts over windows of growing length that end at `endMs` and begin with a bin, no earlier than `sinceMs`; the
   * last one reaches back to it, as far as the series goes.
   */
  windows(endMs: number, sinceMs: number): readonly WindowCount[] {
    const end = Math.floor(endMs / BIN_MS);
    this.#advance(end);
    const since = Math.max(Math.ceil(sinceMs / BIN_MS), this.#oldest + 1);
    const total = this.#before(end) + this.#begun(endMs);
    const longest = end - since;
    const lengths = WINDOW_BINS.filter((length) => length < longest);
    if (longest > 0) lengths.push(longest);
    return lengths.map((length) => ({
      seconds: (endMs - (end - length) * BIN_MS) / 1000,
      count: Math.max(0, total - this.#before(end - length)),
    }));
  }

  /** Events from one time to another, both rounded down to bins; none where nothing is kept any more. */
  count(fromMs: number, toMs: number): number {
    const end = Math.floor(toMs / BIN_MS);
    this.#advance(end - 1);
    return Math.max(0, this.#before(end) - this.#before(Math.floor(fromMs / BIN_MS)));
  }

  /** Start of the bin that the last `count` events before `endMs` go back to; undefined when there are not as many. */
  startOfLast(count: number, endMs: number): number | undefined {
    const end = Math.floor(endMs / BIN_MS);
    this.#advance(end - 1);
    const total = this.#before(end);
    for (let bin = end - 1; bin > this.#oldest; bin--) {
      if (total - this.#before(bin) >= count) return bin * BIN_MS;
    }
    return undefined;
  }

  /** Events of the bin that a time is in, up to that time: they are evenly spread over what was told of it. */
  #begun(endMs: number): number {
    const bin = Math.floor(endMs / BIN_MS);
    const toldMs = Math.min(this.#latestMs, (bin + 1) * BIN_MS) - bin * BIN_MS;
    if (toldMs <= 0) return 0;
    return (this.#before(bin + 1) - this.#before(bin)) * Math.min(1, (endMs - bin * BIN_MS) / toldMs);
  }

  /** All that was counted before a bin; what is older than the ring counts as before its oldest. */
  #before(bin: number): number {
    return this.#totals[Math.min(this.#newest, Math.max(this.#oldest, bin - 1)) % BINS]!;
  }

  #advance(bin: number): void {
    if (bin <= this.#newest) return;
    const total = this.#totals[this.#newest % BINS]!;
    const steps = Math.min(bin - this.#newest, BINS);
    for (let step = 0; step < steps; step++) this.#totals[(bin - step) % BINS] = total;
    this.#newest = bin;
  }

  save() {
    // Most series of a large fleet may never have counted anything.
    const totals = this.#newest === 0 ? '' : pack(this.#totals);
    return { totals, newest: this.#newest, latestMs: this.#latestMs };
  }

  restore({ totals, newest, latestMs }: SavedRateSeries): void {
    this.#totals.set(unpack(totals));
    this.#newest = newest;
    this.#latestMs = latestMs;
  }
}

export type SavedRateSeries = ReturnType<RateSeries['save']>;
