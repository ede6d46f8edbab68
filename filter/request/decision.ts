// What the response tells the client of the decision: `planned; engine="a"; plan="0123456789abcdef"`.

import { DECISION_HEADER } from '../../wire/names';
import { addHeader, replaceHeader, RESPONSE_HEADERS } from '../abi/host';
import { copyBytes } from '../abi/memory';
import { begin, lengthFrom, put, putByte, putBytes, putHex, Text } from '../abi/text';
import { PLANNED, reasonName } from '../reasons';
import { EngineState } from '../state/rows';
import { hasDecision } from './response';
import { Stream } from './streams';

const DECISION = new Text(DECISION_HEADER);
const ENGINE = new Text('; engine="');
const PLAN = new Text('; plan="');
const QUOTE: u8 = 0x22;
const OBSERVE = new Text('; mode=observe');

/**
 * Texts that were told lately, each in a place that its engine gives it, as almost every response tells the same of an engine. They
 * begin with the usual reason; from another they take what comes behind it.
 */
@unmanaged
class Told {
  /** Hash of the engine's id; no text if it has no length. */
  engine: u64;
  plan: u64;
  length: u32;
}

const PLACES: u64 = 128;
const TEXT: usize = offsetof<Told>();
/** As long as the usual reason, an id of MAX_ENGINE_ID_BYTES and a plan make it. */
const PLACE_SIZE: usize = 144;
const told: usize = memory.data(128 * 144, 8);
const usualLength: u32 = <u32>reasonName(PLANNED).length;

/** Where nothing is steered, the engine is the one decided on, if there is any, and the mode says so. */
// @ts-ignore: decorator
@inline
export function tellDecision(stream: Stream): void {
  const flow = stream.observed ? stream.decided : stream.served;
  if (!changetype<usize>(flow)) {
    const start = begin();
    put(reasonName(stream.reason));
    putPlan(stream.planId);
    put(OBSERVE);
    return tell(start, <u32>lengthFrom(start));
  }
  const text = textOf(flow.engine, stream.planId);
  if (stream.reason == PLANNED && !stream.observed) return tell(changetype<usize>(text) + TEXT, text.length);
  const start = begin();
  put(reasonName(stream.reason));
  putBytes(changetype<usize>(text) + TEXT + <usize>usualLength, <usize>(text.length - usualLength));
  if (stream.observed) put(OBSERVE);
  tell(start, <u32>lengthFrom(start));
}

/** Of a request that was let go instead of refused. */
export function tellLetGo(stream: Stream): void {
  const start = begin();
  put(reasonName(stream.reason));
  put(OBSERVE);
  tell(start, <u32>lengthFrom(start));
}

// @ts-ignore: decorator
@inline
function textOf(engine: EngineState, plan: u64): Told {
  const text = changetype<Told>(told + <usize>(engine.key & (PLACES - 1)) * PLACE_SIZE);
  if (text.engine != engine.key || text.plan != plan || !text.length) compose(text, engine, plan);
  return text;
}

function compose(text: Told, engine: EngineState, plan: u64): void {
  const start = begin();
  put(reasonName(PLANNED));
  put(ENGINE);
  putBytes(engine.idAt, <usize>engine.idLength);
  putByte(QUOTE);
  putPlan(plan);
  text.engine = engine.key;
  text.plan = plan;
  text.length = <u32>lengthFrom(start);
  copyBytes(changetype<usize>(text) + TEXT, start, <usize>text.length);
}

function putPlan(plan: u64): void {
  put(PLAN);
  putHex(plan);
  putByte(QUOTE);
}

/** Sets the header in the response that was read last. */
// @ts-ignore: decorator
@inline
function tell(value: usize, length: u32): void {
  if (hasDecision) replaceHeader(RESPONSE_HEADERS, DECISION.at, DECISION.length, value, <usize>length);
  else addHeader(RESPONSE_HEADERS, DECISION.at, DECISION.length, value, <usize>length);
}
