import type { EngineUsage } from '../../../wire/usage-report.js';
import { staySeconds, tbotSeconds, ttftSeconds } from '../../profiles/curves.js';
import { type Profile, type TokenMix, workSeconds } from '../../profiles/profile.js';
import { queueSeconds, rhoOf, slownessOf } from '../capacity/load-by-profile.js';
import type { LatencySample } from './latency-samples.js';

/** Of what answers take longer than they should, what is too little to tell of a slow engine. */
const LEAST_SECONDS = 0.005;
const LEAST_PACE_SECONDS = 0.001;

/** What an engine bore when answers were given. */
export interface BorneLoad {
  /** Utilisation over seconds, and the highest over shorter times. */
  readonly rho: number;
  readonly peakRho: number;
  /** The most requests for each replica that were under way. */
  readonly requests: number;
  readonly networkSeconds: number;
  /** Utilisation by what it got done, of what all its replicas can do by the profile. */
  readonly doneRho: number;
  /** Requests at their largest: while caches fill with conversations that have moved, whole prompts are computed. */
  readonly largest: TokenMix;
}

/** The times that a report tells of one pool at one engine, beside what its profile says of them. */
export function latencySamples(
  usage: EngineUsage,
  load: BorneLoad,
  profile: Profile,
  mix: TokenMix,
  nowMs: number,
): readonly LatencySample[] {
  const { firstTokenCount, firstTokenSecondsSum, wholeCount, wholeSecondsSum, paceTokens, paceSecondsSum } =
    usage;
  const laterTokens = Math.max(1, mix.outputTokens - 1);
  const { networkSeconds: network, largest } = load;
  const growth = growthOf(profile, mix, largest);
  const most = Math.max(growth * load.rho, growth * load.peakRho, rhoOf(load.requests, profile, mix) ?? 0);
  const queued = queueSeconds(load.requests, profile, largest);
  const doneRho = growth * load.doneRho;
  // A few milliseconds say nothing.
  const slowness = (observedSeconds: number, secondsAt: (rho: number) => number, least = LEAST_SECONDS) =>
    observedSeconds - secondsAt(doneRho) < least ? 1 : slownessOf(observedSeconds, doneRho, secondsAt);
  const samples: LatencySample[] = [];
  if (firstTokenCount > 0) {
    const observedSeconds = firstTokenSecondsSum / firstTokenCount;
    samples.push({
      atMs: nowMs,
      kind: 'firstToken',
      count: firstTokenCount,
      observedSeconds,
      expectedSeconds: network + ttftSeconds(profile, load.rho, mix.uncachedPromptTokens),
      mostSeconds: network + ttftSeconds(profile, most, largest.uncachedPromptTokens) + queued,
      slowness: slowness(observedSeconds - network, (rho) =>
        ttftSeconds(profile, rho, largest.uncachedPromptTokens),
      ),
    });
  }
  if (wholeCount > 0) {
    const observedSeconds = wholeSecondsSum / wholeCount;
    samples.push({
      atMs: nowMs,
      kind: 'whole',
      count: wholeCount,
      observedSeconds,
      expectedSeconds: network + staySeconds(profile, load.rho, mix),
      mostSeconds: network + staySeconds(profile, most, largest) + queued,
      slowness: slowness(observedSeconds - network, (rho) => staySeconds(profile, rho, largest)),
    });
  }
  if (paceTokens > 0 && profile.tbot.baseSeconds > 0) {
    const observedSeconds = paceSecondsSum / paceTokens;
    samples.push({
      atMs: nowMs,
      kind: 'pace',
      count: Math.max(1, Math.round(paceTokens / laterTokens)),
      observedSeconds,
      expectedSeconds: tbotSeconds(profile, load.rho),
      mostSeconds: tbotSeconds(profile, most),
      slowness: slowness(observedSeconds, (rho) => tbotSeconds(profile, rho), LEAST_PACE_SECONDS),
    });
  }
  return samples;
}

/** How many times as much work the largest requests are. */
function growthOf(profile: Profile, mix: TokenMix, largest: TokenMix): number {
  const usual = workSeconds(profile, mix);
  return largest === mix || !(usual > 0) ? 1 : workSeconds(profile, largest) / usual;
}
