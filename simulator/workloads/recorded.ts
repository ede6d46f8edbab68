import { MESSAGE_OVERHEAD_TOKENS, PROMPT_OVERHEAD_TOKENS } from '../engine/tokens.js';
import type { Random } from '../random.js';
import { type ConversationSource, measured } from './conversation-source.js';

/** Means over requests. */
export type RequestMeans = ConversationSource['expected'];

const MOST_TURNS = 50;
/** New tokens and answers are at most so many times their means. */
const LARGEST = 1.5;

/**
 * Conversations with such means, of which nothing else is known: after each turn there is another one with the share of
 * follow-ups as its probability, after a gap that may be of any length around its mean; new tokens and answers are
 * between half and one and a half times their means.
 */
export function recorded(means: RequestMeans): ConversationSource {
  const around = (mean: number, random: Random) =>
    Math.max(1, Math.round(random.between({ min: (2 - LARGEST) * mean, max: LARGEST * mean })));
  return measured({
    conversation(id, startAt, random) {
      let turns = 1;
      while (turns < MOST_TURNS && random.unit() < means.followUpShare) turns++;
      let atSeconds = startAt;
      return Array.from({ length: turns }, (_, index) => {
        if (index > 0) atSeconds += random.exponential(means.turnGapSeconds);
        return {
          conversationId: id,
          index,
          atSeconds,
          messageTokens: around(means.uncachedPromptTokens, random),
          outputTokens: around(means.outputTokens, random),
          streamed: true,
          last: index === turns - 1,
        };
      });
    },
  });
}

/** Prompt and answer that no request of such conversations exceeds. */
export function largestRecorded({ uncachedPromptTokens, outputTokens }: RequestMeans): number {
  const turn = Math.ceil(LARGEST * uncachedPromptTokens) + Math.ceil(LARGEST * outputTokens);
  return MOST_TURNS * (turn + 2 * MESSAGE_OVERHEAD_TOKENS) + PROMPT_OVERHEAD_TOKENS;
}
