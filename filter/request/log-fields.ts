// What access logs can say of a request: filter state, set when the request is over and only when somebody asks.

import { LOG_STATE } from '../../wire/names';
import { setProperty } from '../abi/host';
import { begin, lengthFrom, putDecimal, putHex, Text } from '../abi/text';
import { Tokens } from '../body/tokens';
import { reasonName } from '../reasons';
import { Stream } from './streams';

/** Envoy puts this before the names itself. */
const WASM: i32 = 5;

const ENGINE = named('engine');
const PLAN = named('plan');
const REASON = named('reason');
const TTFT_MS = named('ttft_ms');
const PROMPT_TOKENS = named('prompt_tokens');
const CACHED_TOKENS = named('cached_tokens');
const OUTPUT_TOKENS = named('output_tokens');

function named(name: string): Text {
  return new Text(LOG_STATE.substring(WASM) + name);
}

/** Sets what is known of the stream, whose context must be the effective one. */
export function tellLog(stream: Stream): void {
  const plan = begin();
  putHex(stream.planId);
  setProperty(PLAN.at, PLAN.length, plan, lengthFrom(plan));
  const reason = reasonName(stream.reason);
  setProperty(REASON.at, REASON.length, reason.at, reason.length);
  if (!stream.entries) return;
  const engine = stream.served.engine;
  setProperty(ENGINE.at, ENGINE.length, engine.idAt, <usize>engine.idLength);
  if (stream.firstByteNs) set(TTFT_MS, (stream.firstByteNs - stream.startedNs) / 1_000_000);
  if (!stream.answer) return;
  const tokens = changetype<Tokens>(stream.answer);
  if (tokens.hasPrompt) set(PROMPT_TOKENS, tokens.prompt + tokens.besides);
  if (tokens.hasCached) set(CACHED_TOKENS, tokens.cached);
  if (tokens.output) set(OUTPUT_TOKENS, tokens.output);
}

function set(name: Text, value: u64): void {
  const text = begin();
  putDecimal(value);
  setProperty(name.at, name.length, text, lengthFrom(text));
}
