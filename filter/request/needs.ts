// Step 2: which of the snapshot's needs a request carries.

import * as L from '../../wire/layout';
import { equals, escapedAt } from '../abi/text';
import { AUDIO, FILE, Field, IMAGE } from '../body/fields';
import {
  Found,
  holdsTools,
  Kind,
  kindOf,
  lengthOf,
  messagesHold,
  mostOutputTokens,
  numberOf,
  promptBytes,
  textOf,
} from '../body/found';
import { modelNeeds, needCount, needs, ruleCount, rules, textAt, textLength } from '../snapshot/current';
import { tellsOnlyBody } from '../snapshot/validate';
import { headerNeeds, pathAt, pathLength, tenantAt, tenantLength } from './attributes';

/** Prompts are taken to have this many bytes a token. */
const BYTES_PER_TOKEN: u32 = 4;

// Bits of the needs in force.
/** Told by path or tenant. */
let plainNeeds: u64 = 0;
/** Told by the body. */
let bodyNeeds: u64 = 0;
/** Those of them that cannot be judged without it. */
let onlyBodyNeeds: u64 = 0;
/** Decide the priority of requests. */
let priorityNeeds: u64 = 0;

/** Prepares for the needs of the snapshot in force. */
export function sortNeeds(): void {
  plainNeeds = 0;
  bodyNeeds = 0;
  onlyBodyNeeds = 0;
  priorityNeeds = 0;
  for (let i: u32 = 0; i < needCount; i++) {
    const kind = load<u32>(needs + <usize>i * L.NEED_SIZE, L.NEED_KIND);
    const bit = (<u64>1) << (<u64>i);
    if (kind >= <u32>L.NEED_BY_BODY) bodyNeeds |= bit;
    else if (kind != L.NEED_BY_HEADER) plainNeeds |= bit;
    if (tellsOnlyBody(kind)) onlyBodyNeeds |= bit;
  }
  for (let i: u32 = 0; i < ruleCount; i++) {
    priorityNeeds |= (<u64>1) << (<u64>load<u32>(rules + <usize>i * L.RULE_SIZE, L.RULE_NEED));
  }
}

/** Bits of the needs that the attributes read last carry, and the body, if there is one that has been read. */
// @ts-ignore: decorator
@inline
export function carriedNeeds(body: usize): u64 {
  let bits = headerNeeds;
  for (let left = body ? plainNeeds | bodyNeeds : plainNeeds; left; left &= left - 1) {
    if (carries(needs + <usize>ctz(left) * L.NEED_SIZE, body)) bits |= left & -left;
  }
  return bits;
}

function carries(need: usize, body: usize): bool {
  const value = textAt(need + L.NEED_VALUE);
  const length = textLength(need + L.NEED_VALUE);
  switch (load<u32>(need, L.NEED_KIND)) {
    case L.NEED_BY_PATH:
      return isPathBelow(value, length);
    case L.NEED_BY_TENANT:
      return equals(tenantAt, tenantLength, value, length);
    case L.NEED_BY_BODY:
      return body != 0 && asksFor(changetype<Found>(body), load<u32>(need, L.NEED_NUMBER));
    case L.NEED_BY_PROMPT_TOKENS:
      return body != 0 && promptTokens(changetype<Found>(body)) > load<u32>(need, L.NEED_NUMBER);
    case L.NEED_BY_TOTAL_TOKENS:
      return body != 0 && totalTokens(changetype<Found>(body)) > <u64>load<u32>(need, L.NEED_NUMBER);
    case L.NEED_BY_SERVICE_TIER:
      return body != 0 && hasTier(changetype<Found>(body), value, length);
    case L.NEED_BY_PRIORITY:
      return body != 0 && isLessUrgent(changetype<Found>(body), load<u32>(need, L.NEED_NUMBER));
    default:
      return false;
  }
}

/** As it is written, or as engines read it: `/v1/%61udio` is served as `/v1/audio`. */
function isPathBelow(value: usize, length: usize): bool {
  if (pathLength >= length && memory.compare(pathAt, value, length) == 0) return true;
  const end = pathAt + pathLength;
  let at = pathAt;
  for (let i: usize = 0; i < length; i++) {
    if (at >= end) return false;
    const escaped = escapedAt(at, end);
    const byte = escaped < 0 ? <i32>load<u8>(at) : escaped;
    if (byte != <i32>load<u8>(value + i)) return false;
    at += escaped < 0 ? 1 : 3;
  }
  return true;
}

function asksFor(body: Found, feature: u32): bool {
  switch (feature) {
    case L.FEATURE_IMAGES:
      return (messagesHold(body) & IMAGE) != 0;
    case L.FEATURE_AUDIO:
      return (messagesHold(body) & AUDIO) != 0;
    case L.FEATURE_FILES:
      return (messagesHold(body) & FILE) != 0;
    case L.FEATURE_TOOLS:
      return holdsTools(body);
    case L.FEATURE_STREAM:
      return kindOf(body, Field.STREAM) == Kind.TRUE;
    default:
      return false;
  }
}

/** Tokens of the prompt, estimated. */
export function promptTokens(body: Found): u32 {
  return promptBytes(body) / BYTES_PER_TOKEN;
}

/** The same and the tokens that the answer may have at most. */
function totalTokens(body: Found): u64 {
  return <u64>promptTokens(body) + mostOutputTokens(body);
}

function hasTier(body: Found, value: usize, length: usize): bool {
  return (
    kindOf(body, Field.SERVICE_TIER) == Kind.TEXT &&
    equals(textOf(body, Field.SERVICE_TIER), <usize>lengthOf(body, Field.SERVICE_TIER), value, length)
  );
}

/** As vLLM has it: a larger number waits longer. */
function isLessUrgent(body: Found, above: u32): bool {
  return kindOf(body, Field.PRIORITY) == Kind.NUMBER && numberOf(body, Field.PRIORITY) > <u64>above;
}

/** The priority of a request that carries these needs. */
// @ts-ignore: decorator
@inline
export function priorityFor(carried: u64): i32 {
  return carried & priorityNeeds ? firstPriority(carried) : 0;
}

function firstPriority(carried: u64): i32 {
  for (let i: u32 = 0; i < ruleCount; i++) {
    const rule = rules + <usize>i * L.RULE_SIZE;
    if ((carried >> <u64>load<u32>(rule, L.RULE_NEED)) & 1) return load<i32>(rule, L.RULE_PRIORITY);
  }
  return 0;
}

/** Whether the body may tell the priority of requests. */
// @ts-ignore: decorator
@inline
export function rulesReadBody(): bool {
  return (priorityNeeds & bodyNeeds) != 0;
}

/** Whether a model has needs that only the body can tell. */
// @ts-ignore: decorator
@inline
export function needsBody(model: usize): bool {
  for (let i: u32 = 0; i < load<u32>(model, L.MODEL_NEEDS_COUNT); i++) {
    if ((onlyBodyNeeds >> <u64>needOf(model, i)) & 1) return true;
  }
  return false;
}

/** Number of the i-th need that makes a difference to a model. */
// @ts-ignore: decorator
@inline
export function needOf(model: usize, i: u32): u32 {
  return load<u32>(modelNeeds + ((<usize>(load<u32>(model, L.MODEL_NEEDS_START) + i)) << 2));
}
