import type { ConversationShape } from '../load/conversations.js';

/** Conversations of the demo. */
export const conversationShape: ConversationShape = {
  turns: { min: 2, max: 6 },
  turnGapSeconds: { min: 2, max: 3 },
  firstMessageTokens: { min: 160, max: 240 },
  laterMessageTokens: { min: 40, max: 80 },
  outputTokens: { min: 32, max: 40 },
  streamedShare: 0.5,
};
