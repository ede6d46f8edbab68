import { engineKinds } from '../engine/parameters.js';
import type { ConversationShape } from '../load/conversations.js';
import type { Range } from '../random.js';
import { type BenchmarkResult, closedLoop, openLoop } from './benchmark.js';

/** Arrival rates as shares of the capacity. */
const ALL_LOADS = [0.05, 0.2, 0.4, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93];
const LOW_LOADS = [0.05, 0.2];
/** Prompts that no cache holds are this much longer, also where those of the shape are in none either. */
const LONGER_PROMPTS = 1.3;
/** Conversations at once, as multiples of the batch. */
const CROWDS = [2, 3];
const SPAN = { warmupSeconds: 20, seconds: 400 };

/** One line of the benchmark's table: a rate of arrivals or a number of conversations at once. */
type Stage = BenchmarkResult & { readonly maxConcurrency?: number };

/**
 * Benchmarks one replica of an engine kind under the given requests at all loads. Requests with longer answers, and
 * with prompts that no cache holds, follow when it is nearly idle and when it is full: only differing sizes tell what
 * a token of each kind costs.
 */
export function sweep(kind: string, shape: ConversationShape): Stage[] {
  const results = stages(kind, shape, ALL_LOADS);
  const longAnswers = { ...shape, outputTokens: longer(shape.outputTokens) };
  const promptTokens = Math.round(LONGER_PROMPTS * results[0]!.promptTokens);
  const singleTurns = { ...shape, turns: exactly(1), firstMessageTokens: exactly(promptTokens) };
  return [...results, ...stages(kind, longAnswers, LOW_LOADS), ...stages(kind, singleTurns, LOW_LOADS)];
}

function stages(kind: string, shape: ConversationShape, loads: readonly number[]): Stage[] {
  const parameters = engineKinds[kind]!;
  const full = CROWDS.map((crowd) => {
    const maxConcurrency = crowd * parameters.maxRunning;
    return { ...closedLoop(parameters, shape, maxConcurrency, SPAN), maxConcurrency };
  });
  const capacity = full[0]!.completedRps;
  const open = loads.map((load, index) => openLoop(parameters, shape, load * capacity, SPAN, index));
  return [...open, ...full];
}

/** The table that `wardrop fit` reads. */
export function csv(results: readonly Stage[]): string {
  const rows = results.map((stage) =>
    [
      stage.maxConcurrency === undefined ? stage.offeredRps.toFixed(3) : '',
      stage.maxConcurrency ?? '',
      stage.completedRps.toFixed(3),
      stage.promptTokens.toFixed(1),
      (stage.promptTokens - stage.uncachedPromptTokens).toFixed(1),
      stage.outputTokens.toFixed(2),
      stage.ttftSeconds.toFixed(6),
      stage.tbotSeconds.toFixed(6),
      stage.e2eSeconds.toFixed(6),
      stage.durationSeconds,
      stage.requests,
    ].join(','),
  );
  const columns = [
    ...['offered_rps', 'max_concurrency', 'completed_rps'],
    ...['prompt_tokens', 'cached_prompt_tokens', 'output_tokens'],
    ...['ttft_s', 'tbot_s', 'e2e_s', 'duration_s', 'requests'],
  ];
  return `${[columns.join(','), ...rows].join('\n')}\n`;
}

function longer({ min, max }: Range): Range {
  return { min: 1.5 * min, max: 1.5 * max };
}

function exactly(value: number): Range {
  return { min: value, max: value };
}
