import { type ConversationShape, conversation, type Turn } from '../load/conversations.js';
import { Dialogue } from '../load/dialogue.js';
import { mean, Random } from '../random.js';

/** Times from 0 on, in seconds, in order; Infinity when there are no more. */
export interface Arrivals {
  next(): number;
}

/** Where conversations come from. */
export interface ConversationSource {
  readonly meanTurns: number;
  /** Prompt and answer of the largest of many requests. */
  readonly largestTokens: number;
  /** What an operator would write into the configuration about their requests. */
  readonly expected: {
    readonly promptTokens: number;
    readonly uncachedPromptTokens: number;
    readonly outputTokens: number;
    readonly followUpShare: number;
    readonly turnGapSeconds: number;
  };
  /** When conversations begin, at this many a second; default: a Poisson stream. */
  arrivals?(conversationsPerSecond: number, random: Random): Arrivals;
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
  const own = (id: string, startAt: number, random: Random) => conversation(shape, id, startAt, random);
  return {
    meanTurns,
    largestTokens: measured({ conversation: own }).largestTokens,
    expected: { ...sizes, followUpShare: 1 - 1 / meanTurns, turnGapSeconds: mean(shape.turnGapSeconds) },
    conversation: own,
  };
}

/** Drawn for the means of a source that has no formula for them. */
const DRAWN = 4000;
const BLOCK_TOKENS = 16;

/** A source with what an operator would measure: means over requests whose conversations stay with their engine. */
export function measured(source: Pick<ConversationSource, 'conversation' | 'arrivals'>): ConversationSource {
  const random = new Random(1, 'measured');
  const dialogue = new Dialogue(BLOCK_TOKENS);
  let requests = 0;
  let largestTokens = 0;
  let gaps = 0;
  let gapSeconds = 0;
  const sums = { promptTokens: 0, uncachedPromptTokens: 0, outputTokens: 0 };
  for (let drawn = 0; drawn < DRAWN; drawn++) {
    let cached = 0;
    let before = 0;
    for (const turn of source.conversation(`drawn-${drawn}`, 0, random)) {
      const { promptTokens, outputTokens } = dialogue.request(turn);
      sums.promptTokens += promptTokens;
      largestTokens = Math.max(largestTokens, promptTokens + outputTokens);
      sums.uncachedPromptTokens += promptTokens - Math.min(cached, promptTokens);
      sums.outputTokens += outputTokens;
      cached = BLOCK_TOKENS * Math.floor((promptTokens + outputTokens) / BLOCK_TOKENS);
      if (turn.index > 0) {
        gaps++;
        gapSeconds += turn.atSeconds - before;
      }
      before = turn.atSeconds;
      requests++;
    }
  }
  const meanTurns = requests / DRAWN;
  return {
    ...source,
    meanTurns,
    largestTokens,
    expected: {
      promptTokens: Math.round(sums.promptTokens / requests),
      uncachedPromptTokens: Math.round(sums.uncachedPromptTokens / requests),
      outputTokens: Math.max(1, Math.round(sums.outputTokens / requests)),
      followUpShare: 1 - 1 / meanTurns,
      turnGapSeconds: gaps === 0 ? 1 : gapSeconds / gaps,
    },
  };
}
