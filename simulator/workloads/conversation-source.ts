import { type ConversationShape, conversation, type Turn } from '../load/conversations.js';
import { mean, type Random } from '../random.js';

/** Where conversations come from. */
export interface ConversationSource {
  readonly meanTurns: number;
  /** What an operator would write into the configuration about their requests. */
  readonly expected: {
    readonly promptTokens: number;
    readonly uncachedPromptTokens: number;
    readonly outputTokens: number;
    readonly followUpShare: number;
    readonly turnGapSeconds: number;
  };
  /** The turns of one conversation that begins then. */
  conversation(id: string, startAt: number, random: Random): readonly Turn[];
}

/** Conversations of a shape; `sizes` as measured where every conversation stays with its engine. */
export function shaped(
  shape: ConversationShape,
  sizes: {
    readonly promptTokens: number;
    readonly uncachedPromptTokens: number;
    readonly outputTokens: number;
  },
): ConversationSource {
  const meanTurns = mean(shape.turns);
  return {
    meanTurns,
    expected: { ...sizes, followUpShare: 1 - 1 / meanTurns, turnGapSeconds: mean(shape.turnGapSeconds) },
    conversation: (id, startAt, random) => conversation(shape, id, startAt, random),
  };
}
