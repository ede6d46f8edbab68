import type { Observation } from '../observation.js';
import type { Fields } from './fields.js';
import { servingBenchObservation } from './serving-bench.js';

/** Results of `python -m sglang.bench_serving`, one JSON object a line. Times in ms. */
export function isSglang(record: Fields): boolean {
  return record.has('request_rate') && record.has('mean_e2e_latency_ms');
}

export function sglangObservation(record: Fields): Observation {
  return servingBenchObservation(record, 'e2e_latency');
}
