import { knowsLatency, staySeconds } from '../../profiles/curves.js';
import { type Profile, type TokenMix, workSeconds } from '../../profiles/profile.js';

/** What a profile is asked for at most: all work is done at this utilisation, and what comes on top waits. */
const FULL_RHO = 0.98;

/**
 * Utilisation of a replica that has this many requests, by Little's law: where arrivals times the time each stays give
 * that number; at most 0.98. Undefined when the profile does not tell.
 */
export function rhoOf(requests: number, profile: Profile, mix: TokenMix): number | undefined {
  const work = workSeconds(profile, mix);
  if (!(work > 0) || !knowsLatency(profile)) return undefined;
  let low = 0;
  let high = FULL_RHO;
  for (let step = 0; step < 30; step++) {
    const rho = (low + high) / 2;
    if ((rho / work) * staySeconds(profile, rho, mix) < requests) low = rho;
    else high = rho;
  }
  return high;
}

/** Requests that a replica has which is full: all its work gets done, and no more would. */
export function fullRequests(profile: Profile, mix: TokenMix): number {
  return (FULL_RHO / workSeconds(profile, mix)) * staySeconds(profile, FULL_RHO, mix);
}

/** Seconds that a replica with this many requests needs for those that find no room beside the ones it can serve. */
export function queueSeconds(requests: number, profile: Profile, mix: TokenMix): number {
  return Math.max(0, requests * workSeconds(profile, mix) - staySeconds(profile, FULL_RHO, mix));
}

/** No engine is taken for more times slower than this, or for faster. */
const MOST_SLOWNESS = 20;
const SLOWNESS_STEPS = 16;

/**
 * How many times slower than its profile an engine is, 1..20, whose requests take `observedSeconds` while it gets done
 * `doneRho` of what its profile says it can. One that is s times slower takes s times as long at s times the utilisation,
 * so this is what is left when load has explained its part. `secondsAt`: by the profile, at a utilisation.
 */
export function slownessOf(
  observedSeconds: number,
  doneRho: number,
  secondsAt: (rho: number) => number,
): number {
  let low = 1;
  let high = MOST_SLOWNESS;
  for (let step = 0; step < SLOWNESS_STEPS; step++) {
    const slowness = Math.sqrt(low * high);
    if (slowness * secondsAt(slowness * doneRho) < observedSeconds) low = slowness;
    else high = slowness;
  }
  return low;
}
