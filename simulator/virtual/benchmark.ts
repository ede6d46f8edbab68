import { EngineCore, type Sequence } from '../engine/engine-core.js';
import type { EngineParameters } from '../engine/parameters.js';
import { type ConversationShape, conversation, conversationTurns, type Turn } from '../load/conversations.js';
import { Random } from '../random.js';
import { Dialogue } from './dialogue.js';

/** Means over the requests that were measured. */
export interface BenchmarkResult {
  /** Requests per second: offered, and answered in the same time. */
  readonly offeredRps: number;
  readonly completedRps: number;
  readonly promptTokens: number;
  /** Prompt tokens that were not in the prefix cache. */
  readonly uncachedPromptTokens: number;
  readonly outputTokens: number;
  readonly ttftSeconds: number;
  /** Seconds between output tokens. */
  readonly tbotSeconds: number;
}

/**
 * Requests per second that one replica answers when it never runs out of work: conversations take their turns without
 * a pause, twice as many as the batch holds, so that the cache serves them as it does below saturation.
 */
export function saturationRps(
  parameters: EngineParameters,
  shape: ConversationShape,
  seconds: number,
): number {
  const random = new Random(1, 'saturation');
  const dialogue = new Dialogue(parameters.blockTokens);
  const rest = new Map<Sequence, Turn[]>();
  const core = new EngineCore({ ...parameters, maxWaiting: Number.POSITIVE_INFINITY }, (sequence, at) => {
    if (!sequence.finished) return;
    const turns = rest.get(sequence)!;
    rest.delete(sequence);
    answered++;
    take(turns.length > 0 ? turns : next(), at);
  });
  let conversations = 0;
  let answered = 0;
  const next = () => conversation(shape, `s-${conversations++}`, 0, random);
  const take = ([turn, ...later]: Turn[], at: number) =>
    rest.set(core.submit(dialogue.request(turn!), at)!, later);
  for (let i = 0; i < 2 * parameters.maxRunning; i++) take(next(), 0);
  // The first conversations begin together; measure after they have mixed.
  core.advance(seconds / 4);
  const before = answered;
  core.advance(seconds);
  return (answered - before) / (seconds * 0.75);
}

/** An open-loop run: `warmupSeconds` first, then `seconds` of arrivals that are measured until all are answered. */
export function benchmark(
  parameters: EngineParameters,
  shape: ConversationShape,
  requestsPerSecond: number,
  { warmupSeconds, seconds, seed }: { warmupSeconds: number; seconds: number; seed: number },
): BenchmarkResult {
  const endAt = warmupSeconds + seconds;
  const dialogue = new Dialogue(parameters.blockTokens);
  const measured = new Map<Sequence, number>();
  let completed = 0;
  const core = new EngineCore({ ...parameters, maxWaiting: Number.POSITIVE_INFINITY }, (sequence, at) => {
    if (!sequence.finished) return;
    if (at >= warmupSeconds && at < endAt) completed++;
    if (sequence.arrivedAt >= warmupSeconds) measured.set(sequence, at);
  });
  let offered = 0;
  for (const turn of conversationTurns(shape, requestsPerSecond, new Random(seed, 'benchmark'), 'v')) {
    if (turn.atSeconds >= endAt) break;
    if (turn.atSeconds >= warmupSeconds) offered++;
    core.submit(dialogue.request(turn), turn.atSeconds);
  }
  while (core.nextEventAt < Number.POSITIVE_INFINITY) core.advance(core.nextEventAt);
  const mean = (value: (sequence: Sequence, endedAt: number) => number) => {
    let sum = 0;
    for (const [sequence, endedAt] of measured) sum += value(sequence, endedAt);
    return sum / measured.size;
  };
  return {
    offeredRps: offered / seconds,
    completedRps: completed / seconds,
    promptTokens: mean(({ request }) => request.promptTokens),
    uncachedPromptTokens: mean(({ request, cachedTokens }) => request.promptTokens - cachedTokens),
    outputTokens: mean(({ request }) => request.outputTokens),
    ttftSeconds: mean(({ firstTokenAt, arrivedAt }) => firstTokenAt - arrivedAt),
    tbotSeconds: mean(({ request, firstTokenAt }, endedAt) =>
      request.outputTokens > 1 ? (endedAt - firstTokenAt) / (request.outputTokens - 1) : 0,
    ),
  };
}
