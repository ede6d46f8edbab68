/** Window lengths at which it is measured, each twice the one before. */
const SCALES_SECONDS = [2, 4, 8, 16, 32, 64, 128] as const;
/** Windows that are compared are at least so far apart: closer ones share conversations and look too much alike. */
const LAG_SECONDS = 32;
/** Where nothing is known counts are taken for those of a Poisson process, as strongly as by this many windows. */
const PRIOR_WINDOWS = 8;
/** Older windows than these fade. */
const MOST_WINDOWS = 128;
/** Of windows that differ by more than three standard deviations, so much is believed. */
const LARGEST_SURPRISE = 9;
/** Standard deviations by which an estimate must be above 1 to be believed. */
const SIGMAS_ABOVE_ONE = 1.5;
const LARGEST = 16;

/** Counts the events from one time to another. */
export type Count = (fromMs: number, toMs: number) => number;

interface Scale {
  readonly seconds: number;
  estimate: number;
  windows: number;
  /** Where the last whole window ends. */
  endMs: number;
  /** Of the last whole windows, as far back as the lag; the oldest first. */
  counts: number[];
}

/**
 * The index of dispersion of counts, variance over mean, by the length of the window. Turns of a conversation follow
 * each other, so that counts of longer windows vary more than those of independent requests, up to E(n²) ÷ E(n) for
 * conversations of n turns, while counts of a few seconds hardly do. It is half the mean squared difference of
 * windows half a minute apart over their mean, which a slow change of the rate does not touch.
 */
export class Dispersion {
  readonly #scales: readonly Scale[] = SCALES_SECONDS.map((seconds) => ({
    seconds,
    estimate: 1,
    windows: PRIOR_WINDOWS,
    endMs: Number.NEGATIVE_INFINITY,
    counts: [],
  }));
  readonly #learnAfterMs: number;

  /** Counts are compared once they are so old: those of a change that is not found by then pass for lumps, and hide it. */
  constructor(learnAfterMs = 0) {
    this.#learnAfterMs = learnAfterMs;
  }

  /** 1..16, for windows of this length; no less than for shorter ones. */
  of(seconds: number): number {
    let below = 1;
    for (const scale of this.#scales) {
      const above = Math.max(below, believed(scale));
      if (scale.seconds > seconds) {
        const part = Math.max(0, 1 + Math.log2(seconds / scale.seconds));
        return below + part * (above - below);
      }
      below = above;
    }
    return below;
  }

  /** Looks at whole windows of counts up to `nowMs`, none from before `sinceMs`, where the rate was another. */
  observe(count: Count, sinceMs: number, nowMs: number): void {
    const endMs = nowMs - this.#learnAfterMs;
    if (endMs < sinceMs) return;
    for (const scale of this.#scales) {
      const lengthMs = scale.seconds * 1_000;
      // Counts of another rate are not compared, and what is long gone is not counted any more.
      if (scale.endMs - scale.counts.length * lengthMs < sinceMs || scale.endMs < endMs - 2 * lengthMs) {
        scale.endMs = Math.max(sinceMs, endMs - lengthMs);
        scale.counts = [];
      }
      for (; scale.endMs + lengthMs <= endMs; scale.endMs += lengthMs) {
        learn(scale, count(scale.endMs, scale.endMs + lengthMs));
      }
    }
  }

  save() {
    return this.#scales.map((scale) => ({ ...scale, counts: [...scale.counts] }));
  }

  restore(saved: SavedDispersion): void {
    for (const [at, scale] of saved.entries()) Object.assign(this.#scales[at]!, structuredClone(scale));
  }
}

type SavedDispersion = ReturnType<Dispersion['save']>;

function learn(scale: Scale, now: number): void {
  const { counts, seconds } = scale;
  counts.push(now);
  if (counts.length <= Math.max(1, LAG_SECONDS / seconds)) return;
  const before = counts.shift()!;
  if (now + before === 0) return;
  const surprise = (now - before) ** 2 / (now + before);
  const limited = Math.min(surprise, LARGEST_SURPRISE * Math.max(1, scale.estimate));
  scale.windows = Math.min(MOST_WINDOWS, scale.windows + 1);
  scale.estimate += (limited - scale.estimate) / scale.windows;
}

/** Half a squared difference of two normal counts has a standard deviation of √2 times its mean. */
function believed({ estimate, windows }: Scale): number {
  return estimate > 1 + SIGMAS_ABOVE_ONE * Math.sqrt(2 / windows) ? Math.min(LARGEST, estimate) : 1;
}
