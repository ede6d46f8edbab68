import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { EngineCore, Sequence } from './engine-core.js';

const SECONDS = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
];
const TOKEN_SECONDS = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
const REQUEST_SECONDS = [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480];
const TOKENS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

/**
 * The metrics page under the names that vLLM gives them since its V1 engine, from the true state of the model. One
 * page serves one model, as one vLLM server does; more names of it are aliases.
 */
export class VllmMetrics {
  readonly #registry = new Registry();
  readonly #promptTokens = this.#counter('prompt_tokens', 'Prefill tokens processed.');
  readonly #generationTokens = this.#counter('generation_tokens', 'Generation tokens processed.');
  readonly #success = this.#counter('request_success', 'Finished requests.', 'finished_reason');
  readonly #ttft = this.#histogram('time_to_first_token_seconds', 'Time to first token.', SECONDS);
  readonly #interToken = this.#histogram(
    'inter_token_latency_seconds',
    'Time between output tokens.',
    TOKEN_SECONDS,
  );
  readonly #perToken = this.#histogram(
    'request_time_per_output_token_seconds',
    'Mean time between the output tokens of a request.',
    TOKEN_SECONDS,
  );
  readonly #e2e = this.#histogram('e2e_request_latency_seconds', 'Arrival to last token.', REQUEST_SECONDS);
  readonly #queue = this.#histogram(
    'request_queue_time_seconds',
    'Arrival to first schedule.',
    REQUEST_SECONDS,
  );
  readonly #prefill = this.#histogram(
    'request_prefill_time_seconds',
    'First schedule to first token.',
    REQUEST_SECONDS,
  );
  readonly #decode = this.#histogram('request_decode_time_seconds', 'First to last token.', REQUEST_SECONDS);
  readonly #inference = this.#histogram(
    'request_inference_time_seconds',
    'First schedule to last token.',
    REQUEST_SECONDS,
  );
  readonly #promptSize = this.#histogram('request_prompt_tokens', 'Prompt tokens of a request.', TOKENS);
  readonly #outputSize = this.#histogram('request_generation_tokens', 'Output tokens of a request.', TOKENS);
  readonly #lastTokenAt = new WeakMap<Sequence, number>();

  constructor(core: EngineCore, model: string) {
    this.#registry.setDefaultLabels({ engine: '0', model_name: model });
    this.#read(Gauge, 'num_requests_running', 'Requests in the batch.', () => core.running);
    this.#read(Gauge, 'num_requests_waiting', 'Requests in the queue.', () => core.waiting);
    this.#read(Gauge, 'kv_cache_usage_perc', 'Used key-value blocks, 1 is all.', () => core.kvUse);
    this.#read(
      Counter,
      'prefix_cache_queries_total',
      'Prompt tokens looked up.',
      () => core.prefixCache.queriedTokens,
    );
    this.#read(Counter, 'prefix_cache_hits_total', 'Prompt tokens found.', () => core.prefixCache.hitTokens);
    this.#read(Counter, 'num_preemptions_total', 'Preempted sequences.', () => core.preemptions);
    new Gauge({
      name: 'vllm:cache_config_info',
      help: 'Key-value cache configuration.',
      labelNames: ['block_size', 'num_gpu_blocks', 'enable_prefix_caching'],
      registers: [this.#registry],
    }).set(
      {
        block_size: core.parameters.blockTokens,
        num_gpu_blocks: core.parameters.kvBlocks,
        enable_prefix_caching: 'True',
      },
      1,
    );
  }

  onToken(sequence: Sequence, at: number): void {
    const { request, arrivedAt, startedAt, firstTokenAt, generated } = sequence;
    this.#generationTokens.inc();
    if (generated === 1) {
      this.#promptTokens.inc(request.promptTokens);
      this.#ttft.observe(at - arrivedAt);
    } else {
      this.#interToken.observe(at - this.#lastTokenAt.get(sequence)!);
    }
    this.#lastTokenAt.set(sequence, at);
    if (!sequence.finished) return;
    this.#success.inc({ finished_reason: 'length' });
    this.#e2e.observe(at - arrivedAt);
    this.#queue.observe(startedAt - arrivedAt);
    this.#prefill.observe(firstTokenAt - startedAt);
    this.#decode.observe(at - firstTokenAt);
    this.#inference.observe(at - startedAt);
    this.#promptSize.observe(request.promptTokens);
    this.#outputSize.observe(request.outputTokens);
    if (generated > 1) this.#perToken.observe((at - firstTokenAt) / (generated - 1));
  }

  onAbort(): void {
    this.#success.inc({ finished_reason: 'abort' });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  page(): Promise<string> {
    return this.#registry.metrics();
  }

  #counter<Label extends string = never>(name: string, help: string, ...labelNames: Label[]): Counter<Label> {
    return new Counter({ name: `vllm:${name}_total`, help, labelNames, registers: [this.#registry] });
  }

  /** A metric that reads the model whenever the page is written. */
  #read(Kind: typeof Gauge | typeof Counter, name: string, help: string, value: () => number): void {
    new Kind({
      name: `vllm:${name}`,
      help,
      registers: [this.#registry],
      collect() {
        this.reset();
        this.inc(value());
      },
    });
  }

  #histogram(name: string, help: string, buckets: number[]): Histogram {
    return new Histogram({ name: `vllm:${name}`, help, buckets, registers: [this.#registry] });
  }
}
