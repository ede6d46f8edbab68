import type { Observation } from '../observation.js';
import { type Fields, invalid } from './fields.js';

/**
 * `profile_export_genai_perf.json` of GenAI-Perf and `profile_export_aiperf.json` of AIPerf: one object of
 * `{unit, avg, p50, …}` a metric, and the command's options under `input_config`.
 */
export function isGenaiPerf(record: Fields): boolean {
  return record.has('input_config') && record.has('request_throughput');
}

export function genaiPerfObservation(record: Fields): Observation {
  const load = loadOptions(record);
  const outputTokens = record.child('output_sequence_length').positive('avg');
  const promptTokens = record.child('input_sequence_length').positive('avg');
  return {
    place: record.place,
    offeredRps: load.offeredRps,
    completedRps: record.child('request_throughput').positive('avg'),
    ttftSeconds: seconds(record.child('time_to_first_token')),
    reportedTbotSeconds: outputTokens > 1 ? seconds(record.child('inter_token_latency')) : undefined,
    e2eSeconds: record.has('request_latency') ? seconds(record.child('request_latency')) : undefined,
    statistic: 'mean',
    promptTokens,
    uncachedPromptTokens: promptTokens,
    outputTokens,
    durationSeconds: record.has('benchmark_duration')
      ? seconds(record.child('benchmark_duration'))
      : undefined,
    requests: record.has('request_count') ? record.child('request_count').positive('avg') : undefined,
    concurrencyLimit: load.concurrencyLimit,
    flaggedOverload: false,
  };
}

/** GenAI-Perf keeps the load in `perf_analyzer.stimulus` (older versions flat), AIPerf in `loadgen`. */
function loadOptions(record: Fields): { offeredRps: number; concurrencyLimit: number | undefined } {
  const config = record.child('input_config');
  const options = config.has('loadgen')
    ? config.child('loadgen')
    : config.has('perf_analyzer')
      ? config.child('perf_analyzer').child('stimulus')
      : config;
  const concurrencyLimit = options.optionalPositive('concurrency');
  if (options.has('request_rate')) return { offeredRps: options.positive('request_rate'), concurrencyLimit };
  if (concurrencyLimit === undefined) {
    throw invalid(
      record.place,
      'input_config names neither request_rate nor concurrency',
      'Run the benchmark with --request-rate',
    );
  }
  return { offeredRps: Infinity, concurrencyLimit };
}

const secondsPerUnit: Readonly<Record<string, number>> = { s: 1, sec: 1, ms: 1e-3, us: 1e-6, ns: 1e-9 };

function seconds(metric: Fields): number {
  const unit = metric.text('unit') ?? '';
  const factor = secondsPerUnit[unit];
  if (factor === undefined) {
    throw invalid(metric.place, `unknown unit of time ${JSON.stringify(unit)}`, 'Expected s, ms, us or ns');
  }
  return metric.positive('avg') * factor;
}
