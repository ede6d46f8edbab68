/** Buckets of vLLM's histograms: seconds to the first token, between tokens and of whole requests, and token counts. */
const FIRST_TOKEN = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640,
  2560,
];
const PACE = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80];
const WHOLE = [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680];
const TOKENS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000];

const HISTOGRAMS: Readonly<Record<string, readonly number[]>> = {
  time_to_first_token_seconds: FIRST_TOKEN,
  inter_token_latency_seconds: PACE,
  request_time_per_output_token_seconds: PACE,
  e2e_request_latency_seconds: WHOLE,
  request_queue_time_seconds: WHOLE,
  request_inference_time_seconds: WHOLE,
  request_prefill_time_seconds: WHOLE,
  request_decode_time_seconds: WHOLE,
  request_prompt_tokens: TOKENS,
  request_generation_tokens: TOKENS,
  request_max_num_generation_tokens: TOKENS,
  request_params_max_tokens: TOKENS,
  request_prefill_kv_computed_tokens: TOKENS,
  request_params_n: [1, 2, 5, 10, 20],
  iteration_tokens_total: [1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384],
};

const COUNTERS = [
  'prompt_tokens_total',
  'generation_tokens_total',
  'num_preemptions_total',
  'prefix_cache_queries_total',
  'prefix_cache_hits_total',
  'external_prefix_cache_queries_total',
  'external_prefix_cache_hits_total',
  'mm_cache_queries_total',
  'mm_cache_hits_total',
];

/** A page as vLLM exports it, all histograms included, with as many data-parallel ranks. */
export function vllmPage(ranks: number): string {
  const lines: string[] = [];
  const labels = (rank: number, more = '') =>
    `{engine="${rank}",model_name="org/llama-3.3-70b-instruct"${more}}`;
  const family = (name: string, type: string) => {
    lines.push(`# HELP vllm:${name} What ${name.replaceAll('_', ' ')} means.`, `# TYPE vllm:${name} ${type}`);
  };
  const each = (write: (rank: number) => void) => {
    for (let rank = 0; rank < ranks; rank++) write(rank);
  };
  for (const [name, value] of Object.entries({
    num_requests_running: 12,
    num_requests_waiting: 3,
    kv_cache_usage_perc: 0.4375,
  })) {
    family(name, 'gauge');
    each((rank) => lines.push(`vllm:${name}${labels(rank)} ${value}`));
  }
  for (const name of COUNTERS) {
    family(name, 'counter');
    each((rank) =>
      lines.push(
        `vllm:${name}${labels(rank)} ${1.234567e6 + rank}`,
        `vllm:${name.replace('_total', '_created')}${labels(rank)} 1.7543210987654e+09`,
      ),
    );
  }
  family('request_success_total', 'counter');
  for (const reason of ['stop', 'length', 'abort', 'error']) {
    each((rank) =>
      lines.push(`vllm:request_success_total${labels(rank, `,finished_reason="${reason}"`)} 98765.0`),
    );
  }
  for (const [name, bounds] of Object.entries(HISTOGRAMS)) {
    family(name, 'histogram');
    each((rank) => {
      bounds.forEach((bound, at) => {
        lines.push(`vllm:${name}_bucket${labels(rank, `,le="${bound.toFixed(3)}"`)} ${(at + 1) * 4321}.0`);
      });
      lines.push(
        `vllm:${name}_bucket${labels(rank, ',le="+Inf"')} 98765.0`,
        `vllm:${name}_count${labels(rank)} 98765.0`,
        `vllm:${name}_sum${labels(rank)} 123456.78901234567`,
      );
    });
  }
  return `${lines.join('\n')}\n`;
}
