import { Random } from '../random.js';
import type { ConversationSource } from './conversation-source.js';

/**
 * A share of the conversations of a source under few keys: fleets of agents that send the name of their job where
 * others send that of the conversation.
 */
export function withHotKeys(
  source: ConversationSource,
  { share, keys }: { readonly share: number; readonly keys: number },
): ConversationSource {
  return {
    ...source,
    conversation(id, startAt, random) {
      const turns = source.conversation(id, startAt, random);
      // Of the id alone, so that the conversations are the same with and without hot keys.
      const own = new Random(1, id);
      if (own.unit() >= share) return turns;
      const key = `hot-${own.integer({ min: 0, max: keys - 1 })}`;
      return turns.map((turn) => ({ ...turn, key }));
    },
  };
}
