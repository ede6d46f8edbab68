// The error that a stream ends with, where it tells one: an event by the name of `error` or `response.failed`, or data with
// an `error` in them. Engines tell so what is wrong with a request as well as that they cannot serve.

import { contains, same, Text } from '../abi/text';
import { afterColon, endOfText, isErrorName, lineEnds, skipSpace } from './tokens';

/** What a stream's end tells. */
export enum Told {
  NO_ERROR,
  /** One that may be the request's. */
  ERROR,
  /** One that by its status, or its name, is a 5xx. */
  FAILURE,
  /** The data of the last event begin before these bytes. */
  CUT,
  /** The same, and their end tells an error. */
  CUT_ERROR,
}

const DATA = new Text('data:');
const EVENT = new Text('event:');
const ERROR = new Text('"error"');
const TYPE = new Text('"type"');
const CODE = new Text('code');
const KIND = new Text('type');
const STATUS = new Text('status');
const STATUS_CODE = new Text('status_code');

/** How data end that tell their name last, as Pydantic writes them. */
const ENDS_FAILED = new Text('"response.failed"}');

// What the types and codes of such errors have in them.
const INTERNAL = new Text('nternal');
const SERVER_ERROR = new Text('server_error');
const API_ERROR = new Text('api_error');

/** What is told by the last event but `[DONE]` in the last bytes of a stream, or by as much of it as there is. */
export function toldAtEnd(at: usize, length: usize): Told {
  let end = at + length;
  let data: usize = 0;
  let dataEnd: usize = 0;
  while (true) {
    while (end > at && isLineEnd(load<u8>(end - 1))) end--;
    if (end == at) break;
    const start = lineStart(at, end);
    if (begins(start, end, DATA)) {
      if (data) break;
      const contents = skipSpace(start + DATA.length, end);
      if (contents < end && load<u8>(contents) == 0x7b) {
        data = contents + 1;
        dataEnd = end;
      } else if (contents < end && load<u8>(contents) != 0x5b) {
        break;
      }
    } else if (data) {
      if (begins(start, end, EVENT) && namesError(start, end)) return blame(objectIn(data, dataEnd), dataEnd);
      break;
    } else if (start == at) {
      return endsFailed(at, end) ? Told.CUT_ERROR : Told.CUT;
    }
    end = start;
  }
  return data ? toldBy(data, dataEnd) : Told.NO_ERROR;
}

function endsFailed(at: usize, end: usize): bool {
  const length = ENDS_FAILED.length;
  return end >= at + length && same(end - length, ENDS_FAILED.at, length);
}

/** What data tell of themselves; they begin behind their brace. */
function toldBy(data: usize, end: usize): Told {
  const name = skipSpace(data, end);
  if (begins(name, end, ERROR)) {
    const value = afterColon(name + ERROR.length, end);
    if (value < end && load<u8>(value) == 0x7b) return blame(value + 1, end);
    return value < end && load<u8>(value) == 0x22 ? Told.ERROR : Told.NO_ERROR;
  }
  if (!begins(name, end, TYPE)) return Told.NO_ERROR;
  const value = afterColon(name + TYPE.length, end);
  if (value >= end || load<u8>(value) != 0x22) return Told.NO_ERROR;
  const nameEnd = endOfText(value + 1, end);
  return namesError(value + 1, nameEnd) ? blame(objectIn(nameEnd + 1, end), end) : Told.NO_ERROR;
}

/** The contents of the first object called `error`; the place itself if there is none. */
function objectIn(at: usize, end: usize): usize {
  let p = at;
  while (p < end) {
    if (load<u8>(p) != 0x22) {
      p++;
      continue;
    }
    const isError = begins(p, end, ERROR);
    p = endOfText(p + 1, end) + 1;
    if (!isError) continue;
    const value = afterColon(p, end);
    if (value > p && value < end && load<u8>(value) == 0x7b) return value + 1;
  }
  return at;
}

/** Whose error it is whose fields begin here: a number for its status decides, else its names do. */
function blame(at: usize, end: usize): Told {
  let told = Told.ERROR;
  let depth = 1;
  let p = at;
  while (p < end) {
    const byte = load<u8>(p);
    if (byte != 0x22) {
      if (byte == 0x7b || byte == 0x5b) depth++;
      else if ((byte == 0x7d || byte == 0x5d) && --depth == 0) return told;
      p++;
      continue;
    }
    const name = p + 1;
    const nameEnd = endOfText(name, end);
    p = nameEnd + 1;
    const value = afterColon(p, end);
    if (value == p || depth > 1 || !isTelling(name, nameEnd - name)) continue;
    const isText = value < end && load<u8>(value) == 0x22;
    const from = isText ? value + 1 : value;
    const status = statusAt(from, end);
    if (status) return status >= 500 ? Told.FAILURE : Told.ERROR;
    p = isText ? endOfText(from, end) + 1 : from;
    if (isText && namesServer(from, p - 1)) told = Told.FAILURE;
  }
  return told;
}

function isTelling(name: usize, length: usize): bool {
  return (
    isText(name, length, CODE) ||
    isText(name, length, KIND) ||
    isText(name, length, STATUS) ||
    isText(name, length, STATUS_CODE)
  );
}

function isText(at: usize, length: usize, text: Text): bool {
  return length == text.length && same(at, text.at, length);
}

/** A number of three digits that may be a status, 0 if there is none. */
function statusAt(at: usize, end: usize): u32 {
  let status: u32 = 0;
  let p = at;
  for (; p < end && load<u8>(p) >= 48 && load<u8>(p) <= 57 && status < 1000; p++) {
    status = status * 10 + <u32>load<u8>(p) - 48;
  }
  return status >= 400 && status < 600 ? status : 0;
}

function namesServer(at: usize, end: usize): bool {
  return (
    contains(at, end - at, INTERNAL) ||
    contains(at, end - at, SERVER_ERROR) ||
    contains(at, end - at, API_ERROR)
  );
}

/** Whether bytes end like the name of an event that says that the answer has failed. */
function namesError(at: usize, end: usize): bool {
  let last: u64 = 0;
  for (let p = max(at, end - 8); p < end; p++) last = (last << 8) | <u64>load<u8>(p);
  return isErrorName(last);
}

// @ts-ignore: decorator
@inline
function begins(at: usize, end: usize, text: Text): bool {
  return at + text.length <= end && same(at, text.at, text.length);
}

// @ts-ignore: decorator
@inline
function isLineEnd(byte: u8): bool {
  return byte == 0x0a || byte == 0x0d;
}

/** Where the line begins that ends there. */
function lineStart(at: usize, end: usize): usize {
  let p = end;
  for (; p >= at + 16; p -= 16) {
    const ends = lineEnds(v128.load(p - 16));
    if (ends) return p - 16 + <usize>(32 - clz(ends));
  }
  while (p > at && !isLineEnd(load<u8>(p - 1))) p--;
  return p;
}
