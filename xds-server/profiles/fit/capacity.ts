import { mean } from '../../collections.js';
import { drainFactor, type Stage } from './stage.js';

/** What one replica can serve of requests of one size. */
export interface Capacity {
  readonly promptTokens: number;
  readonly uncachedPromptTokens: number;
  readonly outputTokens: number;
  readonly requestsPerSecond: number;
  /** Spread of the plateau, counting error and the drain after the last send included; undefined when unknown. */
  readonly interval: { readonly low: number; readonly high: number } | undefined;
  /** False: no stage filled the engine, so `requestsPerSecond` is only a lower bound. */
  readonly saturated: boolean;
  readonly saturatedStages: number;
  /** How far the throughput of an overloaded stage fell below the best one, 0..1. */
  readonly collapse: number;
}

/** Saturated stages this close to the best one are the plateau; lower ones have collapsed. */
const plateauShare = 0.9;

/** More concurrency that brings no more than this in throughput shows that the engine is full. */
const plateauGain = 1.05;
const plateauConcurrencyStep = 1.25;

/**
 * Capacity from stages of one request size: the highest completed rate. Ramp, drain and client limits only lower the
 * completed rate of a stage, so the best stage is nearest to the truth.
 */
export function capacityOf(stages: readonly Stage[]): Capacity {
  const full = stages.filter((stage) => isSaturated(stage, stages));
  const sizes = stages.map(({ observation }) => observation);
  const size = {
    promptTokens: mean(sizes.map((observation) => observation.promptTokens)),
    uncachedPromptTokens: mean(sizes.map((observation) => observation.uncachedPromptTokens)),
    outputTokens: mean(sizes.map((observation) => observation.outputTokens)),
  };
  const overloaded = stages.filter(({ use }) => use === 'overload');
  const best = Math.max(...stages.map(({ observation }) => observation.completedRps));
  if (full.length === 0) {
    return {
      ...size,
      requestsPerSecond: Math.max(...stages.map(sustainedRate)),
      interval: undefined,
      saturated: false,
      saturatedStages: 0,
      collapse: 0,
    };
  }
  return {
    ...size,
    requestsPerSecond: best,
    interval: intervalOf(full, best),
    saturated: true,
    saturatedStages: full.length,
    collapse: 1 - Math.min(best, ...overloaded.map(({ observation }) => observation.completedRps)) / best,
  };
}

function sustainedRate({ observation, use }: Stage): number {
  return use === 'curves' ? observation.offeredRps : observation.completedRps;
}

function isSaturated(stage: Stage, all: readonly Stage[]): boolean {
  if (stage.use === 'overload') return true;
  if (stage.use !== 'closed-loop') return false;
  const { observation } = stage;
  // Waiting longer for the first token than decoding takes: the queue outside the batch is never empty.
  if (observation.ttftSeconds > (observation.outputTokens - 1) * (stage.tbotSeconds ?? Infinity)) return true;
  const limit = observation.concurrencyLimit;
  if (limit === undefined) return false;
  return all.some(
    ({ use, observation: other }) =>
      use === 'closed-loop' &&
      (other.concurrencyLimit ?? Infinity) * plateauConcurrencyStep <= limit &&
      observation.completedRps < plateauGain * other.completedRps,
  );
}

function intervalOf(full: readonly Stage[], best: number): Capacity['interval'] {
  const plateau = full.filter(({ observation }) => observation.completedRps >= plateauShare * best);
  const lows = plateau.map(({ observation }) => observation.completedRps - countingError(observation));
  const highs = plateau.map((stage) => {
    const { observation } = stage;
    const decodeSeconds = (observation.outputTokens - 1) * (stage.tbotSeconds ?? 0);
    const drained = observation.completedRps * drainFactor(observation.durationSeconds, decodeSeconds);
    return Math.max(drained, observation.completedRps + countingError(observation));
  });
  const low = Math.min(best, ...lows);
  const high = Math.max(best, ...highs);
  return low < high ? { low, high } : undefined;
}

/** 95 % bound for a rate from a Poisson count; a server at its limit varies less. */
function countingError({ completedRps, requests }: Stage['observation']): number {
  return requests === undefined ? 0 : (1.96 * completedRps) / Math.sqrt(requests);
}
