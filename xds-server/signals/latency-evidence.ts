import type { EngineUsage } from '../../wire/usage-report.js';
import { tbotSeconds, ttftSeconds } from '../profiles/curves.js';
import type { Profile, TokenMix } from '../profiles/profile.js';
import type { LatencySample } from './latency-samples.js';
import { queueSeconds, rhoOf, stayAt } from './load-by-profile.js';

/** What an engine bore when answers were given. */
export interface BorneLoad {
  /** Utilisation over seconds, and the highest over shorter times. */
  readonly rho: number;
  readonly peakRho: number;
  /** The most requests for each replica that were under way. */
  readonly requests: number;
  readonly networkSeconds: number;
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
  const most = Math.max(load.rho, load.peakRho, rhoOf(load.requests, profile, mix) ?? 0);
  const queued = queueSeconds(load.requests, profile, mix);
  const { networkSeconds: network } = load;
  const firstToken = (rho: number) => network + ttftSeconds(profile, rho, mix.uncachedPromptTokens);
  const samples: LatencySample[] = [];
  if (firstTokenCount > 0) {
    samples.push({
      atMs: nowMs,
      kind: 'firstToken',
      count: firstTokenCount,
      observedSeconds: firstTokenSecondsSum / firstTokenCount,
      expectedSeconds: firstToken(load.rho),
      mostSeconds: firstToken(most) + queued,
    });
  }
  if (wholeCount > 0) {
    samples.push({
      atMs: nowMs,
      kind: 'whole',
      count: wholeCount,
      observedSeconds: wholeSecondsSum / wholeCount,
      expectedSeconds: network + stayAt(profile, mix, load.rho),
      mostSeconds: network + stayAt(profile, mix, most) + queued,
    });
  }
  if (paceTokens > 0 && profile.tbot.baseSeconds > 0) {
    samples.push({
      atMs: nowMs,
      kind: 'pace',
      count: Math.max(1, Math.round(paceTokens / laterTokens)),
      observedSeconds: paceSecondsSum / paceTokens,
      expectedSeconds: tbotSeconds(profile, load.rho),
      mostSeconds: tbotSeconds(profile, most),
    });
  }
  return samples;
}
