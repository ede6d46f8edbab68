import type { BlockId } from './block-cache.js';

/**
 * The simulator's tokens: four characters of a message's text, and one token that names the role before it. A prompt
 * ends with the role of the answer, so that prompt and answer are exactly what the next turn's prompt begins with.
 */
export const TOKEN_CHARACTERS = 4;
export const MESSAGE_OVERHEAD_TOKENS = 1;
export const PROMPT_OVERHEAD_TOKENS = 1;

export interface Message {
  readonly role: string;
  readonly content: string;
}

/** One 32-bit hash per token of the prompt. */
export function promptTokens(messages: readonly Message[]): number[] {
  const tokens: number[] = [];
  for (const { role, content } of messages) {
    tokens.push(hash(role, 0, role.length, ROLE_SEED));
    appendText(tokens, content);
  }
  tokens.push(hash('assistant', 0, 9, ROLE_SEED));
  return tokens;
}

/** Words of the answer, one token each; a function of the prompt and its position, like decoding without sampling. */
export function answerWords(prompt: readonly number[], count: number): string[] {
  let state = prompt.reduce((mixed, token) => mix(mixed, token), TEXT_SEED);
  return Array.from({ length: count }, (_, index) => {
    state = mix(state, index);
    return ` ${WORD_LETTERS[state & 31]}${WORD_LETTERS[(state >>> 5) & 31]}${WORD_LETTERS[(state >>> 10) & 31]}`;
  });
}

/** Ids of the full blocks of prompt and answer; each names everything up to its end. */
export function blockIds(
  prompt: readonly number[],
  answer: readonly string[],
  blockTokens: number,
): BlockId[] {
  const tokens = [...prompt];
  for (const word of answer) appendText(tokens, word);
  const ids: BlockId[] = [];
  let low = TEXT_SEED;
  let high = ROLE_SEED;
  for (let i = 0; i < tokens.length; i++) {
    low = mix(low, tokens[i]!);
    high = mix(high, low ^ tokens[i]!);
    if ((i + 1) % blockTokens === 0) ids.push((high & 0xfffff) * 2 ** 32 + low);
  }
  return ids;
}

const ROLE_SEED = 0x9e3779b9;
const TEXT_SEED = 0x811c9dc5;
const WORD_LETTERS = 'abcdefghijklmnopqrstuvwxyz012345';

function appendText(tokens: number[], text: string): void {
  for (let start = 0; start < text.length; start += TOKEN_CHARACTERS) {
    tokens.push(hash(text, start, Math.min(start + TOKEN_CHARACTERS, text.length), TEXT_SEED));
  }
}

function hash(text: string, start: number, end: number, seed: number): number {
  let state = seed;
  for (let i = start; i < end; i++) state = mix(state, text.charCodeAt(i));
  return state;
}

/** FNV-1a with an avalanche step, on 32-bit words. */
function mix(state: number, word: number): number {
  const product = Math.imul(state ^ word, 0x01000193);
  return (product ^ (product >>> 15)) >>> 0;
}
