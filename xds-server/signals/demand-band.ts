/** Least half-width of a band, as a share of the rate. */
const LEAST_WIDTH = 0.05;
const LARGEST_WIDTH = 0.5;
/**
 * Standard deviations that a count must lie from the rate, and from the edge of its band, to be taken for a change.
 * Windows are looked at every second, so these are high enough that steady traffic moves a settled rate less than once
 * in hours; a rise by half at 40 requests/s still shows within about 3 s.
 */
const SIGMAS_FROM_RATE = 5.5;
const SIGMAS_FROM_EDGE = 4;
/** A change this large is believed on less evidence, once a window holds enough requests: surges must be seen fast. */
const LARGE_CHANGE = 0.4;
const LARGE_CHANGE_COUNT = 150;
const LARGE_SIGMAS_FROM_RATE = 4.5;
const LARGE_SIGMAS_FROM_EDGE = 3;
/** After a large rise more of the same is expected: conversations that begin together go on together. */
const SURGE_SECONDS = 30;
const SURGE_SIGMAS_FROM_RATE = 2;
const SURGE_SIGMAS_FROM_EDGE = 0.5;
/** A rise is believed within seconds, a fall when it has lasted: too little demand hurts more than too much. */
const LEAST_RISE_SECONDS = 2;
const LEAST_FALL_SECONDS = 10;
/** A change that is not large waits for this many times the evidence that showed it: one good move, not two. */
const SMALL_CHANGE_EVIDENCE = 2;
/** From this evidence on, four standard deviations are within `LEAST_WIDTH`, and the rate is taken as known. */
export const SETTLED_EVIDENCE = (4 / LEAST_WIDTH) ** 2;

/** A rate of which nothing was heard for this long is half as well known. */
const AGEING_SECONDS = 60;

/** A rate, and how well it is known: the count that it was measured on over its dispersion; infinite if configured. */
export interface BandState {
  readonly requestsPerSecond: number;
  readonly evidence: number;
}

/** A count over the time up to now, and its variance over its mean in steady traffic. */
export interface ObservedWindow {
  readonly seconds: number;
  readonly count: number;
  readonly dispersion: number;
}

/**
 * Holds a rate still while counts agree with it: within max(5 %, two standard deviations of the count that it was
 * measured on). It moves only
 * - when a window of recent counts lies outside the band beyond doubt: then to the rate of the most telling window, at
 *   once if the change is large or goes on with one, and when twice the evidence is in if not; or
 * - while it is young, when twice as many counts are outside of the band that they would have.
 */
export class DemandBand {
  #state: BandState;
  /** Counts from before belong to another rate. */
  #sinceMs = Number.NEGATIVE_INFINITY;
  #surgedMs = Number.NEGATIVE_INFINITY;
  /** Evidence that first showed the change that is being waited for. */
  #shownBy: number | undefined;

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

  /** Takes a rate that is known to have surged. */
  surgeTo(state: BandState, sinceMs: number): void {
    this.#moveTo(state, sinceMs);
    this.#surgedMs = sinceMs;
  }

  /**
   * Makes a rate of which nothing was heard for a while young again, so that it follows what is heard from now on:
   * the evidence that it stands for is at most that of a settled one, divided by (1 + minutes of silence).
   */
  age(silentSeconds: number, nowMs: number): void {
    const { requestsPerSecond, evidence } = this.#state;
    const aged = Math.min(evidence, SETTLED_EVIDENCE) / (1 + silentSeconds / AGEING_SECONDS);
    this.#moveTo({ requestsPerSecond, evidence: aged }, nowMs);
  }

  /** Looks at counts up to `endMs`, shortest window first; true when the rate moved. */
  observe(windows: readonly ObservedWindow[], endMs: number): boolean {
    return this.#leave(windows, endMs) || this.#refine(windows.at(-1));
  }

  #leave(windows: readonly ObservedWindow[], endMs: number): boolean {
    const { requestsPerSecond } = this.#state;
    const isSurging = endMs - this.#surgedMs < SURGE_SECONDS * 1_000;
    const telling = mostTelling(windows, requestsPerSecond, this.#width(), isSurging);
    if (telling === undefined) {
      this.#shownBy = undefined;
      return false;
    }
    const sinceMs = endMs - telling.seconds * 1000;
    const expected = requestsPerSecond * telling.seconds;
    const isRise = telling.count > expected;
    if (!isRise && telling.seconds < LEAST_FALL_SECONDS) return false;
    if (isRise && (isSurging || isLarge(telling.count, expected))) {
      this.surgeTo(stateOf(telling), sinceMs);
      return true;
    }
    if (!isLarge(telling.count, expected)) {
      this.#shownBy ??= evidenceOf(telling);
      if (evidenceOf(telling) < SMALL_CHANGE_EVIDENCE * this.#shownBy) return false;
    }
    this.#moveTo(stateOf(telling), sinceMs);
    return true;
  }

  #moveTo(state: BandState, sinceMs: number): void {
    this.#state = state;
    this.#sinceMs = sinceMs;
    this.#shownBy = undefined;
  }

  #width(): number {
    return widthOf(this.#state.evidence);
  }

  #refine(longest: ObservedWindow | undefined): boolean {
    const { requestsPerSecond, evidence } = this.#state;
    if (longest === undefined || evidence >= SETTLED_EVIDENCE || evidenceOf(longest) < 2 * evidence)
      return false;
    const measured = stateOf(longest);
    const moves =
      Math.abs(measured.requestsPerSecond - requestsPerSecond) >
      widthOf(measured.evidence) * measured.requestsPerSecond;
    this.#state = moves ? measured : { requestsPerSecond, evidence: measured.evidence };
    return moves;
  }
}

/** Whether counts show a large rise beyond doubt over a rate that is known; which window tells most of it. */
export function surge(
  windows: readonly ObservedWindow[],
  requestsPerSecond: number,
): ObservedWindow | undefined {
  const telling = mostTelling(windows, requestsPerSecond, LEAST_WIDTH);
  if (telling === undefined) return undefined;
  const expected = requestsPerSecond * telling.seconds;
  return telling.count > expected && isLarge(telling.count, expected) ? telling : undefined;
}

/** The window that is outside of the band beyond doubt, and furthest from the rate; undefined when none is. */
function mostTelling(
  windows: readonly ObservedWindow[],
  requestsPerSecond: number,
  width: number,
  isSurging = false,
): ObservedWindow | undefined {
  let most = 0;
  let telling: ObservedWindow | undefined;
  for (const window of windows) {
    const sigmas = sigmasAway(window, requestsPerSecond, width, isSurging);
    if (sigmas > most) {
      most = sigmas;
      telling = window;
    }
  }
  return telling;
}

/** Standard deviations between a count and the rate; 0 while it may belong to the band. */
function sigmasAway(
  window: ObservedWindow,
  requestsPerSecond: number,
  width: number,
  isSurging: boolean,
): number {
  const { seconds, count, dispersion } = window;
  // A mean below one request would make a single one a surprise.
  const mean = Math.max(requestsPerSecond * seconds, 1);
  const isRise = count > mean * (1 + width);
  const isFall = count < mean * (1 - width);
  if (seconds < LEAST_RISE_SECONDS || (!isRise && !isFall)) return 0;
  const edge = mean * (isRise ? 1 + width : 1 - width);
  const sigmas = rootDeviance(count, mean, dispersion);
  const hasEnough = Math.max(count, mean) >= LARGE_CHANGE_COUNT * dispersion;
  const [fromRate, fromEdge] =
    isRise && isSurging
      ? [SURGE_SIGMAS_FROM_RATE, SURGE_SIGMAS_FROM_EDGE]
      : hasEnough && isLarge(count, mean)
        ? [LARGE_SIGMAS_FROM_RATE, LARGE_SIGMAS_FROM_EDGE]
        : [SIGMAS_FROM_RATE, SIGMAS_FROM_EDGE];
  return rootDeviance(count, edge, dispersion) > fromEdge && sigmas > fromRate ? sigmas : 0;
}

function isLarge(count: number, mean: number): boolean {
  return Math.abs(count - mean) > LARGE_CHANGE * mean;
}

function evidenceOf({ count, dispersion }: ObservedWindow): number {
  return count / dispersion;
}

function stateOf(window: ObservedWindow): BandState {
  return { requestsPerSecond: window.count / window.seconds, evidence: evidenceOf(window) };
}

function widthOf(evidence: number): number {
  return Math.min(LARGEST_WIDTH, Math.max(LEAST_WIDTH, 2 / Math.sqrt(evidence)));
}

/**
 * Root of the deviance of a count from its mean, over its dispersion (the quasi-Poisson model): close to a normal
 * deviate even for small counts.
 */
function rootDeviance(count: number, mean: number, dispersion: number): number {
  const deviance = count === 0 ? mean : count * Math.log(count / mean) - (count - mean);
  return Math.sqrt(Math.max(0, 2 * deviance) / dispersion);
}
