import type { Observation } from './observation.js';

/** What a stage is good for. */
export type StageUse =
  /** Steady below capacity: shapes the curves. */
  | 'curves'
  /** Offered more than the engine completed: shows the capacity; its TTFT measures the length of the run. */
  | 'overload'
  /** A fixed number of requests in flight: no queue builds up, so TTFT says nothing about waiting. */
  | 'closed-loop'
  /** Requests were sent for less time than one takes: the batch never filled. */
  | 'too-short';

export interface Stage {
  readonly observation: Observation;
  /** Between output tokens; recomputed where the report contradicts the end-to-end time. */
  readonly tbotSeconds: number | undefined;
  readonly use: StageUse;
}

/** Below this share of the offered rate a stage is overloaded (KubeCon NA 2025 demo: sound stages reach 0.98). */
const sustainedShare = 0.97;

/** Requests in flight above this share of the client's limit mean that the limit holds requests back. */
const limitBinds = 0.9;

/** Reported and recomputed TBOT may differ by this much: means of ratios against ratios of means. */
const tbotTolerance = 0.25;

/**
 * TBOT by its definition, `(E2E - TTFT) / (output tokens - 1)`, wherever the reported one contradicts it. Tools that
 * count two stream events a token, or a start token in each chunk, report half the truth.
 */
export function trueTbot(observation: Observation): { seconds: number | undefined; recomputed: boolean } {
  const { reportedTbotSeconds: reported, e2eSeconds, ttftSeconds, outputTokens } = observation;
  if (reported === undefined || e2eSeconds === undefined || e2eSeconds <= ttftSeconds) {
    return { seconds: reported, recomputed: false };
  }
  const recomputed = (e2eSeconds - ttftSeconds) / (outputTokens - 1);
  const ratio = recomputed / reported;
  return ratio > 1 + tbotTolerance || ratio < 1 / (1 + tbotTolerance)
    ? { seconds: recomputed, recomputed: true }
    : { seconds: reported, recomputed: false };
}

/** Sorts the stages of one run by what they are good for, in the order of the observations. */
export function classify(observations: readonly Observation[]): Stage[] {
  const floorTtftSeconds = Math.min(...observations.map((observation) => observation.ttftSeconds));
  return observations.map((observation) => {
    const tbotSeconds = trueTbot(observation).seconds;
    return { observation, tbotSeconds, use: useOf(observation, tbotSeconds ?? 0, floorTtftSeconds) };
  });
}

function useOf(observation: Observation, tbotSeconds: number, floorTtftSeconds: number): StageUse {
  const { offeredRps, completedRps, concurrencyLimit, durationSeconds } = observation;
  if (observation.flaggedOverload) return 'overload';
  // Little's law: requests in flight are rate times time in the system.
  const inFlight = completedRps * latencySeconds(observation, tbotSeconds);
  const held = concurrencyLimit !== undefined && inFlight > limitBinds * concurrencyLimit;
  if (offeredRps === Infinity || held) return 'closed-loop';
  const unqueuedSeconds = floorTtftSeconds + (observation.outputTokens - 1) * tbotSeconds;
  if (completedRps * drainFactor(durationSeconds, unqueuedSeconds) < sustainedShare * offeredRps) {
    return 'overload';
  }
  if (durationSeconds !== undefined && durationSeconds < 2 * unqueuedSeconds) return 'too-short';
  return 'curves';
}

/**
 * Completed rates are counted to the last answer, which comes one request time after the last send. In a stage of few
 * requests this looks like overload; the factor takes it out. Without queueing, since overload must stay visible.
 */
export function drainFactor(durationSeconds: number | undefined, unqueuedSeconds: number): number {
  if (durationSeconds === undefined || durationSeconds <= 2 * unqueuedSeconds) return 1;
  return durationSeconds / (durationSeconds - unqueuedSeconds);
}

function latencySeconds(observation: Observation, tbotSeconds: number): number {
  return observation.e2eSeconds ?? observation.ttftSeconds + (observation.outputTokens - 1) * tbotSeconds;
}
