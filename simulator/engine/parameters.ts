/**
 * What one replica of an engine is like. One iteration of the batch takes
 *
 *   stepBase + perSequence * B + perContextToken * C + perBatchToken * max(0, N - freeBatchTokens)
 *
 * seconds, where B sequences take part, C is the sum of their context lengths and N the tokens they compute: weights
 * are read once per step, every sequence adds its overhead and its attention over its context, and tokens are free
 * until computing them takes longer than reading the weights.
 */
export interface EngineParameters {
  readonly stepBaseSeconds: number;
  readonly secondsPerSequence: number;
  readonly secondsPerContextToken: number;
  readonly secondsPerBatchToken: number;
  readonly freeBatchTokens: number;
  /** Sequences that run at once, vLLM's `max-num-seqs`. */
  readonly maxRunning: number;
  /** Tokens computed per step, vLLM's `max-num-batched-tokens`; longer prompts are computed in chunks. */
  readonly maxBatchTokens: number;
  /** Requests that wait; more are refused. */
  readonly maxWaiting: number;
  /** Blocks of key-value cache. */
  readonly kvBlocks: number;
  /** Tokens per block of key-value cache. */
  readonly blockTokens: number;
  /** Prompt and output tokens of one request together. */
  readonly maxModelTokens: number;
}

/** The same engine on hardware that is `factor` times as fast. */
export function speedUp(parameters: EngineParameters, factor: number): EngineParameters {
  return {
    ...parameters,
    stepBaseSeconds: parameters.stepBaseSeconds / factor,
    secondsPerSequence: parameters.secondsPerSequence / factor,
    secondsPerContextToken: parameters.secondsPerContextToken / factor,
    secondsPerBatchToken: parameters.secondsPerBatchToken / factor,
  };
}

/**
 * Llama-3-8B in BF16 on one A100 with 80 GB under vLLM: fitted to 20 measured points of the LLM-Inference-Bench
 * (batches of 1 to 64, contexts of 128 and 1024 tokens; mean error 3 %), prefill cost measured twice (1042 ms for
 * 16 prompts of 1024 tokens there, 0.066 ms a token in Vidur's profile), memory for keys and values from the card's size:
 * (0.9 * 80 GB - 16 GB of weights - 2 GB) / 128 KiB a token.
 */
const llama8bOnA100: EngineParameters = {
  stepBaseSeconds: 0.01405,
  secondsPerSequence: 83e-6,
  secondsPerContextToken: 0.147e-6,
  secondsPerBatchToken: 65e-6,
  freeBatchTokens: 200,
  maxRunning: 96,
  maxBatchTokens: 2048,
  maxWaiting: 400,
  kvBlocks: 25_600,
  blockTokens: 16,
  maxModelTokens: 8192,
};

/**
 * Llama-3.1-8B in BF16 on one H100 with 80 GB under vLLM 0.11: step and free tokens fitted to the run with chunked
 * prefill of the inference-perf demo (KubeCon NA 2025), the other terms from the LLM-Inference-Bench; see the
 * calibration report. The size of a batch is that run's setting, memory as above.
 */
const llama8bOnH100: EngineParameters = {
  stepBaseSeconds: 0.0073,
  secondsPerSequence: 24e-6,
  secondsPerContextToken: 0.05e-6,
  secondsPerBatchToken: 26e-6,
  freeBatchTokens: 256,
  maxRunning: 128,
  maxBatchTokens: 2048,
  maxWaiting: 400,
  kvBlocks: 25_600,
  blockTokens: 16,
  maxModelTokens: 8192,
};

/**
 * The engine kinds that can be asked for by name. Two speeds of one engine, such that one replica that is never idle
 * answers 100 and 80 requests per second of the example conversations; and the two engines as they were measured.
 */
export const engineKinds: Readonly<Record<string, EngineParameters>> = {
  'sim-100': speedUp(llama8bOnA100, 1.477),
  'sim-80': speedUp(llama8bOnA100, 0.8 * 1.477),
  'a100-8b': llama8bOnA100,
  'h100-8b': llama8bOnH100,
};
