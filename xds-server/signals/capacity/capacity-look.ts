import { knowsLatency, staySeconds } from '../../profiles/curves.js';
import { type Profile, type TokenMix, workSeconds } from '../../profiles/profile.js';
import type { EngineTraffic, Traffic } from './engine-traffic.js';
import { fullRequests, rhoOf } from './load-by-profile.js';
import type { RequestsHeld } from './requests-held.js';

/** A look spans so many times what requests stay, and enough time for so many answers, where that is not too long. */
const STAYS = 2;
const ENOUGH_ANSWERS = 400;
/** What is far off shows in fewer. */
const FEW_ANSWERS = 100;
const LEAST_SECONDS = 5;
const LONGEST_SECONDS = 55;
/** Fewer requests than these under way tell nothing when they are counted now and then; what answers took tells more. */
const LEAST_HELD = 3;
const LEAST_TIMED = 8;
const SPARSE_SECONDS = [5, 10, 20, 30] as const;
/** What times of answers may be off by. */
const TIMES_OFF_SECONDS = 0.005;
/** Where no page tells of a queue, this many times as many requests as by the profile are one. */
const SURELY_FULL = 2;
/** An engine slower than its like is full with as many requests as by the profile stand for this utilisation, if it gets done much less. */
const OUTLIER_HELD_RHO = 0.8;
const OUTLIER_DONE = 1 / 1.5;

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
  /**
   * All the time there were more requests than the profile says of a full engine, and a queue; or it is slower than its like
   * with nearly as many.
   */
  readonly isFull: boolean;
}

/**
 * Looks at an engine that has had these ready replicas for long enough, and nothing else to do. `hasQueue`: whether its
 * pages say that every replica had requests waiting all the time; undefined when they do not tell. Undefined when there
 * is too little to tell.
 */
export function capacityLook(
  { held, traffic, replicas, steadySeconds, profile, mix, isOutlier, isReduced }: CapacitySource,
  hasQueue: (seconds: number) => boolean | undefined,
  nowMs: number,
): CapacityLook | undefined {
  const work = workSeconds(profile, mix);
  if (replicas === 0 || !(work > 0) || !knowsLatency(profile)) return undefined;
  const shortest = Math.max(LEAST_SECONDS, STAYS * staySeconds(profile, 1, mix));
  // The recovery of an engine that gets few requests is to show soon.
  const isSparse = isReduced && held.mean(LEAST_SECONDS, nowMs) < LEAST_HELD;
  const enough = isOutlier && !isReduced ? FEW_ANSWERS : ENOUGH_ANSWERS;
  const forCount = isSparse
    ? secondsForTimed(traffic, nowMs)
    : Math.min(LONGEST_SECONDS, (enough * work) / replicas);
  const seconds = Math.ceil(Math.max(shortest, forCount));
  if (seconds > LONGEST_SECONDS || seconds > steadySeconds) return undefined;
  const least = held.least(seconds, nowMs);
  if (least === undefined) return undefined;
  const rates = traffic.rates(nowMs, seconds);
  const counted = held.mean(seconds, nowMs) - rates.networkSeconds;
  const mean = counted >= LEAST_HELD ? counted : isReduced ? timed(rates, seconds) : undefined;
  if (mean === undefined) return undefined;
  const rhoAt = (requests: number) => rhoOf(requests / replicas, profile, mix)!;
  const queue = hasQueue(seconds);
  const full = replicas * fullRequests(profile, mix) * (queue === undefined ? SURELY_FULL : 1);
  const leastHeld = least - rates.networkSeconds;
  const doneRho = rates.answeredWorkSeconds / replicas;
  const heldRho = rhoAt(mean);
  const isSlowAndFull =
    isOutlier && leastHeld >= LEAST_HELD && heldRho >= OUTLIER_HELD_RHO && doneRho < OUTLIER_DONE * heldRho;
  return {
    seconds,
    answers: rates.answered * seconds,
    knowsCache: rates.toldAnswers > rates.answered / 2,
    doneRho,
    mostRho: rates.coldWorkSeconds / replicas,
    heldRho,
    isFull: queue !== false && (leastHeld >= full || isSlowAndFull),
  };
}

/** Over how long there were enough answers with a time; the longest if there were not. */
function secondsForTimed(traffic: EngineTraffic, nowMs: number): number {
  const isEnough = (seconds: number) => traffic.rates(nowMs, seconds).timedAnswers * seconds >= LEAST_TIMED;
  return SPARSE_SECONDS.find(isEnough) ?? SPARSE_SECONDS.at(-1)!;
}

/** Requests under way by what answers took (Little's law), at most; undefined with too few. */
function timed({ timedAnswers, staySeconds }: Traffic, seconds: number): number | undefined {
  if (timedAnswers * seconds < LEAST_TIMED) return undefined;
  return staySeconds + timedAnswers * TIMES_OFF_SECONDS;
}

export interface CapacitySource {
  readonly held: RequestsHeld;
  readonly traffic: EngineTraffic;
  readonly replicas: number;
  /** For how long these have been its replicas. */
  readonly steadySeconds: number;
  readonly profile: Profile;
  readonly mix: TokenMix;
  /** Whether it is slower than its like at its load. */
  readonly isOutlier: boolean;
  /** Whether it is taken for less than its profile says, so that its recovery is looked for however few requests it gets. */
  readonly isReduced: boolean;
}

/**
 * The share of the profile's capacity that a look says an engine has. What a full one gets done is it. With room, a
 * profile whose times are all wrong by one factor is right about how many requests stand for which utilisation (Little's
 * law), so the utilisation by work done, which is not, differs from that by the factor.
 */
export function shareOf({ doneRho, heldRho, isFull }: CapacityLook): number {
  return isFull ? doneRho : doneRho / Math.max(heldRho, 1e-3);
}
