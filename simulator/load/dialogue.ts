import type { EngineRequest } from '../engine/engine-core.js';
import { MESSAGE_OVERHEAD_TOKENS, PROMPT_OVERHEAD_TOKENS } from '../engine/tokens.js';
import type { Turn } from './conversations.js';

const MAX_BLOCKS = 2 ** 20;

/** Turns of conversations as requests to an engine model: sizes and block ids, no text. */
export class Dialogue {
  readonly #blockTokens: number;
  readonly #open = new Map<string, { readonly number: number; tokens: number }>();
  #conversations = 0;

  constructor(blockTokens: number) {
    this.#blockTokens = blockTokens;
  }

  /** The request of a turn; turns of one conversation come in order. */
  request(turn: Turn): EngineRequest {
    const id = turn.conversationId;
    const state = this.#open.get(id) ?? { number: this.#conversations++, tokens: 0 };
    state.tokens += MESSAGE_OVERHEAD_TOKENS + turn.messageTokens;
    const promptTokens = state.tokens + PROMPT_OVERHEAD_TOKENS;
    state.tokens += MESSAGE_OVERHEAD_TOKENS + turn.outputTokens;
    if (turn.last) this.#open.delete(id);
    else this.#open.set(id, state);
    const length = Math.floor((promptTokens + turn.outputTokens) / this.#blockTokens);
    const blockIds = Array.from({ length }, (_, index) => state.number * MAX_BLOCKS + index);
    return { promptTokens, outputTokens: turn.outputTokens, blockIds };
  }
}
