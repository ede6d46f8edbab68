// Step 1: what the headers say of a request. One host call fetches all of them; a small hash table picks out the
// names that matter.

import {
  CLIENT_STEERING_HEADERS,
  KEY_HEADERS,
  MAX_KEY_HEADERS,
  MODEL_HEADER,
  NEW_HEADER,
} from '../../wire/names';
import { getHeaders, REQUEST_HEADERS } from '../abi/host';
import { RESULT, resultAt, resultLength } from '../abi/memory';
import { equals, equalsIgnoringCase, sameName, Text } from '../abi/text';
import { TEXT_LIMIT } from '../body/found';
import { endOfItem, keyHeaders, tenantHeaderAt, tenantHeaderLength } from '../config';
import { mayBringNeed, needsOfHeader, slotOf } from './need-headers';

// Numbers of the headers looked for. Keys come in the order of precedence, then what clients may not send.
const PATH: i32 = 0;
const METHOD: i32 = 1;
const MODEL: i32 = 2;
const TENANT: i32 = 3;
const CLIENT_RETRIES: i32 = 4;
const CONTENT_TYPE: i32 = 5;
const CONTENT_ENCODING: i32 = 6;
const CONTENT_LENGTH: i32 = 7;
const NEW: i32 = 8;
const UPGRADE: i32 = 9;
const FIRST_KEY: i32 = 10;
const FIRST_STEERING: i32 = FIRST_KEY + MAX_KEY_HEADERS;

export let pathAt: usize = 0;
export let pathLength: usize = 0;
/** GET, HEAD, OPTIONS or CONNECT, or for a WebSocket: what comes then is no body, and has no end. */
export let bodyless: bool = false;
export let modelAt: usize = 0;
export let modelLength: usize = 0;
export let tenantAt: usize = 0;
export let tenantLength: usize = 0;
export let keyAt: usize = 0;
export let keyLength: usize = 0;
/** The client says that a conversation begins. */
export let saysNew: bool = false;
/** The client says that this is a retry of its own. */
export let clientRetry: bool = false;
export let typeAt: usize = 0;
export let typeLength: usize = 0;
export let encodingAt: usize = 0;
export let encodingLength: usize = 0;
/** What `content-length` says, 0 if there is none. */
export let contentLength: u64 = 0;
/** Bits of the needs that headers bring along. */
export let headerNeeds: u64 = 0;
/** Bit i: the client sent CLIENT_STEERING_HEADERS[i]. */
export let steeringSent: u32 = 0;

const SLOTS: u32 = 128;
// Every request looks for all of its headers here, so what is looked at lies close together.
/** Slots of a header's number + 1 (u8), 0 when empty. */
const TABLE: usize = memory.data(128, 64);
/** By number, address (+0) and length (+4) of the header's name. */
const ENTRIES: usize = memory.data(512, 64);
const ENTRY_SIZE: usize = 8;
/** Names, one after the other; those that find no room stay where they are. */
const NAMES: usize = memory.data(1024, 64);
const NAMES_SIZE: usize = 1024;
let namesEnd: usize = NAMES;
export const steeringNames: StaticArray<Text> = new StaticArray<Text>(CLIENT_STEERING_HEADERS.length);

/** Prepares the table as the configuration says. */
export function watchHeaders(): void {
  memory.fill(TABLE, 0, SLOTS);
  namesEnd = NAMES;
  // Those that most requests have come first.
  watch(new Text(':path'), PATH);
  watch(new Text(':method'), METHOD);
  watch(new Text('content-type'), CONTENT_TYPE);
  watch(new Text('content-length'), CONTENT_LENGTH);
  watch(new Text(MODEL_HEADER), MODEL);
  if (tenantHeaderLength > 0) watchBytes(tenantHeaderAt, tenantHeaderLength, TENANT);
  watchKeys();
  watch(new Text(NEW_HEADER), NEW);
  watch(new Text('x-stainless-retry-count'), CLIENT_RETRIES);
  watch(new Text('content-encoding'), CONTENT_ENCODING);
  watch(new Text('upgrade'), UPGRADE);
  for (let i = 0; i < CLIENT_STEERING_HEADERS.length; i++) {
    steeringNames[i] = new Text(CLIENT_STEERING_HEADERS[i]);
    watch(steeringNames[i], FIRST_STEERING + i);
  }
}

function watchKeys(): void {
  const configured = keyHeaders;
  if (!configured) {
    for (let i = 0; i < KEY_HEADERS.length; i++) watch(new Text(KEY_HEADERS[i]), FIRST_KEY + i);
    return;
  }
  let header = FIRST_KEY;
  for (let start: usize = 0; start < configured.length; header++) {
    const end = endOfItem(configured.at, start, configured.length);
    watchBytes(configured.at + start, end - start, header);
    start = end + 1;
  }
}

function watch(name: Text, header: i32): void {
  watchBytes(name.at, name.length, header);
}

function watchBytes(at: usize, length: usize, header: i32): void {
  let slot = slotOf(at, length);
  while (isTaken(slot)) slot = (slot + 1) & (SLOTS - 1);
  store<u8>(TABLE + <usize>slot, <u8>(header + 1));
  const entry = ENTRIES + <usize>header * ENTRY_SIZE;
  store<u32>(entry, <u32>keepName(at, length));
  store<u32>(entry, <u32>length, 4);
}

function keepName(at: usize, length: usize): usize {
  if (length > NAMES + NAMES_SIZE - namesEnd) return at;
  const kept = namesEnd;
  memory.copy(kept, at, length);
  namesEnd += length;
  return kept;
}

// @ts-ignore: decorator
@inline
function isTaken(slot: u32): bool {
  return load<u8>(TABLE + <usize>slot) != 0;
}

/** Number of the header with this name, which belongs in a slot that is taken; -1 if none of those looked for has it. */
// @ts-ignore: decorator
@inline
function numberOf(first: u32, at: usize, length: usize): i32 {
  let slot = first;
  do {
    const header = <i32>load<u8>(TABLE + <usize>slot) - 1;
    const entry = ENTRIES + <usize>header * ENTRY_SIZE;
    if (<usize>load<u32>(entry, 4) == length && sameName(at, <usize>load<u32>(entry), length)) return header;
    slot = (slot + 1) & (SLOTS - 1);
  } while (isTaken(slot));
  return -1;
}

/** Room for the headers of a request that waits for its body, so that the host is asked for them once. */
export const KEPT_HEADERS: usize = 2048;

/** Where the host's list of the headers read last lies, and its length. */
let listAt: usize = 0;
let listLength: usize = 0;

/** Reads the request headers of the effective context; addresses hold until the next callback. */
// @ts-ignore: decorator
@inline
export function readAttributes(): void {
  store<u64>(RESULT, 0);
  getHeaders(REQUEST_HEADERS, RESULT, RESULT + 4);
  takeList(resultAt(), resultLength());
}

/** Keeps the headers read last in a block of KEPT_HEADERS bytes, unless they are longer. */
export function keepAttributes(block: usize): void {
  const length = listLength <= KEPT_HEADERS - 4 ? listLength : 0;
  store<u32>(block, <u32>length);
  memory.copy(block + 4, listAt, length);
}

/** Reads what was kept in a block, or again from the effective context; addresses hold as long as the block. */
export function recallAttributes(block: usize): void {
  const length = <usize>load<u32>(block);
  if (length) takeList(block + 4, length);
  else readAttributes();
}

/** Looks through a list of headers in the host's form. */
function takeList(pairs: usize, size: usize): void {
  listAt = pairs;
  listLength = size;
  pathLength = 0;
  modelLength = 0;
  tenantLength = 0;
  keyLength = 0;
  typeLength = 0;
  encodingLength = 0;
  contentLength = 0;
  bodyless = false;
  saysNew = false;
  clientRetry = false;
  steeringSent = 0;
  headerNeeds = 0;
  if (size < 4) return;
  let lengths = pairs + 4;
  let next = lengths + ((<usize>load<u32>(pairs)) << 3);
  let keyNumber = i32.MAX_VALUE;
  for (let left = load<u32>(pairs); left > 0; left--) {
    const name = next;
    const nameLength = <usize>load<u32>(lengths);
    const length = <usize>load<u32>(lengths, 4);
    const value = name + nameLength + 1;
    lengths += 8;
    next = value + length + 1;
    if (nameLength < 5) continue;
    const slot = slotOf(name, nameLength);
    if (mayBringNeed(slot)) headerNeeds |= needsOfHeader(name, nameLength, value, length);
    if (!isTaken(slot)) continue;
    const header = numberOf(slot, name, nameLength);
    if (header < 0) continue;
    switch (header) {
      case PATH: {
        pathAt = value;
        pathLength = length;
        break;
      }
      case METHOD: {
        bodyless = hasNoBody(value, length);
        break;
      }
      case MODEL: {
        if (modelLength > 0) break;
        modelAt = value;
        modelLength = length;
        break;
      }
      case TENANT: {
        if (tenantLength > 0) break;
        tenantAt = value;
        tenantLength = length;
        break;
      }
      case CLIENT_RETRIES: {
        clientRetry = length > 0 && (length > 1 || load<u8>(value) != 0x30);
        break;
      }
      case CONTENT_TYPE: {
        typeAt = value;
        typeLength = length;
        break;
      }
      case CONTENT_ENCODING: {
        encodingAt = value;
        encodingLength = length;
        break;
      }
      case NEW: {
        saysNew = equals(value, length, TRUE.at, TRUE.length);
        break;
      }
      case UPGRADE: {
        if (equalsIgnoringCase(value, length, WEBSOCKET)) bodyless = true;
        break;
      }
      case CONTENT_LENGTH: {
        contentLength = number(value, length);
        break;
      }
      default: {
        if (header >= FIRST_STEERING) {
          steeringSent |= 1 << (header - FIRST_STEERING);
        } else if (header < keyNumber && length > 0) {
          keyNumber = header;
          keyAt = value;
          keyLength = min<usize>(length, TEXT_LIMIT);
        }
      }
    }
  }
}

/** Whether the path begins so, with 4 bytes or more, as it is written. */
// @ts-ignore: decorator
@inline
export function pathBegins(path: Text): bool {
  return pathLength >= path.length && sameName(pathAt, path.at, path.length);
}

/** Bytes of the path up to its query, sixteen at a time; what lies behind the path is memory, too. */
export function lengthBeforeQuery(): usize {
  const mark = i8x16.splat(0x3f);
  for (let i: usize = 0; i < pathLength; i += 16) {
    const places = i8x16.bitmask(i8x16.eq(v128.load(pathAt + i), mark));
    if (places) return min(i + <usize>ctz(places), pathLength);
  }
  return pathLength;
}

/** Model and key from elsewhere, where the headers gave none. */
export function supplyModel(at: usize, length: usize): void {
  modelAt = at;
  modelLength = length;
}

export function supplyKey(at: usize, length: usize): void {
  keyAt = at;
  keyLength = length;
}

function number(at: usize, length: usize): u64 {
  let value: u64 = 0;
  for (let i: usize = 0; i < min<usize>(length, 15); i++) value = value * 10 + (load<u8>(at + i) & 15);
  return value;
}

const TRUE = new Text('true');
const GET = new Text('GET');
const HEAD = new Text('HEAD');
const OPTIONS = new Text('OPTIONS');
const CONNECT = new Text('CONNECT');
const WEBSOCKET = new Text('websocket');

function hasNoBody(at: usize, length: usize): bool {
  return (
    equals(at, length, GET.at, GET.length) ||
    equals(at, length, HEAD.at, HEAD.length) ||
    equals(at, length, OPTIONS.at, OPTIONS.length) ||
    equals(at, length, CONNECT.at, CONNECT.length)
  );
}
