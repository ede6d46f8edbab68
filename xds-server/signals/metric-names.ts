import type { EngineKind, MetricsSource, SignalName } from '../fleet/fleet.js';
import { parseSelector, type Selector } from '../fleet/metric-selector.js';

/** Where each signal is found on a page; the first selector that gives a value counts. */
export type SignalMapping = ReadonlyMap<SignalName, readonly Selector[]>;

/**
 * Names that engines use or used for their signals, today's first: where a page has an old and a new name, the old one
 * may be a leftover that stays 0. Each name is also found with an underscore for its colon and with or without
 * `_total` (see `variants`).
 */
const KNOWN: Readonly<Record<Exclude<EngineKind, 'custom'>, Partial<Record<SignalName, readonly string[]>>>> =
  {
    vllm: {
      running: ['vllm:num_requests_running'],
      waiting: ['vllm:num_requests_waiting'],
      kvUse: ['vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc'],
      prefixHits: ['vllm:prefix_cache_hits', 'vllm:gpu_prefix_cache_hits'],
      prefixQueries: ['vllm:prefix_cache_queries', 'vllm:gpu_prefix_cache_queries'],
      generatedTokens: ['vllm:generation_tokens'],
    },
    sglang: {
      running: ['sglang:num_running_reqs'],
      waiting: ['sglang:num_queue_reqs'],
      kvUse: ['sglang:token_usage'],
      prefixHits: ['sglang:cached_tokens'],
      prefixQueries: ['sglang:prompt_tokens'],
    },
    trtllm: {
      running: ['trtllm_num_requests_running'],
      waiting: ['trtllm_num_requests_waiting'],
      kvUse: ['trtllm_kv_cache_utilization'],
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
    },
    tgi: {
      running: ['tgi_batch_current_size'],
      waiting: ['tgi_queue_size'],
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
