// The plugin configuration, `wire/filter-config.ts`: one `name=value` a line.

import { isBase64 } from './abi/base64';
import { allocate } from './abi/blocks';
import { MAX_KEY_HEADERS } from '../wire/names';
import { ERROR } from './abi/host';
import { log, logFrom } from './abi/log';
import { begin, equals, put, putDecimal, putJson, Text } from './abi/text';
import { keyFieldNamed } from './body/fields';

export let frontendAt: usize = 0;
export let frontendLength: usize = 0;
export let tokenAt: usize = 0;
export let tokenLength: usize = 0;
export let tenantHeaderAt: usize = 0;
export let tenantHeaderLength: usize = 0;
export let syncPeriodMs: u32 = 0;
export let startupHoldMs: u32 = 0;
export let readBodies: bool = false;
export let maxBodyBytes: u32 = 0;
export let nativeSteering: bool = false;
/** What routes grant by themselves, -1 when that is not known. */
export let routeRetries: i32 = -1;
/** A snapshot in base64, length 0 for none. */
export let snapshotAt: usize = 0;
export let snapshotLength: usize = 0;
export let observe: bool = false;
/** Names with commas between; null for the usual ones. */
export let keyHeaders: Text | null = null;
export let keyFields: Text | null = null;
export let prefixKeyBytes: u32 = 0;
export let logFields: bool = false;
export let placement: bool = false;

const FRONTEND_ID = new Text('frontendId');
const SYNC_TOKEN = new Text('syncToken');
const SYNC_PERIOD = new Text('syncPeriodMs');
const STARTUP_HOLD = new Text('startupHoldMs');
const TENANT_HEADER = new Text('tenantHeader');
const READ_BODIES = new Text('readBodies');
const MAX_BODY_BYTES = new Text('maxBodyBytes');
const NATIVE_STEERING = new Text('nativeSteering');
const ROUTE_RETRIES = new Text('routeRetries');
const SNAPSHOT = new Text('snapshot');
const KEY_HEADERS = new Text('keyHeaders');
const KEY_FIELDS = new Text('keyFields');
const PREFIX_KEY_BYTES = new Text('prefixKeyBytes');
const OBSERVE = new Text('observe');
const LOG_FIELDS = new Text('logFields');
const PLACEMENT = new Text('placement');
const TRUE = new Text('true');
const FALSE = new Text('false');

const LINE = new Text('configuration line ');
const COLON = new Text(': ');
const NOT_A_PAIR = new Text('must be name=value');
const UNKNOWN = new Text('no option has this name: ');
const BAD_TEXT = new Text('a value is missing, too long or has characters that are not allowed: ');
const BAD_NUMBER = new Text('must be a whole number in range: ');
const BAD_SWITCH = new Text('must be true or false: ');
const NO_FRONTEND = new Text('configuration: frontendId is missing');

/** Reads a configuration; false, with a line in the log that says what is wrong, if it is not valid. */
export function readConfiguration(at: usize, length: usize): bool {
  frontendLength = 0;
  tokenLength = 0;
  tenantHeaderLength = 0;
  syncPeriodMs = 100;
  startupHoldMs = 2_000;
  readBodies = false;
  maxBodyBytes = 1 << 20;
  nativeSteering = false;
  routeRetries = -1;
  snapshotLength = 0;
  observe = false;
  keyHeaders = null;
  keyFields = null;
  prefixKeyBytes = 0;
  logFields = false;
  placement = false;
  // The options point into the text, so it has to stay.
  const text = allocate(max<usize>(length, 1));
  memory.copy(text, at, length);
  let line: u32 = 1;
  let start: usize = 0;
  while (start < length) {
    let end = start;
    while (end < length && load<u8>(text + end) != 0x0a) end++;
    if (end > start && !readLine(text + start, end - start, line)) return false;
    start = end + 1;
    line++;
  }
  if (frontendLength > 0) return true;
  log(ERROR, NO_FRONTEND);
  return false;
}

function readLine(at: usize, length: usize, line: u32): bool {
  let nameLength: usize = 0;
  while (nameLength < length && load<u8>(at + nameLength) != 0x3d) nameLength++;
  if (nameLength == length) return complain(line, NOT_A_PAIR, at, 0);
  const value = at + nameLength + 1;
  const valueLength = length - nameLength - 1;

  if (equals(at, nameLength, FRONTEND_ID.at, FRONTEND_ID.length)) {
    if (!isVisible(value, valueLength, 256)) return complain(line, BAD_TEXT, at, nameLength);
    frontendAt = value;
    frontendLength = valueLength;
  } else if (equals(at, nameLength, SYNC_TOKEN.at, SYNC_TOKEN.length)) {
    if (!isVisible(value, valueLength, 4096)) return complain(line, BAD_TEXT, at, nameLength);
    tokenAt = value;
    tokenLength = valueLength;
  } else if (equals(at, nameLength, TENANT_HEADER.at, TENANT_HEADER.length)) {
    if (!isHeaderName(value, valueLength)) return complain(line, BAD_TEXT, at, nameLength);
    tenantHeaderAt = value;
    tenantHeaderLength = valueLength;
  } else if (equals(at, nameLength, SYNC_PERIOD.at, SYNC_PERIOD.length)) {
    const ms = number(value, valueLength);
    if (ms < 10 || ms > 10_000) return complain(line, BAD_NUMBER, at, nameLength);
    syncPeriodMs = <u32>ms;
  } else if (equals(at, nameLength, STARTUP_HOLD.at, STARTUP_HOLD.length)) {
    const ms = number(value, valueLength);
    if (ms < 0 || ms > 60_000) return complain(line, BAD_NUMBER, at, nameLength);
    startupHoldMs = <u32>ms;
  } else if (equals(at, nameLength, READ_BODIES.at, READ_BODIES.length)) {
    if (!isSwitch(value, valueLength)) return complain(line, BAD_SWITCH, at, nameLength);
    readBodies = isTrue(value, valueLength);
  } else if (equals(at, nameLength, KEY_HEADERS.at, KEY_HEADERS.length)) {
    if (!areHeaderNames(value, valueLength)) return complain(line, BAD_TEXT, at, nameLength);
    keyHeaders = Text.of(value, valueLength);
  } else if (equals(at, nameLength, KEY_FIELDS.at, KEY_FIELDS.length)) {
    if (!areKeyFields(value, valueLength)) return complain(line, BAD_TEXT, at, nameLength);
    keyFields = Text.of(value, valueLength);
  } else if (equals(at, nameLength, PREFIX_KEY_BYTES.at, PREFIX_KEY_BYTES.length)) {
    const bytes = number(value, valueLength);
    if (bytes < 0 || bytes > 65_536) return complain(line, BAD_NUMBER, at, nameLength);
    prefixKeyBytes = <u32>bytes;
  } else if (equals(at, nameLength, OBSERVE.at, OBSERVE.length)) {
    if (!isSwitch(value, valueLength)) return complain(line, BAD_SWITCH, at, nameLength);
    observe = isTrue(value, valueLength);
  } else if (equals(at, nameLength, MAX_BODY_BYTES.at, MAX_BODY_BYTES.length)) {
    const bytes = number(value, valueLength);
    if (bytes < 1024 || bytes > 1 << 30) return complain(line, BAD_NUMBER, at, nameLength);
    maxBodyBytes = <u32>bytes;
  } else if (equals(at, nameLength, NATIVE_STEERING.at, NATIVE_STEERING.length)) {
    if (!isSwitch(value, valueLength)) return complain(line, BAD_SWITCH, at, nameLength);
    nativeSteering = isTrue(value, valueLength);
  } else if (equals(at, nameLength, ROUTE_RETRIES.at, ROUTE_RETRIES.length)) {
    const retries = number(value, valueLength);
    if (retries < 0 || retries > 10) return complain(line, BAD_NUMBER, at, nameLength);
    routeRetries = <i32>retries;
  } else if (equals(at, nameLength, SNAPSHOT.at, SNAPSHOT.length)) {
    if (!isBase64(value, valueLength)) return complain(line, BAD_TEXT, at, nameLength);
    snapshotAt = value;
    snapshotLength = valueLength;
  } else if (equals(at, nameLength, LOG_FIELDS.at, LOG_FIELDS.length)) {
    if (!isSwitch(value, valueLength)) return complain(line, BAD_SWITCH, at, nameLength);
    logFields = isTrue(value, valueLength);
  } else if (equals(at, nameLength, PLACEMENT.at, PLACEMENT.length)) {
    if (!isSwitch(value, valueLength)) return complain(line, BAD_SWITCH, at, nameLength);
    placement = isTrue(value, valueLength);
  } else {
    return complain(line, UNKNOWN, at, nameLength);
  }
  return true;
}

function complain(line: u32, problem: Text, nameAt: usize, nameLength: usize): bool {
  const start = begin();
  put(LINE);
  putDecimal(line);
  put(COLON);
  put(problem);
  putJson(nameAt, nameLength, 64);
  logFrom(ERROR, start);
  return false;
}

function isVisible(at: usize, length: usize, limit: usize): bool {
  for (let i: usize = 0; i < length; i++) {
    const byte = load<u8>(at + i);
    if (byte < 0x21 || byte > 0x7e) return false;
  }
  return length > 0 && length <= limit;
}

function isTrue(at: usize, length: usize): bool {
  return equals(at, length, TRUE.at, TRUE.length);
}

function isSwitch(at: usize, length: usize): bool {
  return isTrue(at, length) || equals(at, length, FALSE.at, FALSE.length);
}

/** 5 to 64 of a-z, 0-9, _ and -. */
function isHeaderName(at: usize, length: usize): bool {
  for (let i: usize = 0; i < length; i++) {
    const byte = load<u8>(at + i);
    const letter = byte >= 0x61 && byte <= 0x7a;
    const digit = byte >= 0x30 && byte <= 0x39;
    if (!letter && !digit && byte != 0x5f && byte != 0x2d) return false;
  }
  return length >= 5 && length <= 64;
}

/** At most MAX_KEY_HEADERS of them with commas between; none is a list, too. */
function areHeaderNames(at: usize, length: usize): bool {
  let count: i32 = 0;
  for (let start: usize = 0; start < length; count++) {
    const end = endOfItem(at, start, length);
    if (!isHeaderName(at + start, end - start)) return false;
    start = end + 1;
  }
  return count <= MAX_KEY_HEADERS;
}

function areKeyFields(at: usize, length: usize): bool {
  for (let start: usize = 0; start < length; ) {
    const end = endOfItem(at, start, length);
    if (keyFieldNamed(at + start, end - start) < 0) return false;
    start = end + 1;
  }
  return true;
}

/** Where the item of a list with commas that begins at `start` ends. */
export function endOfItem(at: usize, start: usize, length: usize): usize {
  let end = start;
  while (end < length && load<u8>(at + end) != 0x2c) end++;
  return end;
}

/** The whole number that the at most 10 digits are, or -1. */
function number(at: usize, length: usize): i64 {
  if (length == 0 || length > 10) return -1;
  let value: i64 = 0;
  for (let i: usize = 0; i < length; i++) {
    const digit = <i64>load<u8>(at + i) - 48;
    if (digit < 0 || digit > 9) return -1;
    value = value * 10 + digit;
  }
  return value;
}
