// Wiring: the callbacks of the proxy-wasm ABI 0.2.1 that the filter uses.

import './abi/abort';
import { CONTINUE, getBuffer, getProperty, PLUGIN_CONFIGURATION, STOP, setTickPeriod } from './abi/host';
import { RESULT, resetArena, resultAt, resultLength } from './abi/memory';
import { seedRandom } from './abi/random';
import { clear, Text } from './abi/text';
import { readConfiguration, syncPeriodMs } from './config';
import { watchHeaders } from './request/attributes';
import { chooseKeyFields } from './request/body';
import { decideNew, decideOnBody, decideOnTrailers } from './request/decide';
import { noteBody, noteEnd, noteResponse, noteTrailers } from './request/outcome';
import { findStream, HELD, READING, Stream } from './request/streams';
import { defineCounters } from './state/counters';
import { isRoot, noteAnswer, setRoot, startSync, tick } from './sync/sync';

export { malloc } from './abi/memory';

export function proxy_abi_version_0_2_1(): void {}

const NODE_ID = new Text('xds\0node\0id');
let incarnation: u64 = 0;

export function proxy_on_configure(root: u32, size: u32): u32 {
  enter();
  store<u64>(RESULT, 0);
  getBuffer(PLUGIN_CONFIGURATION, 0, size, RESULT, RESULT + 4);
  if (!readConfiguration(resultAt(), resultLength())) return 0;
  if (!incarnation) incarnation = seedRandom();
  store<u64>(RESULT, 0);
  getProperty(NODE_ID.at, NODE_ID.length, RESULT, RESULT + 4);
  const length = min<usize>(resultLength(), 256);
  const node = heap.alloc(max<usize>(length, 1));
  memory.copy(node, resultAt(), length);
  watchHeaders();
  chooseKeyFields();
  defineCounters();
  setRoot(root);
  if (!startSync(incarnation, node, length)) return 0;
  setTickPeriod(syncPeriodMs);
  return 1;
}

export function proxy_on_tick(root: u32): void {
  enter();
  // Envoy keeps the old root context of a changed configuration until its last stream ends.
  if (isRoot(root)) tick();
  else setTickPeriod(0);
}

export function proxy_on_http_call_response(
  root: u32,
  call: u32,
  headers: u32,
  bodySize: u32,
  trailers: u32,
): void {
  enter();
  if (isRoot(root)) noteAnswer(call, headers, bodySize);
}

export function proxy_on_request_headers(context: u32, headers: u32, ended: u32): i32 {
  enter();
  return decideNew(context, ended != 0);
}

export function proxy_on_request_body(context: u32, size: u32, ended: u32): i32 {
  const stream = findStream(context);
  if (!stream) return CONTINUE;
  enter();
  const state = changetype<Stream>(stream).state;
  if (state == READING) return decideOnBody(changetype<Stream>(stream), size, ended != 0);
  return state == HELD ? STOP : CONTINUE;
}

export function proxy_on_request_trailers(context: u32, trailers: u32): i32 {
  const stream = findStream(context);
  if (!stream || changetype<Stream>(stream).state != READING) return CONTINUE;
  enter();
  return decideOnTrailers(changetype<Stream>(stream));
}

export function proxy_on_response_headers(context: u32, headers: u32, ended: u32): i32 {
  const stream = findStream(context);
  if (stream) {
    enter();
    noteResponse(changetype<Stream>(stream), ended != 0);
  }
  return CONTINUE;
}

export function proxy_on_response_body(context: u32, size: u32, ended: u32): i32 {
  const stream = findStream(context);
  if (stream) noteBody(changetype<Stream>(stream), size, ended != 0);
  return CONTINUE;
}

export function proxy_on_response_trailers(context: u32, trailers: u32): i32 {
  const stream = findStream(context);
  if (!stream) return CONTINUE;
  enter();
  noteTrailers(changetype<Stream>(stream));
  noteBody(changetype<Stream>(stream), 0, true);
  return CONTINUE;
}

/** The last word on a request: to be told of the end of its context, too, would cost each another callback. */
export function proxy_on_log(context: u32): void {
  const stream = findStream(context);
  if (!stream) return;
  enter();
  noteEnd(changetype<Stream>(stream));
}

/** Every callback starts with empty scratch memory. */
// @ts-ignore: decorator
@inline
function enter(): void {
  resetArena();
  clear();
}
