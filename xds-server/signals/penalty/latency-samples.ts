import { sum } from '../../collections.js';
import { packRows, unpackRows } from '../saved.js';

/** What is measured: from the request to the first token of a stream, to the end of another answer; between two tokens. */
export const LATENCY_KINDS = ['firstToken', 'whole', 'pace'] as const;
export type LatencyKind = (typeof LATENCY_KINDS)[number];

/** Times of one kind in one report for one pool, and what the engine's profile says about them. */
export interface LatencySample {
  readonly atMs: number;
  readonly kind: LatencyKind;
  /** Answers that it is the mean of. */
  readonly count: number;
  readonly observedSeconds: number;
  /** By the profile, at the utilisation of that time. */
  readonly expectedSeconds: number;
  /** The most that it explains: at the highest load of the last seconds, with all requests under way in a queue. */
  readonly mostSeconds: number;
  /** How many times slower than by the profile the engine must be for it, at what it gets done; 1..20. */
  readonly slowness: number;
}

/** Enough answers to stop looking further back, and few enough to be there soon. */
const ENOUGH_ANSWERS = 20;
/** Fewer answers than these say nothing. */
const LEAST_ANSWERS = 8;
/**
 * At least those of so long count. Long prompts come in runs, and whatever comes behind them begins late: first tokens, and
 * answers with them, are late for some seconds where nothing is wrong. Between two tokens that hardly shows.
 */
const LEAST_WINDOWS_MS: Readonly<Record<LatencyKind, number>> = {
  firstToken: 6_000,
  whole: 6_000,
  pace: 3_000,
};
const LONGEST_WINDOW_MS = 30_000;
/** A penalty leaves an engine a tenth of what it had: where it began by the answers of half a minute, as many take so long. */
export const LONGEST_QUIET_WINDOW_MS = 10 * LONGEST_WINDOW_MS;

/** The latest times of one kind at one engine. */
export class LatencySamples {
  readonly #leastWindowMs: number;
  #samples: LatencySample[] = [];

  constructor(kind: LatencyKind) {
    this.#leastWindowMs = LEAST_WINDOWS_MS[kind];
  }

  add(sample: LatencySample): void {
    const [oldest = sample] = this.#samples;
    // While engines cannot be judged, nobody asks for the recent ones.
    if (sample.atMs - oldest.atMs > 2 * LONGEST_WINDOW_MS) this.#trim(sample.atMs);
    this.#samples.push(sample);
  }

  forget(): void {
    this.#samples = [];
  }

  /**
   * The last 20 answers and at least those of 6 s, or 3 s between tokens, as far as 30 s back, so that a busy engine is judged by seconds and
   * a quiet one at all; undefined when there are fewer than 8. With more time, the last 8 of that time count, where these are fewer.
   */
  recent(nowMs: number, longestMs = LONGEST_WINDOW_MS): readonly LatencySample[] | undefined {
    this.#trim(nowMs);
    const answers = sum(this.#samples.map(({ atMs, count }) => (nowMs - atMs <= longestMs ? count : 0)));
    return answers < LEAST_ANSWERS ? undefined : this.#samples;
  }

  /** However few there are: of 30 s, or the last 8 of 5 min. */
  all(nowMs: number): readonly LatencySample[] {
    this.#trim(nowMs);
    return this.#samples;
  }

  #trim(nowMs: number): void {
    let first = this.#samples.length;
    let answers = 0;
    while (first > 0) {
      const { atMs, count } = this.#samples[first - 1]!;
      const ageMs = nowMs - atMs;
      if (ageMs > LONGEST_QUIET_WINDOW_MS) break;
      if (answers >= LEAST_ANSWERS && ageMs > LONGEST_WINDOW_MS) break;
      if (answers >= ENOUGH_ANSWERS && ageMs > this.#leastWindowMs) break;
      answers += count;
      first--;
    }
    if (first > 0) this.#samples = this.#samples.slice(first);
  }

  save() {
    return { samples: packRows(this.#samples, SAMPLE) };
  }

  restore({ samples }: SavedLatencySamples, kind: LatencyKind): void {
    this.#samples = unpackRows(samples, SAMPLE).map((sample) => ({ ...sample, kind }));
  }
}

type SavedLatencySamples = ReturnType<LatencySamples['save']>;

const SAMPLE = [
  'atMs',
  'count',
  'observedSeconds',
  'expectedSeconds',
  'mostSeconds',
  'slowness',
] as const satisfies readonly (keyof LatencySample)[];

/** The value in the middle of the answers: a few slow ones, as with very long prompts, do not move it. 0 of none. */
export function typical(samples: readonly LatencySample[], value: (sample: LatencySample) => number): number {
  const values = new Float64Array(samples.length);
  const counts = new Float64Array(samples.length);
  let answers = 0;
  for (const [at, sample] of samples.entries()) {
    values[at] = value(sample);
    counts[at] = sample.count;
    answers += sample.count;
  }
  return weightedMedian(values, counts, answers / 2);
}

/**
 * The least value up to which `half` is reached by counts. It is looked for in ever smaller parts and nothing is sorted: that is
 * most of what it takes to judge a large fleet. Changes the order.
 */
function weightedMedian(values: Float64Array, counts: Float64Array, half: number): number {
  let first = 0;
  let last = values.length - 1;
  let rest = half;
  while (first < last) {
    const pivot = values[(first + last) >> 1]!;
    let low = first;
    let high = last;
    while (low <= high) {
      while (values[low]! < pivot) low++;
      while (values[high]! > pivot) high--;
      if (low > high) break;
      swap(values, low, high);
      swap(counts, low, high);
      low++;
      high--;
    }
    const below = sumOf(counts, first, high);
    if (below >= rest) {
      last = high;
      continue;
    }
    // What is between the two parts is as large as the pivot.
    const upTo = below + sumOf(counts, high + 1, low - 1);
    if (upTo >= rest) return pivot;
    rest -= upTo;
    first = low;
  }
  return values[first] ?? 0;
}

function swap(values: Float64Array, one: number, other: number): void {
  const value = values[one]!;
  values[one] = values[other]!;
  values[other] = value;
}

function sumOf(counts: Float64Array, first: number, last: number): number {
  let sum = 0;
  for (let at = first; at <= last; at++) sum += counts[at]!;
  return sum;
}
