// Requests that ask for no more than the tokens of a text. Clients send one with every turn, or more, and an engine does no
// work for them that any plan knows of.

import { Text } from '../abi/text';
import { pathAt, pathBegins, pathLength } from './attributes';

// vLLM, SGLang, TGI and llama.cpp.
const paths: StaticArray<Text> = [
  new Text('/v1/messages/count_tokens'),
  new Text('/v1/responses/input_tokens'),
  new Text('/tokenize'),
  new Text('/detokenize'),
  new Text('/v1/tokenize'),
  new Text('/v1/detokenize'),
];

/** Whether the request whose headers were read last asks for tokens alone. */
export function asksForTokens(): bool {
  for (let i = 0; i < paths.length; i++) if (isPath(unchecked(paths[i]))) return true;
  return false;
}

/** Behind a path that only begins so, or holds `..`, an engine or a server before it may find any other. */
function isPath(path: Text): bool {
  return pathBegins(path) && (pathLength == path.length || load<u8>(pathAt + path.length) == 0x3f);
}
