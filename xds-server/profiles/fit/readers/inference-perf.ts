import type { Observation } from '../observation.js';
import { type Fields, invalid } from './fields.js';

/** `stage_N_lifecycle_metrics.json` of kubernetes-sigs/inference-perf: one file a stage. Times in s. */
export function isInferencePerf(record: Fields): boolean {
  return record.has('load_summary') && record.has('successes');
}

export function inferencePerfObservation(record: Fields): Observation {
  const load = record.child('load_summary');
  if (!load.has('requested_rate')) {
    throw invalid(
      record.place,
      'has no requested_rate: it sums up several stages, or the load was not paced by a rate',
      'Pass the stage_*_lifecycle_metrics.json files of a run at constant rates',
    );
  }
  const successes = record.child('successes');
  const latency = successes.child('latency');
  const requests = successes.positive('count', 'No request of the stage succeeded: leave it out');
  const completedRps = successes.child('throughput').positive('requests_per_sec');
  const outputTokens = successes.child('output_len').positive('mean');
  const prompt = promptTokens(successes, requests);
  return {
    place: record.place,
    offeredRps: load.positive('requested_rate'),
    completedRps,
    ttftSeconds: latency.child('time_to_first_token').positive('mean'),
    reportedTbotSeconds:
      outputTokens > 1 ? latency.child('time_per_output_token').positive('mean') : undefined,
    e2eSeconds: latency.child('request_latency').positive('mean'),
    statistic: 'mean',
    promptTokens: prompt.all,
    uncachedPromptTokens: prompt.uncached,
    outputTokens,
    // The tool divides the successes by the time from the first send to the last answer.
    durationSeconds: requests / completedRps,
    requests,
    concurrencyLimit: load.optionalPositive('concurrency'),
    flaggedOverload: false,
  };
}

/** `prompt_tokens` with a cached part since 2026; `prompt_len` before. */
function promptTokens(successes: Fields, requests: number): { all: number; uncached: number } {
  if (!successes.has('prompt_tokens')) {
    const all = successes.child('prompt_len').positive('mean');
    return { all, uncached: all };
  }
  const usage = successes.child('prompt_tokens');
  const all = usage.positive('total') / requests;
  return { all, uncached: usage.has('uncached') ? usage.nonNegative('uncached') / requests : all };
}
