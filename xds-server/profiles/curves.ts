import type { Profile, TokenMix } from './profile.js';

/**
 * The curves of a profile as functions of utilisation. Each is split into a part without load and a queueing delay, and
 * the delays are continued beyond the fitted range so that `rho * delay(rho)` goes on along its tangent: it stays
 * convex and finite, which the optimizer needs, and never claims less delay than at the end of the range.
 */

/** No curve with a pole at 1 is believed beyond this utilisation. */
const LAST_RHO = 0.98;

/** Whether a profile tells how long anything takes; one of only a rate does not. */
export function knowsLatency(profile: Profile): boolean {
  return profile.ttft.baseSeconds + profile.tbot.baseSeconds > 0;
}

/** Where the curves of a profile are continued by a tangent. */
export function endOfCurves(profile: Profile): number {
  return Math.min(profile.maxFittedRho, LAST_RHO);
}

/** Seconds to the first token on an idle engine, for a prompt with this many tokens to compute. */
export function idleTtftSeconds(profile: Profile, uncachedPromptTokens: number): number {
  return profile.ttft.baseSeconds + profile.ttft.secondsPerUncachedPromptToken * uncachedPromptTokens;
}

/** Seconds between two tokens on an idle engine. */
export function idleTbotSeconds(profile: Profile): number {
  return profile.tbot.baseSeconds;
}

/** Seconds that the queue adds to the first token: `queueSeconds * rho / (1 - rho)`. */
export function ttftDelaySeconds(profile: Profile, rho: number): number {
  return profile.ttft.queueSeconds * poleDelay(1, rho, endOfCurves(profile));
}

/** Seconds that a fuller batch adds between two tokens: `baseSeconds * (1 / (1 - kappa * rho) - 1)`. */
export function tbotDelaySeconds(profile: Profile, rho: number): number {
  return profile.tbot.baseSeconds * poleDelay(profile.tbot.kappa, rho, endOfCurves(profile));
}

/** Expected seconds to the first token. */
export function ttftSeconds(profile: Profile, rho: number, uncachedPromptTokens: number): number {
  return idleTtftSeconds(profile, uncachedPromptTokens) + ttftDelaySeconds(profile, rho);
}

/** Expected seconds between two tokens. */
export function tbotSeconds(profile: Profile, rho: number): number {
  return idleTbotSeconds(profile) + tbotDelaySeconds(profile, rho);
}

/** Expected seconds that a request spends in an engine, from its arrival to its last token. */
export function staySeconds(profile: Profile, rho: number, mix: TokenMix): number {
  return (
    ttftSeconds(profile, rho, mix.uncachedPromptTokens) +
    Math.max(0, mix.outputTokens - 1) * tbotSeconds(profile, rho)
  );
}

/** `k rho / (1 - k rho)` up to `end`; beyond, what makes `rho` times it a straight line with the slope at `end`. */
function poleDelay(k: number, rho: number, end: number): number {
  if (rho <= end) return (k * rho) / (1 - k * rho);
  const rest = 1 - k * end;
  const load = (k * end * end) / rest;
  const slope = 1 / (rest * rest) - 1;
  return (load + slope * (rho - end)) / rho;
}
