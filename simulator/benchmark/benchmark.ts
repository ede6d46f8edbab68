import { EngineCore, type Sequence } from '../engine/engine-core.js';
import type { EngineParameters } from '../engine/parameters.js';
import { type ConversationShape, conversation, conversationTurns, type Turn } from '../load/conversations.js';
import { Dialogue } from '../load/dialogue.js';
import { Random } from '../random.js';

/** A run of one replica in virtual time; means over the requests that arrived while it was measured. */
export interface BenchmarkResult {
  /** Requests per second that arrived, refused ones included, and that were answered in the same time. */
  readonly offeredRps: number;
  readonly completedRps: number;
  readonly promptTokens: number;
  /** Prompt tokens that were not in the prefix cache. */
  readonly uncachedPromptTokens: number;
  readonly outputTokens: number;
  readonly ttftSeconds: number;
  /** Seconds between output tokens. */
  readonly tbotSeconds: number;
  readonly e2eSeconds: number;
  readonly requests: number;
  readonly durationSeconds: number;
}

/** Seconds that are left out at the beginning, and that are measured after them. */
export interface Span {
  readonly warmupSeconds: number;
  readonly seconds: number;
}

/** Conversations send their turns when they are due, however slow the answers. */
export function openLoop(
  parameters: EngineParameters,
  shape: ConversationShape,
  requestsPerSecond: number,
  span: Span,
  seed: number,
): BenchmarkResult {
  const run = new Run(parameters, span);
  for (const turn of conversationTurns(shape, requestsPerSecond, new Random(seed), 'open')) {
    if (turn.atSeconds >= run.endAt) break;
    run.submit(turn, turn.atSeconds);
  }
  return run.result();
}

/** So many conversations at once, each sending its next turn as soon as it has the answer to the last one. */
export function closedLoop(
  parameters: EngineParameters,
  shape: ConversationShape,
  concurrency: number,
  span: Span,
): BenchmarkResult {
  const random = new Random(1);
  const rest = new Map<Sequence, Turn[]>();
  const run = new Run(parameters, span, (sequence, at) => {
    const turns = rest.get(sequence)!;
    rest.delete(sequence);
    if (at < run.endAt) take(turns, at);
  });
  let conversations = 0;
  const take = (turns: Turn[], at: number) => {
    const [turn, ...later] =
      turns.length > 0 ? turns : conversation(shape, `closed-${conversations++}`, 0, random);
    rest.set(run.submit(turn!, at)!, later);
  };
  for (let i = 0; i < concurrency; i++) take([], 0);
  return run.result();
}

class Run {
  readonly endAt: number;
  readonly #core: EngineCore;
  readonly #span: Span;
  readonly #dialogue: Dialogue;
  /** When the measured requests were answered. */
  readonly #endedAt = new Map<Sequence, number>();
  #offered = 0;
  #completed = 0;

  constructor(
    parameters: EngineParameters,
    span: Span,
    onFinish: (sequence: Sequence, at: number) => void = () => {},
  ) {
    this.#span = span;
    this.endAt = span.warmupSeconds + span.seconds;
    this.#dialogue = new Dialogue(parameters.blockTokens);
    this.#core = new EngineCore(parameters, (sequence, at) => {
      if (!sequence.finished) return;
      if (this.#measures(at)) this.#completed++;
      if (this.#measures(sequence.arrivedAt)) this.#endedAt.set(sequence, at);
      onFinish(sequence, at);
    });
  }

  submit(turn: Turn, at: number): Sequence | undefined {
    if (this.#measures(at)) this.#offered++;
    return this.#core.submit(this.#dialogue.request(turn), at);
  }

  /** Runs until all requests are answered. */
  result(): BenchmarkResult {
    while (this.#core.nextEventAt < Number.POSITIVE_INFINITY) this.#core.advance(this.#core.nextEventAt);
    const { seconds } = this.#span;
    return {
      offeredRps: this.#offered / seconds,
      completedRps: this.#completed / seconds,
      promptTokens: this.#mean(({ request }) => request.promptTokens),
      uncachedPromptTokens: this.#mean(({ request, cachedTokens }) => request.promptTokens - cachedTokens),
      outputTokens: this.#mean(({ request }) => request.outputTokens),
      ttftSeconds: this.#mean(({ firstTokenAt, arrivedAt }) => firstTokenAt - arrivedAt),
      tbotSeconds: this.#mean(
        ({ request, firstTokenAt }, endedAt) =>
          (endedAt - firstTokenAt) / Math.max(1, request.outputTokens - 1),
      ),
      e2eSeconds: this.#mean(({ arrivedAt }, endedAt) => endedAt - arrivedAt),
      requests: this.#endedAt.size,
      durationSeconds: seconds,
    };
  }

  #measures(at: number): boolean {
    return at >= this.#span.warmupSeconds && at < this.endAt;
  }

  #mean(value: (sequence: Sequence, endedAt: number) => number): number {
    let sum = 0;
    for (const [sequence, endedAt] of this.#endedAt) sum += value(sequence, endedAt);
    return sum / this.#endedAt.size;
  }
}
