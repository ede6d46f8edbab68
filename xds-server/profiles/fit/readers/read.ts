import { type Observation, perReplica } from '../observation.js';
import { csvObservations, type RowFilter } from './csv.js';
import { type Fields, invalid } from './fields.js';
import { genaiPerfObservation, isGenaiPerf } from './genai-perf.js';
import { inferencePerfObservation, isInferencePerf } from './inference-perf.js';
import { jsonRecords } from './json.js';
import { isSglang, sglangObservation } from './sglang.js';
import { isVllm, vllmObservation } from './vllm.js';

export interface ReadOptions {
  /** Equal replicas that shared the load, unless a CSV has a column that says so. */
  readonly replicas: number;
  /** CSV rows to keep; all by default. */
  readonly filters: readonly RowFilter[];
}

const jsonFormats: readonly {
  readonly matches: (record: Fields) => boolean;
  readonly read: (record: Fields) => Observation;
}[] = [
  { matches: isInferencePerf, read: inferencePerfObservation },
  { matches: isGenaiPerf, read: genaiPerfObservation },
  { matches: isSglang, read: sglangObservation },
  { matches: isVllm, read: vllmObservation },
];

/**
 * The stages in the text of one benchmark file, its format told by its content. `file` is the name in messages.
 * Throws WARDROP_BENCHMARK_INVALID with file, line or record, and what to do.
 */
export function readBenchmark(file: string, text: string, options: ReadOptions): Observation[] {
  if (!/^\s*[[{]/.test(text)) return csvObservations(file, text, options.replicas, options.filters);
  return jsonRecords(file, text).map((record) => perReplica(jsonObservation(record), options.replicas));
}

function jsonObservation(record: Fields): Observation {
  const format = jsonFormats.find(({ matches }) => matches(record));
  if (format === undefined) {
    throw invalid(
      record.place,
      'is no benchmark summary that is known here',
      'Known are results of vllm bench serve, sglang.bench_serving, GenAI-Perf and AIPerf (profile_export_*perf.json), ' +
        'inference-perf (stage_*_lifecycle_metrics.json), and CSV',
    );
  }
  return format.read(record);
}
