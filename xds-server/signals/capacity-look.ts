import { type Profile, type TokenMix, workSeconds } from '../profiles/profile.js';
import type { EngineTraffic } from './engine-traffic.js';
import { fullRequests, knowsLatency, rhoOf, stayAt } from './load-by-profile.js';
import type { RequestsHeld } from './requests-held.js';

/** Long beside the time that requests stay, and if it need not be too long, enough for this many answers. */
const STAYS = 2;
const ENOUGH_ANSWERS = 400;
const LEAST_SECONDS = 5;
const LONGEST_SECONDS = 55;
/** Fewer requests than these under way tell nothing. */
const LEAST_HELD = 3;
/** Where no page tells of a queue, this many times as many requests as by the profile are one. */
const SURELY_FULL = 2;

/** What an engine held and got done over some time. */
export interface CapacityLook {
  readonly seconds: number;
  readonly answers: number;
  /** Whether most answers told how much of their prompts was in a cache, so that what was not counts as work. */
  readonly knowsCache: boolean;
  /** Work done by what its replicas can do by the profile, and the most that it may have been: with cold prompts. */
  readonly doneRho: number;
  readonly mostRho: number;
  /** 0..0.98, utilisation by the profile that as many requests as it held stand for. */
  readonly heldRho: number;
  /** All the time there were more requests than the profile says of a full engine, and a queue. */
  readonly isFull: boolean;
}

/**
 * Looks at an engine that has had these ready replicas for long enough, and nothing else to do. `hasQueue`: whether its
 * pages say that every replica had requests waiting all the time; undefined when they do not tell. Undefined when there
 * is too little to tell.
 */
export function capacityLook(
  { held, traffic, replicas, steadySeconds, profile, mix }: CapacitySource,
  hasQueue: (seconds: number) => boolean | undefined,
  nowMs: number,
): CapacityLook | undefined {
  const work = workSeconds(profile, mix);
  if (replicas === 0 || !(work > 0) || !knowsLatency(profile)) return undefined;
  const forCount = Math.min(LONGEST_SECONDS, (ENOUGH_ANSWERS * work) / replicas);
  const seconds = Math.ceil(Math.max(LEAST_SECONDS, forCount, STAYS * stayAt(profile, mix, 1)));
  if (seconds > LONGEST_SECONDS || seconds > steadySeconds) return undefined;
  const least = held.least(seconds, nowMs);
  if (least === undefined) return undefined;
  const rates = traffic.rates(nowMs, seconds);
  const mean = held.mean(seconds, nowMs) - rates.networkSeconds;
  if (mean < LEAST_HELD) return undefined;
  const queue = hasQueue(seconds);
  const full = replicas * fullRequests(profile, mix) * (queue === undefined ? SURELY_FULL : 1);
  return {
    seconds,
    answers: rates.answered * seconds,
    knowsCache: rates.toldAnswers > rates.answered / 2,
    doneRho: rates.answeredWorkSeconds / replicas,
    mostRho: rates.coldWorkSeconds / replicas,
    heldRho: rhoOf(mean / replicas, profile, mix)!,
    isFull: queue !== false && least - rates.networkSeconds >= full,
  };
}

export interface CapacitySource {
  readonly held: RequestsHeld;
  readonly traffic: EngineTraffic;
  readonly replicas: number;
  /** For how long these have been its replicas. */
  readonly steadySeconds: number;
  readonly profile: Profile;
  readonly mix: TokenMix;
}

/**
 * The share of the profile's capacity that a look says an engine has. What a full one gets done is it. With room, a
 * profile whose times are all wrong by one factor is right about how many requests stand for which utilisation (Little's
 * law), so the utilisation by work done, which is not, differs from that by the factor.
 */
export function shareOf({ doneRho, heldRho, isFull }: CapacityLook): number {
  return isFull ? doneRho : doneRho / Math.max(heldRho, 1e-3);
}
