/** First-byte times of one report for one pool, and what the engine's profile says about them. */
export interface LatencySample {
  readonly atMs: number;
  readonly poolId: string;
  /** Answers that began. */
  readonly count: number;
  /** Mean seconds from the request to the first byte of its answer. */
  readonly observedSeconds: number;
  /** Network and time to first token by the profile, at the load of that time. */
  readonly profileSeconds: number;
  /** Most that answers which are not streamed may take longer than that; infinite where the profile does not tell. */
  readonly mostExtraSeconds: number;
}

/** Enough answers to stop looking further back, and few enough to be there soon. */
const ENOUGH_ANSWERS = 20;
/** Fewer answers than these say nothing. */
const LEAST_ANSWERS = 8;
const LEAST_WINDOW_MS = 3_000;
const LONGEST_WINDOW_MS = 30_000;

/** The latest first-byte times of one engine. */
export class LatencySamples {
  #samples: LatencySample[] = [];

  add(sample: LatencySample): void {
    this.#samples.push(sample);
  }

  forget(): void {
    this.#samples = [];
  }

  /**
   * The last 20 answers and at least those of 3 s, as far as 30 s back, so that a busy engine is judged by seconds and
   * a quiet one at all; undefined when there are fewer than 8.
   */
  recent(nowMs: number): readonly LatencySample[] | undefined {
    let first = this.#samples.length;
    let answers = 0;
    while (first > 0) {
      const { atMs, count } = this.#samples[first - 1]!;
      const ageMs = nowMs - atMs;
      if (ageMs > LONGEST_WINDOW_MS || (answers >= ENOUGH_ANSWERS && ageMs > LEAST_WINDOW_MS)) break;
      answers += count;
      first--;
    }
    this.#samples = this.#samples.slice(first);
    return answers < LEAST_ANSWERS ? undefined : this.#samples;
  }
}

/** The value in the middle of the answers: a few slow ones, as with very long prompts, do not move it. */
export function typical(samples: readonly LatencySample[], value: (sample: LatencySample) => number): number {
  const sorted = samples.map((sample) => ({ value: value(sample), count: sample.count }));
  sorted.sort((a, b) => a.value - b.value);
  const half = sorted.reduce((sum, { count }) => sum + count, 0) / 2;
  let seen = 0;
  for (const { value: each, count } of sorted) {
    seen += count;
    if (seen >= half) return each;
  }
  return 0;
}

/** The middle value, of an even number the smaller one of both in the middle. */
export function lowerMedian(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) / 2)]!;
}
