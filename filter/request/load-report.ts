// Load reports of engines in their responses (ORCA): headers or trailers `endpoint-load-metrics` as text, JSON or
// binary, and `endpoint-load-metrics-bin`. A report is taken as a whole or, when any part of it makes no sense, not at
// all: half of a garbled report may be the wrong half.

import * as L from '../../wire/layout';
import { begin, discard, equals, lengthFrom, putByte, Text } from '../abi/text';
import { count, LOAD_REPORTS_GARBLED } from '../state/counters';
import { newLoads, ReplicaLoads } from '../state/replica-loads';
import { ReplicaState } from '../state/rows';

export const LOAD_HEADER = new Text('endpoint-load-metrics');
export const LOAD_HEADER_BINARY = new Text('endpoint-load-metrics-bin');

const TEXT = new Text('TEXT');
const JSON = new Text('JSON');
const BINARY = new Text('BIN');
const NAMED = new Text('named_metrics.');

/** Longer reports are not read. */
const MAX_LENGTH: usize = 4096;
const MAX_DEPTH: i32 = 4;
/** Fractions of something, which may be over full, and counts and rates. */
const MOST_UTILIZATION: f64 = 100;
const MOST: f64 = 1e9;

class LoadName {
  name: Text;
  kind: i32;

  constructor(name: string, kind: i32) {
    this.name = new Text(name);
    this.kind = kind;
  }
}

const NAMES: StaticArray<LoadName> = [
  new LoadName('application_utilization', L.LOAD_UTILIZATION),
  new LoadName('applicationUtilization', L.LOAD_UTILIZATION),
  new LoadName('kv_cache_usage_perc', L.LOAD_KV_USE),
  new LoadName('gpu_cache_usage_perc', L.LOAD_KV_USE),
  new LoadName('kv_cache_utilization', L.LOAD_KV_USE),
  new LoadName('token_usage', L.LOAD_KV_USE),
  new LoadName('num_requests_waiting', L.LOAD_WAITING),
  new LoadName('num_queue_reqs', L.LOAD_WAITING),
  new LoadName('num_requests_running', L.LOAD_RUNNING),
  new LoadName('num_running_reqs', L.LOAD_RUNNING),
  new LoadName('rps_fractional', L.LOAD_REQUEST_RATE),
  new LoadName('rpsFractional', L.LOAD_REQUEST_RATE),
  new LoadName('rps', L.LOAD_REQUEST_RATE),
  new LoadName('eps', L.LOAD_ERROR_RATE),
];

// Fields of `xds.data.orca.v3.OrcaLoadReport`.
const RPS_FRACTIONAL: u32 = 6;
const EPS: u32 = 7;
const NAMED_METRICS: u32 = 8;
const APPLICATION_UTILIZATION: u32 = 9;

/** What the report being read tells. */
const VALUES: usize = memory.data(48, 8);
let told: u32 = 0;
let at: usize = 0;
let end: usize = 0;

/** Counts a report of a replica: the value of LOAD_HEADER, or of LOAD_HEADER_BINARY if it is `binary`. */
export function noteLoadReport(replica: ReplicaState, value: usize, length: usize, binary: bool): void {
  told = 0;
  at = value;
  end = value + length;
  const good =
    length <= MAX_LENGTH && (binary ? readBase64() : skip(JSON) ? readJson() : skip(BINARY) ? readBase64() : readText());
  if (!replica.loads) replica.loads = newLoads(changetype<usize>(replica));
  const loads = changetype<ReplicaLoads>(replica.loads);
  if (good) return loads.noteGood(told, VALUES);
  loads.noteGarbled();
  count(LOAD_REPORTS_GARBLED);
}

/** Takes a reading; false if it makes no sense or is there twice. Names that mean nothing here are passed over. */
function take(name: usize, nameLength: usize, value: f64): bool {
  if (!(value >= 0)) return false;
  for (let i = 0; i < NAMES.length; i++) {
    const known = unchecked(NAMES[i]);
    if (equals(name, nameLength, known.name.at, known.name.length)) return takeLoad(known.kind, value);
  }
  return true;
}

function takeLoad(kind: i32, value: f64): bool {
  const most: f64 = kind == L.LOAD_KV_USE ? 1 : kind == L.LOAD_UTILIZATION ? MOST_UTILIZATION : MOST;
  if (!(value >= 0 && value <= most) || (told >> kind) & 1) return false;
  told |= 1 << kind;
  store<f64>(VALUES + ((<usize>kind) << 3), value);
  return true;
}

/** `name=value,name=value`, also with colons, after `TEXT` or without. */
function readText(): bool {
  skip(TEXT);
  let pairs = 0;
  while (true) {
    skipSpace();
    const name = at;
    while (at < end && load<u8>(at) != 0x3d && load<u8>(at) != 0x3a && load<u8>(at) != 0x2c) at++;
    const nameLength = trimmed(name, at);
    if (nameLength == 0 || at == end || load<u8>(at) == 0x2c) return false;
    at++;
    skipSpace();
    const value = readNumber();
    const isNamed = nameLength > NAMED.length && memory.compare(name, NAMED.at, NAMED.length) == 0;
    const prefix = isNamed ? NAMED.length : 0;
    if (!take(name + prefix, nameLength - prefix, value)) return false;
    pairs++;
    skipSpace();
    if (at == end) return pairs > 0;
    if (load<u8>(at++) != 0x2c) return false;
  }
}

/** An object of numbers and of objects of numbers. */
function readJson(): bool {
  if (!readObject(1)) return false;
  skipSpace();
  return at == end;
}

function readObject(depth: i32): bool {
  if (depth > MAX_DEPTH || !isNext(0x7b)) return false;
  if (isNext(0x7d)) return true;
  do {
    if (!isNext(0x22)) return false;
    const name = at;
    while (at < end && load<u8>(at) != 0x22) {
      if (load<u8>(at) == 0x5c) return false;
      at++;
    }
    const nameLength = at - name;
    if (!isNext(0x22) || !isNext(0x3a)) return false;
    skipSpace();
    if (at < end && load<u8>(at) == 0x7b) {
      if (!readObject(depth + 1)) return false;
    } else if (!take(name, nameLength, readNumber())) {
      return false;
    }
  } while (isNext(0x2c));
  return isNext(0x7d);
}

/** A number of zero or more; NaN for anything else. */
function readNumber(): f64 {
  const start = at;
  let value: f64 = 0;
  let scale: i32 = 0;
  let digits = 0;
  for (; at < end && isDigit(load<u8>(at)); at++, digits++) value = value * 10 + <f64>(load<u8>(at) - 48);
  if (at < end && load<u8>(at) == 0x2e) {
    for (at++; at < end && isDigit(load<u8>(at)); at++, digits++, scale--) {
      value = value * 10 + <f64>(load<u8>(at) - 48);
    }
  }
  if (digits == 0 || digits > 40) return NaN;
  if (at < end && (load<u8>(at) | 0x20) == 0x65) {
    at++;
    const negative = at < end && load<u8>(at) == 0x2d;
    if (at < end && (negative || load<u8>(at) == 0x2b)) at++;
    let exponent: i32 = 0;
    const first = at;
    for (; at < end && at - first < 3 && isDigit(load<u8>(at)); at++) exponent = exponent * 10 + <i32>load<u8>(at) - 48;
    if (at == first) return NaN;
    scale += negative ? -exponent : exponent;
  }
  for (; scale > 0; scale--) value *= 10;
  for (; scale < 0; scale++) value /= 10;
  return at > start ? value : NaN;
}

/** A protobuf message in base64. */
function readBase64(): bool {
  skipSpace();
  while (end > at && load<u8>(end - 1) == 0x3d) end--;
  if (at == end || ((end - at) & 3) == 1) return false;
  const bytes = begin();
  let bits: u32 = 0;
  let held = 0;
  for (; at < end; at++) {
    const six = sixBits(load<u8>(at));
    if (six < 0) return false;
    bits = (bits << 6) | <u32>six;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    putByte(<u8>(bits >> held));
  }
  at = bytes;
  end = bytes + lengthFrom(bytes);
  const good = readMessage(false);
  discard(bytes);
  return good;
}

function sixBits(byte: u8): i32 {
  if (byte >= 0x41 && byte <= 0x5a) return byte - 0x41;
  if (byte >= 0x61 && byte <= 0x7a) return byte - 0x61 + 26;
  if (isDigit(byte)) return byte - 48 + 52;
  if (byte == 0x2b || byte == 0x2d) return 62;
  return byte == 0x2f || byte == 0x5f ? 63 : -1;
}

/** Reads up to `end` a load report, or one of its named metrics. */
function readMessage(isMetric: bool): bool {
  let name: usize = 0;
  let nameLength: usize = 0;
  let value: f64 = 0;
  while (at < end) {
    const tag = readVarint();
    const field = <u32>(tag >> 3);
    switch (<u32>tag & 7) {
      case 0:
        readVarint();
        break;
      case 1: {
        if (end - at < 8) return false;
        const number = load<f64>(at);
        at += 8;
        if (isMetric) value = number;
        else if (!takeField(field, number)) return false;
        break;
      }
      case 2: {
        const length = readVarint();
        if (length > <u64>(end - at)) return false;
        const after = at + <usize>length;
        if (isMetric) {
          name = at;
          nameLength = <usize>length;
        } else if (field == NAMED_METRICS) {
          const outer = end;
          end = after;
          if (!readMessage(true)) return false;
          end = outer;
        }
        at = after;
        break;
      }
      case 5:
        if (end - at < 4) return false;
        at += 4;
        break;
      default:
        return false;
    }
  }
  return at == end && (!isMetric || take(name, nameLength, value));
}

function takeField(field: u32, value: f64): bool {
  switch (field) {
    case RPS_FRACTIONAL:
      return takeLoad(L.LOAD_REQUEST_RATE, value);
    case EPS:
      return takeLoad(L.LOAD_ERROR_RATE, value);
    case APPLICATION_UTILIZATION:
      return takeLoad(L.LOAD_UTILIZATION, value);
    default:
      return value >= 0;
  }
}

/** Moves beyond `end` when the number does not end before it. */
function readVarint(): u64 {
  let value: u64 = 0;
  for (let shift: u64 = 0; shift < 64; shift += 7) {
    if (at >= end) break;
    const byte = load<u8>(at++);
    value |= (<u64>(byte & 0x7f)) << shift;
    if (byte < 0x80) return value;
  }
  at = end + 1;
  return 7;
}

/** Passes over a word at the beginning, if that is what is there. */
function skip(word: Text): bool {
  skipSpace();
  if (end - at < word.length || memory.compare(at, word.at, word.length) != 0) return false;
  if (end - at > word.length && load<u8>(at + word.length) > 0x20) return false;
  at += word.length;
  return true;
}

function isNext(byte: u8): bool {
  skipSpace();
  if (at >= end || load<u8>(at) != byte) return false;
  at++;
  return true;
}

function skipSpace(): void {
  while (at < end && load<u8>(at) <= 0x20) at++;
}

/** Length of a text without the space at its end. */
function trimmed(start: usize, stop: usize): usize {
  let last = stop;
  while (last > start && load<u8>(last - 1) <= 0x20) last--;
  return last - start;
}

// @ts-ignore: decorator
@inline
function isDigit(byte: u8): bool {
  return byte >= 48 && byte <= 57;
}
