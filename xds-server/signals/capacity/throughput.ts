import { knowsLatency, staySeconds } from '../../profiles/curves.js';
import { type Profile, type TokenMix, workSeconds } from '../../profiles/profile.js';
import type { EngineTraffic } from './engine-traffic.js';
import { rhoOf } from './load-by-profile.js';
import type { RequestsHeld } from './requests-held.js';

/** Requests come out as they came in only over times that are long beside that which they stay. */
const STAYS = 2;
const LEAST_SECONDS = 5;
const LONGEST_SECONDS = 55;
/** Fewer requests than these under way tell nothing. */
const LEAST_REQUESTS = 3;
/** Standard deviations of the answers counted, by which what an engine gets done is sure. */
export const SURE_SIGMAS = 2;
/** What is said of an engine that gets nothing done at all. */
const MOST_EXCESS = 20;

/** How long requests stay in an engine, by how many it holds and how many it gets done. */
export interface Stay {
  /** Requests that ended. */
  readonly answers: number;
  /** Seconds, by Little's law: requests held ÷ requests done per second. */
  readonly observedSeconds: number;
  /** Seconds that as many requests stay in an engine of this profile. */
  readonly expectedSeconds: number;
}

/**
 * Compares what an engine gets done with what its profile gets done that holds as many requests: a busy engine that is
 * as fast as ever has many requests and does many. The fewest requests of the time count, so that a burst that has just
 * come in is no reason to expect anything. Undefined when there is too little to tell.
 */
export function stayOf(
  held: RequestsHeld,
  traffic: EngineTraffic,
  capacity: number,
  profile: Profile,
  mix: TokenMix,
  nowMs: number,
): Stay | undefined {
  const work = workSeconds(profile, mix);
  const seconds = tellingSeconds(profile, mix);
  if (capacity === 0 || seconds === undefined) return undefined;
  const rates = traffic.rates(nowMs, seconds);
  const least = held.least(seconds, nowMs);
  if (least === undefined) return undefined;
  const requests = least - rates.networkSeconds;
  if (requests < LEAST_REQUESTS) return undefined;
  const rho = rhoOf(requests / capacity, profile, mix)!;
  const expectedSeconds = Math.max(staySeconds(profile, rho, mix), (requests / capacity) * work);
  const doneRho = rates.endedWorkSeconds / capacity;
  const excess = Math.min(MOST_EXCESS, rho / Math.max(doneRho, 1e-9));
  return { answers: rates.ended * seconds, observedSeconds: excess * expectedSeconds, expectedSeconds };
}

/** How slow an engine can be at most. */
export interface SlownessLimit {
  /** Times slower than its profile. */
  readonly slowness: number;
  /** Since when it got done what shows it. */
  readonly sinceMs: number;
}

/**
 * An engine that surely gets a share of its profile's work done, over as long as it takes to tell, is no slower than that makes
 * it. `capacity` is what its profile gives it. Undefined where nothing can be said.
 */
export function slownessLimit(
  traffic: EngineTraffic,
  capacity: number,
  profile: Profile,
  mix: TokenMix,
  nowMs: number,
): SlownessLimit | undefined {
  const seconds = tellingSeconds(profile, mix);
  if (capacity === 0 || seconds === undefined) return undefined;
  const { answered, answeredWorkSeconds } = traffic.rates(nowMs, seconds);
  const rho = surelyDone(answeredWorkSeconds / capacity, answered * seconds);
  // The present second does not count yet.
  return rho === 0 ? undefined : { slowness: 1 / rho, sinceMs: nowMs - (seconds + 1) * 1_000 };
}

/** What of a rate of work is beyond doubt that so many answers make. */
export function surelyDone(rho: number, answers: number): number {
  return rho * Math.max(0, 1 - SURE_SIGMAS / Math.sqrt(Math.max(1, answers)));
}

/** Undefined where requests stay too long, or their work or times are not known. */
function tellingSeconds(profile: Profile, mix: TokenMix): number | undefined {
  if (!(workSeconds(profile, mix) > 0) || !knowsLatency(profile)) return undefined;
  const seconds = Math.max(LEAST_SECONDS, Math.ceil(STAYS * staySeconds(profile, 1, mix)));
  return seconds > LONGEST_SECONDS ? undefined : seconds;
}
