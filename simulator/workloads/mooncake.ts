import { readFileSync } from 'node:fs';
import { packageFile } from '../../xds-server/package-file.js';
import type { ConversationShape, Turn } from '../load/conversations.js';
import { meanOf } from '../load/statistics.js';
import type { ConversationSource } from './conversation-source.js';

/** Tokens of the trace for one of ours: prompts, answers and caches shrink alike, so hits stay what they are. */
export const MOONCAKE_SCALE = 8;
/** A turn brings at least so many new tokens, also where the trace's prompt is shorter than what was said before. */
const LEAST_MESSAGE_TOKENS = 8;

/**
 * Requests of about the same new tokens and answers, without anything cached: what engines are benchmarked with for
 * profiles that fit these conversations.
 */
export const longPrompts: ConversationShape = {
  turns: { min: 1, max: 1 },
  turnGapSeconds: { min: 1, max: 1 },
  firstMessageTokens: { min: 200, max: 1480 },
  laterMessageTokens: { min: 1, max: 1 },
  outputTokens: { min: 10, max: 76 },
  streamedShare: 1,
};

interface TraceTurn {
  readonly gapSeconds: number;
  readonly messageTokens: number;
  readonly outputTokens: number;
}

/**
 * Conversations as in one of Mooncake's traces, with its gaps, drawn at random: more load is more conversations, and
 * time is never compressed, which would bring turns closer and inflate hits.
 */
export function mooncake(
  trace: 'mooncake-conversations' | 'mooncake-synthetic' = 'mooncake-conversations',
  scale = MOONCAKE_SCALE,
): ConversationSource {
  const conversations = readConversations(trace, scale);
  const turns = conversations.flat();
  const meanTurns = turns.length / conversations.length;
  const later = conversations.flatMap((conversation) => conversation.slice(1));
  return {
    meanTurns,
    largestTokens: Math.max(
      ...conversations.map(
        (conversation) => promptTokens(conversation).at(-1)! + conversation.at(-1)!.outputTokens,
      ),
    ),
    expected: {
      promptTokens: Math.round(meanOf(conversations.flatMap(promptTokens))),
      uncachedPromptTokens: Math.round(meanOf(turns.map(({ messageTokens }) => messageTokens))),
      outputTokens: Math.round(meanOf(turns.map(({ outputTokens }) => outputTokens))),
      followUpShare: 1 - 1 / meanTurns,
      turnGapSeconds: meanOf(later.map(({ gapSeconds }) => gapSeconds)),
    },
    conversation(id, startAt, random) {
      const chosen = conversations[random.integer({ min: 0, max: conversations.length - 1 })]!;
      let atSeconds = startAt;
      return chosen.map(({ gapSeconds, messageTokens, outputTokens }, index): Turn => {
        // The trace's times are whole multiples of 3 s.
        if (index > 0) atSeconds += Math.max(1, gapSeconds + 3 * (random.unit() - 0.5));
        const last = index === chosen.length - 1;
        return { conversationId: id, index, atSeconds, messageTokens, outputTokens, streamed: true, last };
      });
    },
  };
}

function promptTokens(conversation: readonly TraceTurn[]): number[] {
  let context = 0;
  return conversation.map(({ messageTokens, outputTokens }) => {
    context += messageTokens;
    const prompt = context;
    context += outputTokens;
    return prompt;
  });
}

function readConversations(trace: string, scale: number): TraceTurn[][] {
  const text = readFileSync(packageFile('simulator', 'data', `${trace}.csv`), 'utf8');
  const conversations: TraceTurn[][] = [];
  let context = 0;
  for (const line of text.trim().split('\n').slice(1)) {
    const [conversation, gapSeconds, input, output] = line.split(',').map(Number) as [
      number,
      number,
      number,
      number,
    ];
    if (conversation === conversations.length) {
      conversations.push([]);
      context = 0;
    }
    const messageTokens = Math.max(LEAST_MESSAGE_TOKENS, Math.round(input / scale) - context);
    const outputTokens = Math.max(1, Math.round(output / scale));
    context += messageTokens + outputTokens;
    conversations[conversation]!.push({ gapSeconds, messageTokens, outputTokens });
  }
  return conversations;
}
