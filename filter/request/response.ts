// What the headers of a response say, fetched by one host call.

import { ATTEMPTS_HEADER, DECISION_HEADER } from '../../wire/names';
import { getHeaders, RESPONSE_HEADERS } from '../abi/host';
import { RESULT, resultAt, resultLength } from '../abi/memory';
import { equalsIgnoringCase, sameName, startsWith, Text } from '../abi/text';
import { LOAD_HEADER, LOAD_HEADER_BINARY } from './load-report';

const STATUS = new Text(':status');
const ATTEMPTS = new Text(ATTEMPTS_HEADER);
const TYPE = new Text('content-type');
const ENCODING = new Text('content-encoding');
const EVENT_STREAM = new Text('text/event-stream');
const JSON = new Text('application/json');
const IDENTITY = new Text('identity');
const DECISION = new Text(DECISION_HEADER);

export let status: u32 = 0;
/** -1 when unknown; 0 when Envoy gave up before the first. */
export let attempts: i32 = -1;
export let isStream: bool = false;
/** The body is text that may tell tokens. */
export let isReadable: bool = false;
/** It tells a decision already. */
export let hasDecision: bool = false;
/** Load reports; 0 if there are none. */
export let loadAt: usize = 0;
export let loadLength: usize = 0;
export let binaryLoadAt: usize = 0;
export let binaryLoadLength: usize = 0;

/** Reads the response headers of the effective context; addresses hold until the next callback. */
// @ts-ignore: decorator
@inline
export function readResponse(): void {
  status = 0;
  attempts = -1;
  isStream = false;
  hasDecision = false;
  loadAt = 0;
  binaryLoadAt = 0;
  let isJson = false;
  let isEncoded = false;
  store<u64>(RESULT, 0);
  getHeaders(RESPONSE_HEADERS, RESULT, RESULT + 4);
  if (resultLength() < 4) return;
  let lengths = resultAt() + 4;
  let name = lengths + ((<usize>load<u32>(resultAt())) << 3);
  for (let left = load<u32>(resultAt()); left > 0; left--) {
    const nameLength = <usize>load<u32>(lengths);
    const length = <usize>load<u32>(lengths, 4);
    const value = name + nameLength + 1;
    switch (<i32>nameLength) {
      case 7: {
        if (sameName(name, STATUS.at, 7)) status = number(value, length);
        break;
      }
      case 9: {
        if (sameName(name, DECISION.at, 9)) hasDecision = true;
        break;
      }
      case 12: {
        if (!sameName(name, TYPE.at, 12)) break;
        isJson = startsWith(value, length, JSON);
        isStream = !isJson && startsWith(value, length, EVENT_STREAM);
        break;
      }
      case 16: {
        if (sameName(name, ENCODING.at, 16)) isEncoded = !equalsIgnoringCase(value, length, IDENTITY);
        break;
      }
      case 21: {
        if (sameName(name, ATTEMPTS.at, 21)) {
          attempts = <i32>number(value, length);
        } else if (sameName(name, LOAD_HEADER.at, 21)) {
          loadAt = value;
          loadLength = length;
        }
        break;
      }
      case 25: {
        if (!sameName(name, LOAD_HEADER_BINARY.at, 25)) break;
        binaryLoadAt = value;
        binaryLoadLength = length;
        break;
      }
    }
    lengths += 8;
    name = value + length + 1;
  }
  isReadable = (isStream || isJson) && !isEncoded;
}

function number(at: usize, length: usize): u32 {
  let value: u32 = 0;
  for (let i: usize = 0; i < min<usize>(length, 9); i++) {
    const digit = <u32>load<u8>(at + i) - 48;
    if (digit > 9) return 0;
    value = value * 10 + digit;
  }
  return value;
}
