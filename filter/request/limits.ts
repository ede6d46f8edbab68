// Which time limits hold: told to Envoy's routes by a header, because how long an engine may be silent depends on what
// it was asked for.

import { MEDIUM_PROMPT_TOKENS, ROUTE_HEADER, ROUTES, SHORT_PROMPT_TOKENS } from '../../wire/names';
import { addHeader, REQUEST_HEADERS } from '../abi/host';
import { Text } from '../abi/text';
import { Stream } from './streams';

const ROUTE = new Text(ROUTE_HEADER);
const SHORT = new Text(ROUTES[0]);
const MEDIUM = new Text(ROUTES[1]);
const LONG = new Text(ROUTES[2]);

/** Names the route of a request for a stream; what a client sent has been removed, and other requests have no name. */
// @ts-ignore: decorator
@inline
export function nameRoute(stream: Stream): void {
  if (stream.asksForStream) nameLimits(stream.promptTokens);
}

function nameLimits(tokens: u32): void {
  const route = tokens <= <u32>SHORT_PROMPT_TOKENS ? SHORT : tokens <= <u32>MEDIUM_PROMPT_TOKENS ? MEDIUM : LONG;
  addHeader(REQUEST_HEADERS, ROUTE.at, ROUTE.length, route.at, route.length);
}
