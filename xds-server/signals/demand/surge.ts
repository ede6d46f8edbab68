import type { ObservedWindow } from './rate-series.js';

/** Growth that is looked for, and the largest that is no surge. */
const SURGE = 1.5;
const SMALL_RISE = 1.2;
/**
 * Log-likelihood by which a surge must explain counts better than the rate, and better than a small rise: what steady
 * traffic and a lasting rise by a fifth are taken for by chance. `npm run bench -- demand` shows what they do.
 */
const ENOUGH_OVER_STEADY = 10;
const ENOUGH_OVER_SMALL = 2.5;
/** What shows within so many seconds must be clearer by so much: there is time to look again. */
const EARLY_SECONDS = 2.5;
const MORE_WHILE_EARLY = 1.5;
/** Below this rate no surge shows within seconds, so there is no hurry: it must be clearer, by so much at a rate near 0. */
const HURRIED_RPS = 40;
const MORE_WITHOUT_HURRY = 2.5;
/** Shorter bursts are no demand, and neither is what a few requests (times the dispersion) look like. */
const LEAST_SECONDS = 2;
const LEAST_COUNT = 150;
/** Requests that were held up for so long and then came together are as many as they would have been. */
const HELD_UP_SECONDS = 10;
/** Standard deviations by which requests must lack before a window to have been held up. */
const HELD_UP_SIGMAS = 3;
/** What a surge is compared with is the rate of so many seconds at most. */
const BEFORE_SECONDS = 512;
/** The held rate counts for so many requests at most, beside those that were counted before a window. */
const HELD_EVIDENCE = 400;

/** A frontend that is so close to being found to surge is asked for its next report soon. */
export const URGENT_STRENGTH = 0.3;

/** A rate that is known, and how well: the count that it was measured on; and half the width of its band, as a share. */
export interface KnownRate {
  readonly requestsPerSecond: number;
  readonly evidence: number;
  readonly width: number;
  /** Rates that are looked at side by side, this one among them. */
  readonly rows: number;
}

export interface SurgeSign {
  /** Share of what it takes to believe in a surge: 1 and more is enough. */
  readonly strength: number;
  /** Since when the surge most likely lasts. */
  readonly window: ObservedWindow | undefined;
}

/**
 * What counts say for a surge by half. A sequential test, Page's CUSUM: the largest log-likelihood ratio over all times
 * at which the surge may have begun, in the quasi-Poisson model (divided by the dispersion). At the same rate of false
 * alarms no test finds a change much sooner (Lorden 1971). The second ratio is that of Wald's test
 * between a surge and the likeliest small rise, which any time may have begun as well.
 */
export function surgeSign(windows: readonly ObservedWindow[], known: KnownRate): SurgeSign {
  const longest = windows.findLast(({ seconds }) => seconds <= BEFORE_SECONDS);
  let window: ObservedWindow | undefined;
  let surge = 0;
  let small = 0;
  for (const each of windows) {
    if (longest === undefined || each.seconds < LEAST_SECONDS) continue;
    // What came before must say more of the rate than the window does.
    if (each.count > longest.count - each.count + heldEvidence(known)) continue;
    const mean = meanOf(each, longest, known);
    const asSurge = gain({ ...each, count: each.count - heldUp(each, windows, mean) }, mean, SURGE);
    small = Math.max(small, gain(each, mean, Math.min(SMALL_RISE, Math.max(1, each.count / mean))));
    if (asSurge <= surge || each.count < LEAST_COUNT * each.dispersion) continue;
    surge = asSurge;
    window = each;
  }
  // Steady traffic reaches a log-likelihood with a chance that falls like its exponential, and every row is one more try: so
  // much more for each makes all rows together one try (Bonferroni). Twice that keeps them rare beside their sum, which is
  // judged by itself: the dispersion of a row is known less well.
  const enough = ENOUGH_OVER_STEADY + 2 * Math.log(known.rows);
  const more = window === undefined ? 0 : moreFor(window, known.requestsPerSecond);
  const strength = Math.min(surge / (enough + more), (surge - small) / (ENOUGH_OVER_SMALL + more));
  return { strength: Math.max(0, strength), window };
}

/** How much more a surge must show that has lasted for a window, at a rate. */
function moreFor({ seconds }: ObservedWindow, requestsPerSecond: number): number {
  const early = seconds < EARLY_SECONDS ? MORE_WHILE_EARLY : 0;
  return early + MORE_WITHOUT_HURRY * Math.max(0, 1 - requestsPerSecond / HURRIED_RPS);
}

/**
 * Requests of a window that came late, since there were too few just before it to be chance: of a caller or a network
 * that had stood still for a moment.
 */
function heldUp(window: ObservedWindow, windows: readonly ObservedWindow[], mean: number): number {
  let most = 0;
  for (const { seconds, count } of windows) {
    const before = seconds - window.seconds;
    if (before <= 0 || before > HELD_UP_SECONDS) continue;
    const expected = (mean * before) / window.seconds;
    const lacking = expected - (count - window.count);
    const isChance = lacking <= HELD_UP_SIGMAS * Math.sqrt(expected * window.dispersion);
    if (!isChance) most = Math.max(most, lacking);
  }
  return most;
}

/** Log-likelihood that a rate grown by `factor` gains over the rate that `mean` requests are expected at. */
function gain({ count, dispersion }: ObservedWindow, mean: number, factor: number): number {
  return (count * Math.log(factor) - (factor - 1) * mean) / dispersion;
}

/**
 * Requests that a window would have at the rate from before it: within the band, where what was counted says. A mean
 * below one request would make a single one a surprise.
 */
function meanOf(window: ObservedWindow, longest: ObservedWindow, known: KnownRate): number {
  const { requestsPerSecond, width } = known;
  const held = heldEvidence(known);
  const rate =
    (longest.count - window.count + held) /
    (longest.seconds - window.seconds + held / Math.max(requestsPerSecond, Number.MIN_VALUE));
  const within = Math.min(requestsPerSecond * (1 + width), Math.max(requestsPerSecond * (1 - width), rate));
  return Math.max(1, within * window.seconds);
}

function heldEvidence({ evidence }: KnownRate): number {
  return Math.min(HELD_EVIDENCE, evidence);
}
