// Why a request went where it went: for the reason header, for counters and for error codes.

import { Text } from './abi/text';

/** To the owner of its segment. */
export const PLANNED: u8 = 0;
/** As planned, at the next point of a sequence that fills the partition evenly. */
export const NO_KEY: u8 = 1;
/** To the segment's backup, because the owner is not usable. */
export const GUARDRAIL: u8 = 2;
/** To the next usable engine of the pool, because the backup is not usable either. */
export const SCAN: u8 = 3;
/** Nobody looks usable, so health is ignored and traffic spread as planned. */
export const FLOOR: u8 = 4;
/** No model is asked for: passed to a usable engine. */
export const PASSED: u8 = 5;
/** A retry that Envoy made was answered. */
export const RETRY: u8 = 6;
// The filter's own answers.
export const SHED: u8 = 7;
export const UNAVAILABLE: u8 = 8;
export const MODEL_NOT_FOUND: u8 = 9;
export const MODEL_MISSING: u8 = 10;
export const STARTING: u8 = 11;
export const UNSUPPORTED_TYPE: u8 = 12;
export const UNSUPPORTED_ENCODING: u8 = 13;
export const INVALID_JSON: u8 = 14;
export const BODY_TOO_LARGE: u8 = 15;
export const NEED_UNMET: u8 = 16;
/** Envoy picks the host. */
export const NATIVE: u8 = 17;
/** To another engine, because the owner has more in flight than it should. */
export const OVERFLOW: u8 = 18;
/** Refused, because all have as many in flight as this Envoy may send them. */
export const OVERLOADED: u8 = 19;
export const INVALID_FORM: u8 = 20;
/** To the owner of its key's second point, where the conversation began because that had clearly less in flight. */
export const PLACED: u8 = 21;
export const REASONS: i32 = 22;

const words: StaticArray<string> = [
  'planned',
  'no_key',
  'guardrail',
  'scan',
  'floor',
  'passed',
  'retry',
  'shed',
  'unavailable',
  'model_not_found',
  'model_missing',
  'starting',
  'unsupported_type',
  'unsupported_encoding',
  'invalid_json',
  'body_too_large',
  'need_unmet',
  'native',
  'overflow',
  'overloaded',
  'invalid_form',
  'placed',
];
const names: StaticArray<Text> = new StaticArray<Text>(REASONS);
const codes: StaticArray<Text> = new StaticArray<Text>(REASONS);
for (let i = 0; i < REASONS; i++) {
  codes[i] = new Text(words[i]);
  names[i] = new Text(words[i].replaceAll('_', '-'));
}

/** The reason as headers spell it, with hyphens. */
export function reasonName(reason: u8): Text {
  return unchecked(names[reason]);
}

/** The reason as counters and error codes spell it, with underscores. */
export function reasonCode(reason: u8): Text {
  return unchecked(codes[reason]);
}
