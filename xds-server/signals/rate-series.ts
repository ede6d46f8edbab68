const BIN_MS = 250;
/** A series looks back 512 s. */
const BINS = 2048;

/** Window lengths that are looked at, in bins: from 2 s to all there is. */
const WINDOW_BINS = [
  8, 9, 10, 11, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256, 384, 512, 768, 1024, 1536, 2048,
];

/** A count over the time up to the end of a series. */
export interface WindowCount {
  readonly seconds: number;
  readonly count: number;
}

/** Counts over time, in bins of a quarter of a second. */
export class RateSeries {
  readonly #counts = new Float64Array(BINS);
  /** Number of the newest bin, counted from the epoch; older bins than the ring holds are gone. */
  #newest = 0;

  get #oldest(): number {
    return Math.max(0, this.#newest - BINS + 1);
  }

  /** Adds `count` events, spread evenly over the time from `fromMs` to `toMs`. */
  add(count: number, fromMs: number, toMs: number): void {
    if (count <= 0) return;
    const last = Math.max(Math.ceil(toMs / BIN_MS) - 1, Math.floor(fromMs / BIN_MS));
    this.#advance(last);
    const first = Math.max(Math.floor(fromMs / BIN_MS), this.#oldest);
    if (last < first) return;
    if (toMs <= fromMs) {
      this.#counts[last % BINS]! += count;
      return;
    }
    for (let bin = first; bin <= last; bin++) {
      const overlap = Math.min(toMs, (bin + 1) * BIN_MS) - Math.max(fromMs, bin * BIN_MS);
      this.#counts[bin % BINS]! += (count * overlap) / (toMs - fromMs);
    }
  }

  /**
   * Counts over windows of growing length that end at `endMs` (rounded down to a bin) and begin no earlier than
   * `sinceMs`; the last one reaches back to it, as far as the series goes.
   */
  windows(endMs: number, sinceMs: number): readonly WindowCount[] {
    const end = Math.floor(endMs / BIN_MS);
    this.#advance(end - 1);
    const since = Math.max(Math.ceil(sinceMs / BIN_MS), this.#oldest);
    const longest = Math.min(end - since, BINS);
    const windows: WindowCount[] = [];
    let count = 0;
    let next = 0;
    for (let length = 1; length <= longest; length++) {
      count += this.#counts[(end - length) % BINS]!;
      const isListed = length === WINDOW_BINS[next];
      if (isListed) next++;
      if (isListed || length === longest) windows.push({ seconds: (length * BIN_MS) / 1000, count });
    }
    return windows;
  }

  /** Events from one time to another, both rounded down to bins; none where nothing is kept any more. */
  count(fromMs: number, toMs: number): number {
    const end = Math.floor(toMs / BIN_MS);
    this.#advance(end - 1);
    let sum = 0;
    for (let bin = Math.max(Math.floor(fromMs / BIN_MS), this.#oldest); bin < end; bin++) {
      sum += this.#counts[bin % BINS]!;
    }
    return sum;
  }

  /** Start of the bin that the last `count` events before `endMs` go back to; undefined when there are not as many. */
  startOfLast(count: number, endMs: number): number | undefined {
    const end = Math.floor(endMs / BIN_MS);
    this.#advance(end - 1);
    let sum = 0;
    for (let bin = end - 1; bin >= this.#oldest; bin--) {
      sum += this.#counts[bin % BINS]!;
      if (sum >= count) return bin * BIN_MS;
    }
    return undefined;
  }

  #advance(bin: number): void {
    if (bin <= this.#newest) return;
    const steps = Math.min(bin - this.#newest, BINS);
    for (let step = 0; step < steps; step++) this.#counts[(bin - step) % BINS] = 0;
    this.#newest = bin;
  }
}
