import type { Message } from '../engine/tokens.js';
import { TOKEN_CHARACTERS } from '../engine/tokens.js';
import { Random } from '../random.js';
import type { Turn } from './conversations.js';

const LETTERS = 'abcdefghijklmnopqrstuvwxyz     ';

/** What both sides of one conversation have said so far. */
export class Transcript {
  readonly #turns: { readonly user: string; answer?: string }[] = [];

  /** Everything said before, and the user's message of this turn. */
  messagesFor(turn: Turn): Message[] {
    this.#turns.push({ user: userMessage(turn) });
    return this.#turns.flatMap(({ user, answer }) => {
      const message = { role: 'user', content: user };
      return answer === undefined ? [message] : [message, { role: 'assistant', content: answer }];
    });
  }

  /** An answer may come after later turns have been sent, or never. */
  answer(turn: Turn, content: string): void {
    this.#turns[turn.index]!.answer = content;
  }
}

/** Text of so many tokens, of its own for each turn and the same in every run. */
function userMessage({ conversationId, index, messageTokens }: Turn): string {
  const random = new Random(index, conversationId);
  let text = '';
  while (text.length < messageTokens * TOKEN_CHARACTERS) text += LETTERS[random.bits() % LETTERS.length];
  return text;
}
