import type { Observation } from '../observation.js';
import type { Fields } from './fields.js';

/**
 * What `vllm bench serve` and `sglang.bench_serving` write alike: both descend from one script. `e2eName` is the one
 * name in which they differ.
 */
export function servingBenchObservation(record: Fields, e2eName: 'e2el' | 'e2e_latency'): Observation {
  const requests = record.positive('completed', 'No request of the stage succeeded: leave it out');
  const statistic = record.has('mean_ttft_ms') ? 'mean' : 'median';
  const milliseconds = (name: string) => `${statistic}_${name}_ms`;
  const promptTokens = record.positive('total_input_tokens') / requests;
  const outputTokens = record.positive('total_output_tokens') / requests;
  const e2eMs = record.optionalPositive(milliseconds(e2eName));
  return {
    place: record.place,
    offeredRps: record.rate('request_rate'),
    completedRps: record.positive('request_throughput'),
    ttftSeconds: record.positive(milliseconds('ttft')) / 1000,
    reportedTbotSeconds:
      outputTokens > 1
        ? record.positive(milliseconds('tpot'), 'Rerun the benchmark with TPOT among its metrics') / 1000
        : undefined,
    e2eSeconds: e2eMs === undefined ? undefined : e2eMs / 1000,
    statistic,
    promptTokens,
    uncachedPromptTokens: promptTokens,
    outputTokens,
    durationSeconds: record.positive('duration'),
    requests,
    concurrencyLimit: record.optionalPositive('max_concurrency'),
    flaggedOverload: false,
  };
}
