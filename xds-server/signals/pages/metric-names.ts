import type { EngineKind, MetricsSource, SignalName } from '../../fleet/fleet.js';
import { parseSelector, type Selector } from '../../fleet/metric-selector.js';

/** Where each signal is found on a page; the first selector that gives a value counts. */
export type SignalMapping = ReadonlyMap<SignalName, readonly Selector[]>;

type Names = Partial<Record<SignalName, readonly string[]>>;

/** Sum and count of the first of these histograms that a page has. */
function firstTokens(...histograms: readonly string[]): Names {
  return {
    firstTokenSeconds: histograms.map((name) => `${name}_sum`),
    firstTokens: histograms.map((name) => `${name}_count`),
  };
}

function tokenGaps(...histograms: readonly string[]): Names {
  return {
    tokenGapSeconds: histograms.map((name) => `${name}_sum`),
    tokenGaps: histograms.map((name) => `${name}_count`),
  };
}

const VLLM_TIMES: Names = {
  ...firstTokens('vllm:time_to_first_token_seconds'),
  ...tokenGaps('vllm:inter_token_latency_seconds', 'vllm:time_per_output_token_seconds'),
};

/**
 * Names that engines use or used for their signals, today's first: where a page has an old and a new name, the old one
 * may be a leftover that stays 0. Each name is also found with an underscore for its colon and with or without
 * `_total` (see `variants`).
 */
const KNOWN: Readonly<Record<Exclude<EngineKind, 'custom'>, Names>> = {
  vllm: {
    running: ['vllm:num_requests_running'],
    waiting: ['vllm:num_requests_waiting'],
    kvUse: ['vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc'],
    prefixHits: ['vllm:prefix_cache_hits', 'vllm:gpu_prefix_cache_hits'],
    prefixQueries: ['vllm:prefix_cache_queries', 'vllm:gpu_prefix_cache_queries'],
    generatedTokens: ['vllm:generation_tokens'],
    ...VLLM_TIMES,
  },
  sglang: {
    running: ['sglang:num_running_reqs'],
    waiting: ['sglang:num_queue_reqs'],
    kvUse: ['sglang:token_usage'],
    prefixHits: ['sglang:cached_tokens'],
    prefixQueries: ['sglang:prompt_tokens'],
    ...firstTokens('sglang:time_to_first_token_seconds'),
    ...tokenGaps('sglang:inter_token_latency_seconds', 'sglang:time_per_output_token_seconds'),
  },
  trtllm: {
    running: ['trtllm_num_requests_running'],
    waiting: ['trtllm_num_requests_waiting'],
    kvUse: ['trtllm_kv_cache_utilization'],
    ...firstTokens('trtllm_time_to_first_token_seconds'),
    ...tokenGaps('trtllm_time_per_output_token_seconds'),
  },
  triton: {
    running: ['nv_trt_llm_request_metrics{request_type="scheduled"}', 'vllm:num_requests_running'],
    waiting: ['nv_trt_llm_request_metrics{request_type="waiting"}', 'vllm:num_requests_waiting'],
    kvUse: [
      'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction"}',
      'vllm:kv_cache_usage_perc',
      'vllm:gpu_cache_usage_perc',
    ],
    generatedTokens: ['vllm:generation_tokens'],
    ...VLLM_TIMES,
  },
  tgi: {
    running: ['tgi_batch_current_size'],
    waiting: ['tgi_queue_size'],
    ...tokenGaps('tgi_request_mean_time_per_token_duration'),
  },
};

/** What is looked for on the pages of an engine: configured names, then those of its kind. */
export function signalMapping(source: MetricsSource): SignalMapping {
  if (source.kind === 'none') return new Map();
  const known = source.kind === 'custom' ? {} : KNOWN[source.kind];
  const own = source.names ?? {};
  const signals = [...new Set([...Object.keys(known), ...Object.keys(own)])] as SignalName[];
  return new Map(
    signals.map((signal) => {
      const names = [...(own[signal] === undefined ? [] : [own[signal]]), ...(known[signal] ?? [])];
      return [signal, names.flatMap((name) => variants(parseSelector(name)!))];
    }),
  );
}

/** The same metric as other versions and exporters spell it, the given spelling first. */
function variants({ name, labels }: Selector): readonly Selector[] {
  const bare = name.replace(/_total$/, '');
  const names = [name, bare, `${bare}_total`];
  return [...new Set([...names, ...names.map((other) => other.replaceAll(':', '_'))])].map((other) => ({
    name: other,
    labels,
  }));
}
