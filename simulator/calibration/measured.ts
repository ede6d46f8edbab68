import { readFileSync } from 'node:fs';
import { packageFile } from '../../xds-server/package-file.js';

/** One batch of equal requests that began together: prompts and answers of so many tokens each. */
export interface BatchRun {
  readonly hardware: 'a100' | 'h100';
  readonly tokens: number;
  readonly batch: number;
  readonly seconds: number;
}

/** Requests at a constant rate for a minute. */
export interface LoadStage {
  readonly offeredRps: number;
  readonly completedRps: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly ttftSeconds: number;
  readonly tbotSeconds: number;
}

/** Llama-3-8B on one accelerator under vLLM of 2024, from the LLM-Inference-Bench. */
export function batchRuns(): BatchRun[] {
  return rows('simulator', 'data', 'llm-inference-bench.csv').map(({ hardware, tokens, batch, seconds }) => ({
    hardware: hardware as BatchRun['hardware'],
    tokens: Number(tokens),
    batch: Number(batch),
    seconds: Number(seconds),
  }));
}

/** Llama-3.1-8B on one H100 under vLLM 0.11 with chunked prefill, from the inference-perf demo. */
export function loadStages(): LoadStage[] {
  return rows('xds-server', 'profiles', 'data', 'kubecon2025-llama31-8b-h100.csv')
    .filter(({ config }) => config === 'vllm+chunking_and_prefix_caching')
    .map((row) => ({
      offeredRps: Number(row.requested_rps),
      completedRps: Number(row.completed_rps),
      promptTokens: Math.round(Number(row.prompt_tokens_mean)),
      outputTokens: Math.round(Number(row.output_tokens_mean)),
      ttftSeconds: Number(row.ttft_mean_s),
      tbotSeconds: Number(row.tbot_mean_s_recomputed),
    }));
}

function rows(...path: readonly string[]): Record<string, string>[] {
  const [header, ...lines] = readFileSync(packageFile(...path), 'utf8')
    .trim()
    .split('\n');
  const names = header!.split(',');
  return lines.map((line) => {
    const fields = line.split(',');
    return Object.fromEntries(names.map((name, index) => [name, fields[index] ?? '']));
  });
}
