import type { ObservedWindow } from './rate-series.js';
import { type KnownRate, type SurgeSign, surgeSign } from './surge.js';

/** Least half-width of a band, as a share of the rate. */
const LEAST_WIDTH = 0.05;
const LARGEST_WIDTH = 0.5;
/**
 * Standard deviations that a count must lie from the rate, and from the edge of its band, to be taken for a change.
 * Windows are looked at with every report, twice a second, so these are high enough that steady traffic moves a settled
 * rate less than once in hours. Surges are found sooner, by a test of their own.
 */
const SIGMAS_FROM_RATE = 5.5;
const SIGMAS_FROM_EDGE = 4;
/** A fall this large is believed on less evidence, once a window holds enough requests. */
const LARGE_CHANGE = 0.4;
/** A fall is treated as large when its estimate, which is less than what was counted, still is. */
const LARGE_ESTIMATE = 0.32;
const LARGE_CHANGE_COUNT = 150;
const LARGE_SIGMAS_FROM_RATE = 4.5;
const LARGE_SIGMAS_FROM_EDGE = 3;
/** After a large rise more of the same is expected: conversations that begin together go on together. */
const SURGE_SECONDS = 30;
const SURGE_SIGMAS_FROM_RATE = 3;
const SURGE_SIGMAS_FROM_EDGE = 1;
/** A rise is believed within seconds, a fall when it has lasted: too little demand hurts more than too much. */
const LEAST_RISE_SECONDS = 2;
const LEAST_FALL_SECONDS = 10;
/** The end of a burst that was taken for a surge just before: until it is believed, requests are refused that have room. */
const LEAST_FALL_AFTER_SURGE_SECONDS = 4;
/** A rise that is not large is believed when it has lasted this long. */
const LEAST_SMALL_RISE_SECONDS = 4;
/**
 * Any small change must be known so well that there is one good move, not two: by so much evidence, when it began
 * included; or, with less, by so many standard deviations (such a change is larger, and need not be known as well); or by fewer of
 * them after the longest wait. The surer a change must be on little evidence, the more chance has flattered it.
 */
const EVIDENCE_OF_SMALL_CHANGE = 3_000;
const SIGMAS_OF_KNOWN_CHANGE = 12;
const SIGMAS_OF_SMALL_CHANGE = 8;
const LONGEST_WAIT_SECONDS = 512;
/** Mean of a change of a rate, as a share of it, before anything is known of it: small ones are likelier. */
const USUAL_CHANGE = 0.1;
/** Starts of a change are left out that are less likely than the likeliest by more than this, as a logarithm. */
const LEAST_LOG_LIKELIHOOD = -14;
/** Standard deviations by which a better known rate must differ to replace a young one, and by which no window may differ from it. */
const SIGMAS_TO_REFINE = 2.5;
/** The same of the rate of a surge that has just begun: it is known little, and requests may be refused by it. */
const SIGMAS_TO_REFINE_SURGE = 1.5;
/** What a first measurement is refined by at least; one of a small change is left alone within the band, so that it stays one move. */
const LEAST_FIRST_REFINEMENT = 0.025;
/** A rate is young for as long as counts reach back to its beginning. */
const YOUNG_SECONDS = 1_000;
/** From this evidence on, four standard deviations are within `LEAST_WIDTH`, and the rate is taken as known. */
export const SETTLED_EVIDENCE = (4 / LEAST_WIDTH) ** 2;

/** A rate of which nothing was heard for this long is half as well known. */
const AGEING_SECONDS = 60;

/** A rate, and how well it is known: the count that it was measured on over its dispersion; infinite if configured. */
export interface BandState {
  readonly requestsPerSecond: number;
  readonly evidence: number;
}

/** How a rate moved: by a large change, or by a small one or because it is better known. */
export type Move = 'large' | 'small';

/** The larger of two moves. */
export function larger(a: Move | undefined, b: Move | undefined): Move | undefined {
  return a === 'large' ? a : (b ?? a);
}

/**
 * Holds a rate still while counts agree with it: within max(5 %, two standard deviations of the count that it was
 * measured on). It moves only
 * - when recent counts show a surge, or lie outside the band beyond doubt: at once if it goes on with a surge, and if
 *   not when it is known well; or
 * - while it is young, when twice as many counts differ from it by more than they are likely to be wrong.
 */
export class DemandBand {
  #state: BandState;
  /** Counts from before belong to another rate. */
  #sinceMs = Number.NEGATIVE_INFINITY;
  #surgedMs = Number.NEGATIVE_INFINITY;
  /** Share by which a better measurement must differ at least. */
  #leastRefinement = LEAST_FIRST_REFINEMENT;

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

  /** What counts say for a surge, of one of so many `rows`. */
  sign(windows: readonly ObservedWindow[], rows: number): SurgeSign {
    return surgeSign(windows, this.#known(rows));
  }

  /** Looks at counts up to `endMs`, shortest window first, of one of so many `rows`; how the rate moved, if it did. */
  observe(windows: readonly ObservedWindow[], endMs: number, rows: number): Move | undefined {
    return this.#leave(windows, endMs, rows) ?? this.#refine(windows, endMs);
  }

  #leave(windows: readonly ObservedWindow[], endMs: number, rows: number): Move | undefined {
    const isSurging = this.#isSurging(endMs);
    const change = changeOf(windows, this.#known(rows), isSurging);
    if (change === undefined) return undefined;
    const { to, isRise, seconds } = change;
    const sinceMs = endMs - seconds * 1_000;
    if (isRise && (isSurging || change.isLarge)) {
      this.surgeTo(to, sinceMs);
      return 'large';
    }
    if (seconds < leastSeconds(change, isSurging)) return undefined;
    if (!change.isLarge && !isWellKnown(change)) return undefined;
    this.#moveTo(to, sinceMs);
    if (!change.isLarge) this.#leastRefinement = LEAST_WIDTH;
    return change.isLarge ? 'large' : 'small';
  }

  #isSurging(nowMs: number): boolean {
    return nowMs - this.#surgedMs < SURGE_SECONDS * 1_000;
  }

  #moveTo(state: BandState, sinceMs: number): void {
    this.#state = state;
    this.#sinceMs = sinceMs;
    this.#leastRefinement = LEAST_FIRST_REFINEMENT;
  }

  #known(rows: number): KnownRate {
    return { ...this.#state, width: widthOf(this.#state.evidence), rows };
  }

  #refine(windows: readonly ObservedWindow[], endMs: number): Move | undefined {
    const { requestsPerSecond, evidence } = this.#state;
    const longest = windows.at(-1);
    const isYoung = evidence < SETTLED_EVIDENCE && endMs - this.#sinceMs < YOUNG_SECONDS * 1_000;
    if (longest === undefined || !isYoung || evidenceOf(longest) < 2 * evidence) return undefined;
    const measured = stateOf(longest);
    // Counts from before and after a change are of no one rate: what has become of it is told by the test for changes.
    if (windows.some((window) => sigmasFrom(window, measured.requestsPerSecond) > SIGMAS_TO_REFINE))
      return undefined;
    const sigmas = this.#isSurging(endMs) ? SIGMAS_TO_REFINE_SURGE : SIGMAS_TO_REFINE;
    const moves =
      Math.abs(measured.requestsPerSecond - requestsPerSecond) >
      Math.max(this.#leastRefinement, sigmas / Math.sqrt(measured.evidence)) * measured.requestsPerSecond;
    this.#state = moves ? measured : { requestsPerSecond, evidence: measured.evidence };
    return moves ? 'small' : undefined;
  }

  save() {
    return {
      state: this.#state,
      sinceMs: this.#sinceMs,
      surgedMs: this.#surgedMs,
      leastRefinement: this.#leastRefinement,
    };
  }

  restore({ state, sinceMs, surgedMs, leastRefinement }: SavedDemandBand): void {
    this.#state = state;
    this.#sinceMs = sinceMs;
    this.#surgedMs = surgedMs;
    this.#leastRefinement = leastRefinement;
  }
}

type SavedDemandBand = ReturnType<DemandBand['save']>;

/** How long a change that is no surge must have lasted to be believed. */
function leastSeconds({ isRise, isLarge }: Change, isSurging: boolean): number {
  if (isRise) return LEAST_SMALL_RISE_SECONDS;
  return isLarge && isSurging ? LEAST_FALL_AFTER_SURGE_SECONDS : LEAST_FALL_SECONDS;
}

/** Whether a change that is not large is known so well that one move will do. */
function isWellKnown({ to, seconds, sigmas }: Change): boolean {
  if (to.evidence >= EVIDENCE_OF_SMALL_CHANGE) return true;
  if (sigmas < SIGMAS_OF_SMALL_CHANGE) return false;
  return sigmas >= SIGMAS_OF_KNOWN_CHANGE || seconds >= LONGEST_WAIT_SECONDS;
}

/** What counts say has become of a rate. */
export interface Change {
  readonly to: BandState;
  /** How long ago it most likely began: the length of a window. */
  readonly seconds: number;
  /** Standard deviations of the count since then from the former rate. */
  readonly sigmas: number;
  readonly isRise: boolean;
  readonly isLarge: boolean;
}

/** A rate of all rows together, known as well as a settled one. */
export function settled(requestsPerSecond: number): KnownRate {
  return { requestsPerSecond, evidence: SETTLED_EVIDENCE, width: LEAST_WIDTH, rows: 1 };
}

/** The large rise over a rate that is known, if counts show one beyond doubt. */
export function surge(windows: readonly ObservedWindow[], known: KnownRate): Change | undefined {
  const change = changeOf(windows, known, false);
  return change?.isRise && change.isLarge ? change : undefined;
}

/**
 * The change of a rate that counts show beyond doubt, if they do. Chance chooses the window that shows it first, which
 * flatters it. So the new rate is the mean over all times at which the change may have begun, by their likelihood, and a
 * rise is taken for as much smaller as it must be when small ones are likelier (an exponential prior, for usual rises).
 */
function changeOf(
  windows: readonly ObservedWindow[],
  known: KnownRate,
  isSurging: boolean,
): Change | undefined {
  const { requestsPerSecond, width } = known;
  const sign = surgeSign(windows, known);
  const isSurge = sign.strength >= 1;
  const shown = isSurge ? sign.window : mostTelling(windows, requestsPerSecond, width, isSurging);
  if (shown === undefined) return undefined;
  const isRise = shown.count > requestsPerSecond * shown.seconds;
  const starts = possibleStarts(windows, requestsPerSecond, width, isRise);
  const likeliest = starts.reduce((best, start) => (start.deviance > best.deviance ? start : best));
  let sum = 0;
  let rate = 0;
  let square = 0;
  for (const { window, deviance, span } of starts) {
    const log = (deviance - likeliest.deviance) / 2;
    if (log < LEAST_LOG_LIKELIHOOD) continue;
    const likelihood = span * Math.exp(log);
    const flattery = isRise ? flatteryOf(window, requestsPerSecond) : 0;
    const each = Math.max(0, window.count - flattery) / window.seconds;
    sum += likelihood;
    rate += likelihood * each;
    square += likelihood * (each ** 2 + (each * window.dispersion) / window.seconds);
  }
  const mean = rate / sum;
  const to = { requestsPerSecond: mean, evidence: mean > 0 ? mean ** 2 / (square / sum - mean ** 2) : 0 };
  if (isRise && to.requestsPerSecond < requestsPerSecond * (1 + width)) return undefined;
  return {
    to,
    seconds: likeliest.window.seconds,
    sigmas: sigmasFrom(likeliest.window, requestsPerSecond),
    isRise,
    isLarge: isRise ? isSurge : to.requestsPerSecond < requestsPerSecond * (1 - LARGE_ESTIMATE),
  };
}

/** Requests that a rise has likely got by chance: fewer once it is far beyond the usual. */
function flatteryOf({ seconds, count, dispersion }: ObservedWindow, requestsPerSecond: number): number {
  if (requestsPerSecond === 0) return 0;
  const rise = count / (seconds * requestsPerSecond) - 1;
  return dispersion / (USUAL_CHANGE * Math.max(1, rise / LARGE_CHANGE) ** 2);
}

/** A time at which a change may have begun: where a window does, or up to `span` seconds later. */
interface Start {
  readonly window: ObservedWindow;
  readonly span: number;
  /** How much better a change at this time explains all counts than the rate does; twice a log-likelihood. */
  readonly deviance: number;
}

function possibleStarts(
  windows: readonly ObservedWindow[],
  requestsPerSecond: number,
  width: number,
  isRise: boolean,
): readonly Start[] {
  const longest = windows.at(-1);
  return windows.flatMap((window, at) => {
    const { seconds, count } = window;
    if (seconds < LEAST_RISE_SECONDS || count > requestsPerSecond * seconds !== isRise) return [];
    const span = seconds - (windows[at - 1]?.seconds ?? 0);
    const before = longest === undefined ? 0 : devianceInBand(longest, window, requestsPerSecond, width);
    return [{ window, span, deviance: sigmasFrom(window, requestsPerSecond) ** 2 + before }];
  });
}

/**
 * What the best rate within the band explains of the counts before a window. Without it a steady rate that is a little
 * off the held one, as the band allows, makes a change seem to have begun long ago and thus to be small.
 */
function devianceInBand(
  longest: ObservedWindow,
  window: ObservedWindow,
  requestsPerSecond: number,
  width: number,
): number {
  const mean = requestsPerSecond * (longest.seconds - window.seconds);
  if (mean < 1) return 0;
  const count = Math.max(0, longest.count - window.count);
  const best = Math.min(mean * (1 + width), Math.max(mean * (1 - width), count));
  const { dispersion } = longest;
  return rootDeviance(count, mean, dispersion) ** 2 - rootDeviance(count, best, dispersion) ** 2;
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
  const mean = meanOf(window, requestsPerSecond);
  const isRise = count > mean * (1 + width);
  const isFall = count < mean * (1 - width);
  if (seconds < LEAST_RISE_SECONDS || (!isRise && !isFall)) return 0;
  const edge = mean * (isRise ? 1 + width : 1 - width);
  const sigmas = sigmasFrom(window, requestsPerSecond);
  const isLargeFall = mean >= LARGE_CHANGE_COUNT * dispersion && count < mean * (1 - LARGE_CHANGE);
  const [fromRate, fromEdge] =
    isRise && isSurging
      ? [SURGE_SIGMAS_FROM_RATE, SURGE_SIGMAS_FROM_EDGE]
      : isLargeFall
        ? [LARGE_SIGMAS_FROM_RATE, LARGE_SIGMAS_FROM_EDGE]
        : [SIGMAS_FROM_RATE, SIGMAS_FROM_EDGE];
  return rootDeviance(count, edge, dispersion) > fromEdge && sigmas > fromRate ? sigmas : 0;
}

function sigmasFrom(window: ObservedWindow, requestsPerSecond: number): number {
  return rootDeviance(window.count, meanOf(window, requestsPerSecond), window.dispersion);
}

/** A mean below one request would make a single one a surprise. */
function meanOf({ seconds }: ObservedWindow, requestsPerSecond: number): number {
  return Math.max(requestsPerSecond * seconds, 1);
}

function evidenceOf({ count, dispersion }: ObservedWindow): number {
  return count / dispersion;
}

function stateOf(window: ObservedWindow): BandState {
  return { requestsPerSecond: window.count / window.seconds, evidence: evidenceOf(window) };
}

function widthOf(evidence: number, sigmas = 2): number {
  return Math.min(LARGEST_WIDTH, Math.max(LEAST_WIDTH, sigmas / Math.sqrt(evidence)));
}

/**
 * Root of the deviance of a count from its mean, over its dispersion (the quasi-Poisson model): close to a normal
 * deviate even for small counts.
 */
function rootDeviance(count: number, mean: number, dispersion: number): number {
  const deviance = count === 0 ? mean : count * Math.log(count / mean) - (count - mean);
  return Math.sqrt(Math.max(0, 2 * deviance) / dispersion);
}
