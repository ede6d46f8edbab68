import type { WindowCount } from './rate-series.js';

/** Least half-width of a band, as a share of the rate. */
const LEAST_WIDTH = 0.05;
const LARGEST_WIDTH = 0.5;
/**
 * Standard deviations that a count must lie from the rate, and from the edge of its band, to be taken for a change.
 * Windows are looked at every second, so these are high enough that steady Poisson traffic moves a settled rate less
 * than once in hours; a rise by half at 40 requests/s still shows within about 3 s.
 */
const SIGMAS_FROM_RATE = 5.5;
const SIGMAS_FROM_EDGE = 4;
/** A change this large is believed on less evidence, once a window holds enough requests: surges must be seen fast. */
const LARGE_CHANGE = 0.4;
const LARGE_CHANGE_COUNT = 150;
const LARGE_SIGMAS_FROM_RATE = 4.5;
const LARGE_SIGMAS_FROM_EDGE = 3;
/** A rise is believed within seconds, a fall when it has lasted: too little demand hurts more than too much. */
const LEAST_RISE_SECONDS = 2;
const LEAST_FALL_SECONDS = 10;
/** While young, a rate follows better measurements that differ by a standard deviation and at least this share. */
const REFINED_WIDTH = 0.0125;
/** From this count on, four standard deviations are within `LEAST_WIDTH`, and the rate is taken as known. */
export const SETTLED_COUNT = (4 / LEAST_WIDTH) ** 2;

/** A rate of which nothing was heard for this long is half as well known. */
const AGEING_SECONDS = 60;

/** A rate and how many requests it was measured on; infinitely many for a configured one. */
export interface BandState {
  readonly requestsPerSecond: number;
  readonly count: number;
}

/**
 * Holds a rate still while counts agree with it: within max(5 %, two standard deviations of the count that it was
 * measured on). It moves only
 * - when a window of recent counts lies outside the band beyond doubt (by the root of the Poisson deviance, which is
 *   close to a normal deviate even for small counts): then to the rate of the most telling window; or
 * - while it is young, when twice as many counts tell better.
 */
export class DemandBand {
  #state: BandState;
  /** Counts from before belong to another rate. */
  #sinceMs = Number.NEGATIVE_INFINITY;

  constructor(state: BandState) {
    this.#state = state;
  }

  get state(): BandState {
    return this.#state;
  }

  get sinceMs(): number {
    return this.#sinceMs;
  }

  /** Starts the measurement. */
  begin(sinceMs: number): void {
    this.#sinceMs = sinceMs;
  }

  /**
   * Makes a rate of which nothing was heard for a while young again, so that it follows what is heard from now on:
   * the count that it stands for is at most that of a settled one, divided by (1 + minutes of silence).
   */
  age(silentSeconds: number, nowMs: number): void {
    const { requestsPerSecond, count } = this.#state;
    this.#state = {
      requestsPerSecond,
      count: Math.min(count, SETTLED_COUNT) / (1 + silentSeconds / AGEING_SECONDS),
    };
    this.#sinceMs = nowMs;
  }

  /** Looks at counts up to `endMs`, shortest window first; true when the rate moved. */
  observe(windows: readonly WindowCount[], endMs: number): boolean {
    return this.#leave(windows, endMs) || this.#refine(windows.at(-1));
  }

  #leave(windows: readonly WindowCount[], endMs: number): boolean {
    let most = 0;
    let telling: WindowCount | undefined;
    for (const window of windows) {
      const sigmas = this.#sigmasAway(window);
      if (sigmas > most) {
        most = sigmas;
        telling = window;
      }
    }
    if (telling === undefined) return false;
    const isFall = telling.count < this.#state.requestsPerSecond * telling.seconds;
    if (isFall && telling.seconds < LEAST_FALL_SECONDS) return false;
    this.#state = { requestsPerSecond: telling.count / telling.seconds, count: telling.count };
    this.#sinceMs = endMs - telling.seconds * 1000;
    return true;
  }

  #sigmasAway({ seconds, count }: WindowCount): number {
    const expected = this.#state.requestsPerSecond * seconds;
    const width = this.#width();
    // A mean below one request would make a single one a surprise.
    const mean = Math.max(expected, 1);
    const isRise = count > mean * (1 + width);
    const isFall = count < mean * (1 - width);
    if (seconds < LEAST_RISE_SECONDS || (!isRise && !isFall)) return 0;
    const edge = mean * (isRise ? 1 + width : 1 - width);
    const sigmas = rootDeviance(count, mean);
    const isLarge =
      Math.max(count, mean) >= LARGE_CHANGE_COUNT && Math.abs(count - mean) > LARGE_CHANGE * mean;
    const fromEdge = isLarge ? LARGE_SIGMAS_FROM_EDGE : SIGMAS_FROM_EDGE;
    const fromRate = isLarge ? LARGE_SIGMAS_FROM_RATE : SIGMAS_FROM_RATE;
    return rootDeviance(count, edge) > fromEdge && sigmas > fromRate ? sigmas : 0;
  }

  #width(): number {
    return Math.min(LARGEST_WIDTH, Math.max(LEAST_WIDTH, 2 / Math.sqrt(this.#state.count)));
  }

  #refine(longest: WindowCount | undefined): boolean {
    const { requestsPerSecond, count } = this.#state;
    if (longest === undefined || count >= SETTLED_COUNT || longest.count < 2 * count) return false;
    const measured = longest.count / longest.seconds;
    const width = Math.max(REFINED_WIDTH * requestsPerSecond, Math.sqrt(longest.count) / longest.seconds);
    const moves = Math.abs(measured - requestsPerSecond) > width;
    this.#state = { requestsPerSecond: moves ? measured : requestsPerSecond, count: longest.count };
    return moves;
  }
}

/** Root of the deviance of a Poisson count from its mean. */
function rootDeviance(count: number, mean: number): number {
  const deviance = count === 0 ? mean : count * Math.log(count / mean) - (count - mean);
  return Math.sqrt(Math.max(0, 2 * deviance));
}
