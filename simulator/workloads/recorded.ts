import type { Random } from '../random.js';
import { type ConversationSource, measured } from './conversation-source.js';

/** Means over the requests of a frontend. */
export type RequestMeans = ConversationSource['expected'];

const MOST_TURNS = 50;

/**
 * Conversations with such means, of which nothing else is known: after each turn there is another one with the share of
 * follow-ups as its probability, after a gap that may be of any length around its mean; new tokens and answers are
 * between half and one and a half times their means.
 */
export function recorded(means: RequestMeans): ConversationSource {
  const around = (mean: number, random: Random) =>
    Math.max(1, Math.round(random.between({ min: mean / 2, max: (3 * mean) / 2 })));
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
