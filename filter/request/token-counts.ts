// Requests that ask for no more than the tokens of a text. Clients send one with every turn, or more, and an engine does no
// work for them that any plan knows of.

import { sameName, Text } from '../abi/text';
import { lengthBeforeQuery, pathAt } from './attributes';

// vLLM, SGLang, TGI and llama.cpp.
const paths: StaticArray<Text> = [
  new Text('/v1/messages/count_tokens'),
  new Text('/v1/responses/input_tokens'),
  new Text('/tokenize'),
  new Text('/detokenize'),
  new Text('/v1/tokenize'),
  new Text('/v1/detokenize'),
];

/** Bit i: one of them has i bytes. */
let lengths: u32 = 0;
for (let i = 0; i < paths.length; i++) lengths |= 1 << (<u32>paths[i].length);

/** Whether the request whose headers were read last asks for tokens alone. */
export function asksForTokens(): bool {
  // Behind a path that only begins so, or holds `..`, an engine or a server before it may find any other.
  const length = lengthBeforeQuery();
  return length < 32 && ((lengths >> <u32>length) & 1) != 0 && isOneOf(length);
}

function isOneOf(length: usize): bool {
  for (let i = 0; i < paths.length; i++) {
    const path = unchecked(paths[i]);
    if (path.length == length && sameName(path.at, pathAt, length)) return true;
  }
  return false;
}
