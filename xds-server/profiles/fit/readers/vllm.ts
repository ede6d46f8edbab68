import type { Observation } from '../observation.js';
import { type Fields, invalid } from './fields.js';
import { servingBenchObservation } from './serving-bench.js';
import { isSglang } from './sglang.js';

/** Results of `vllm bench serve --save-result` (or `--append-result`). Times in ms. */
export function isVllm(record: Fields): boolean {
  return record.has('request_rate') && record.has('total_input_tokens') && !isSglang(record);
}

export function vllmObservation(record: Fields): Observation {
  if (record.has('ramp_up_strategy')) {
    throw invalid(
      record.place,
      'the request rate ramps during the run (ramp_up_strategy)',
      'Run one steady --request-rate at a time',
    );
  }
  return servingBenchObservation(record, 'e2el');
}
