// Reads a JSON body as it arrives, in pieces cut anywhere, without building anything: it checks the grammar as a whole
// and keeps only what routing needs of the top level, and whether messages hold images, audio, files or earlier
// answers. Of repeated keys the last counts, as in `JSON.parse`. Contents of strings are skipped 16 bytes at a time.

import {
  ANSWER,
  BY_TYPE,
  Context,
  contextIn,
  FIRST_LIMIT,
  FIRST_PROMPT,
  Field,
  fieldIn,
  flagsOf,
  LAST_LIMIT,
  LAST_PROMPT,
  LAST_TEXT,
  MEDIA,
  NAME_LIMIT,
} from './fields';
import {
  clearFound,
  Found,
  Kind,
  noteKind,
  noteLength,
  noteNumber,
  STATE_ROOM,
  TEXT_BYTES,
  TEXT_LIMIT,
} from './found';
import { hasRoom, numberIn, shifted, withDigit } from './numbers';
import { skipContents, spared, sparedBy, specials, startSparing } from './string-contents';

/** Containers within containers, at most. */
const MAX_DEPTH: u32 = 1024;

// What is expected next.
const VALUE: u8 = 0;
const FIRST_VALUE: u8 = 1; // or the end of the array
const KEY: u8 = 2;
const FIRST_KEY: u8 = 3; // or the end of the object
const COLON: u8 = 4;
const AFTER: u8 = 5; // a comma, or the end of the container
const END: u8 = 6; // nothing but space
const SKIP: u8 = 7; // inside a string that does not matter
const TAKE: u8 = 8; // inside a string that does
const ESCAPE: u8 = 9;
const HEX: u8 = 10;
const NUMBER: u8 = 11;
const LITERAL: u8 = 12;
const FAILED: u8 = 13;

// How far a number has come.
const MINUS: u8 = 0;
const ZERO: u8 = 1;
const INTEGER: u8 = 2;
const POINT: u8 = 3;
const FRACTION: u8 = 4;
const EXPONENT: u8 = 5;
const EXPONENT_SIGN: u8 = 6;
const EXPONENT_DIGITS: u8 = 7;

/** Containers that are looked into lie less deep than this. */
const WATCHED: u32 = 16;

@unmanaged
export class Scan extends Found {
  depth: u32;
  mode: u8;
  /** What kept the scan from going on was depth, not grammar. */
  tooDeep: bool;
  /** The string is a key. */
  isKey: bool;
  /** Where in an escape, a number or a literal. */
  step: u8;
  /** The number is negative. */
  negative: bool;
  /** So is its exponent. */
  shrinks: bool;
  /** Number of the literal. */
  literal: u8;
  /** SKIP or TAKE, to go on with after an escape. */
  string: u8;
  /** Code unit of the escape, and a first half of a pair that waits for its second. */
  unit: u32;
  high: u32;
  /** Where the string being taken goes, how much fits there, and how much it is. */
  target: usize;
  room: u32;
  taken: u32;
  /** The digits of the number being read, the places by which they have to be shifted, and what its exponent adds to that. */
  number: u64;
  places: i32;
  exponent: i32;
  /** Where the value of a prompt field began, in the body and of what counts as its length. */
  promptStart: u32;
  promptFrom: u32;
  /** Bytes of the pieces before this one that do not count. */
  spared: u32;
}

// Behind the fixed part: a bit for each open container (1 is an object); for the watched ones what it is, its latest
// key, what itself and its contents hold, and where it began; the name being read.
const STACK: usize = (offsetof<Scan>() + 7) & ~7;
const CONTEXTS: usize = STACK + (<usize>MAX_DEPTH >> 3);
const LATEST: usize = CONTEXTS + <usize>WATCHED;
const OWN: usize = LATEST + <usize>WATCHED;
const INNER: usize = OWN + <usize>WATCHED;
const OUTPUTS: usize = INNER + <usize>WATCHED;
const STARTS: usize = OUTPUTS + <usize>WATCHED;
const NAME: usize = STARTS + ((<usize>WATCHED) << 2);
const STATE_END: usize = NAME + 2 * NAME_LIMIT;

const LITERALS: usize = memory.data<u8>([
  0x74,
  0x72,
  0x75,
  0x65,
  0,
  0,
  0,
  0, // true
  0x66,
  0x61,
  0x6c,
  0x73,
  0x65,
  0,
  0,
  0, // false
  0x6e,
  0x75,
  0x6c,
  0x6c,
  0,
  0,
  0,
  0, // null
  0xef,
  0xbb,
  0xbf,
  0,
  0,
  0,
  0,
  0, // byte order mark
]);
/** Number of the one that is no value: a value follows. */
const MARK: u8 = 3;

/** Prepares a block of FOUND_SIZE bytes for a new body. */
export function startScan(at: usize): Scan {
  if (STATE_END > STATE_ROOM) ERROR('the state of a scan has no room');
  clearFound(at);
  return changetype<Scan>(at);
}

/** Whether the bytes read are one complete JSON value. */
export function isComplete(s: Scan): bool {
  if (s.mode == NUMBER) return s.depth == 0 && isWholeNumber(s.step);
  return s.mode == END;
}

/** Reads the next piece of the body. */
export function scan(s: Scan, start: usize, length: usize): void {
  const end = start + length;
  let at = start;
  let mode = s.mode;
  startSparing();
  while (at < end) {
    if (mode == SKIP) {
      at = skipContents(at, end);
      if (at == end) break;
    } else if (mode == TAKE && !s.high) {
      at = takeContents(s, at, end);
      if (at == end) break;
    }
    const byte = load<u8>(at);
    switch (mode) {
      case SKIP:
      case TAKE: {
        at++;
        if (byte == 0x22) mode = endString(s, s.offset + <u32>(at - start));
        else if (byte == 0x5c) mode = ESCAPE;
        else if (byte < 0x20) mode = FAILED;
        else if (mode == TAKE) takeByte(s, byte);
        break;
      }
      case ESCAPE: {
        at++;
        mode = escape(s, byte);
        break;
      }
      case HEX: {
        at++;
        mode = hexDigit(s, byte);
        break;
      }
      case NUMBER: {
        const step = nextOfNumber(s, byte);
        if (step == END_OF_NUMBER) {
          mode = isWholeNumber(s.step) ? endNumber(s, s.offset + <u32>(at - start)) : FAILED;
        } else {
          s.step = step;
          at++;
        }
        break;
      }
      case LITERAL: {
        at++;
        mode = literalByte(s, byte, s.offset + <u32>(at - start));
        break;
      }
      case FAILED: {
        at = end;
        break;
      }
      default: {
        at++;
        if (byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09) break;
        mode = structure(s, mode, byte, s.offset + <u32>(at - start));
      }
    }
  }
  s.mode = mode;
  s.offset += <u32>length;
  s.spared += spared;
}

/** Of the bytes up to `offset`, how many count: an escape as much as the character that it stands for. */
// @ts-ignore: decorator
@inline
function counted(s: Scan, offset: u32): u32 {
  return offset - s.spared - spared;
}

/**
 * Takes contents of a string up to anything that is not plain, 16 bytes at a time while they fit. Pieces lie in scratch memory, so
 * that what is behind them may be read, too.
 */
function takeContents(s: Scan, start: usize, end: usize): usize {
  let at = start;
  while (at < end && s.taken + 16 <= s.room) {
    const bytes = v128.load(at);
    v128.store(s.target + <usize>s.taken, bytes);
    const plain = min(<usize>ctz(specials(bytes) | 0x10000), end - at);
    s.taken += <u32>plain;
    at += plain;
    if (plain < 16) break;
  }
  return at;
}

/** A byte between values; `offset` is where it ends in the body. */
function structure(s: Scan, mode: u8, byte: u8, offset: u32): u8 {
  switch (mode) {
    case FIRST_KEY:
    case KEY: {
      if (byte == 0x22) return startKey(s);
      return byte == 0x7d && mode == FIRST_KEY ? close(s, offset) : FAILED;
    }
    case COLON:
      return byte == 0x3a ? VALUE : FAILED;
    case AFTER: {
      if (byte == 0x2c) return inObject(s) ? KEY : VALUE;
      return (byte == 0x7d && inObject(s)) || (byte == 0x5d && !inObject(s)) ? close(s, offset) : FAILED;
    }
    case FIRST_VALUE: {
      if (byte == 0x5d) return close(s, offset);
      if (context(s) == Context.TOOLS) s.hasTools = true;
      return startValue(s, byte, offset);
    }
    case VALUE:
      return startValue(s, byte, offset);
    default:
      return FAILED;
  }
}

function startValue(s: Scan, byte: u8, offset: u32): u8 {
  if (s.depth == 1) {
    s.promptStart = offset - 1;
    s.promptFrom = counted(s, offset - 1);
  }
  if (byte == 0x22) return startText(s);
  if (byte == 0x7b) return open(s, true, offset);
  if (byte == 0x5b) return open(s, false, offset);
  if (byte == 0x2d || (byte >= 0x30 && byte <= 0x39)) {
    s.negative = byte == 0x2d;
    s.shrinks = false;
    s.places = 0;
    s.exponent = 0;
    s.step = byte == 0x2d ? MINUS : byte == 0x30 ? ZERO : INTEGER;
    s.number = byte == 0x2d ? 0 : <u64>(byte - 0x30);
    return NUMBER;
  }
  s.step = 1;
  if (byte == 0x74) s.literal = 0;
  else if (byte == 0x66) s.literal = 1;
  else if (byte == 0x6e) s.literal = 2;
  // Engines in Python pass over it, where a body begins with it.
  else if (byte == 0xef && offset == 1) s.literal = MARK;
  else return FAILED;
  return LITERAL;
}

// --- Containers ---

function open(s: Scan, isObject: bool, offset: u32): u8 {
  if (s.depth == MAX_DEPTH) {
    s.tooDeep = true;
    return FAILED;
  }
  const inner =
    s.depth == 0 ? (isObject ? Context.TOP : Context.NONE) : contextIn(context(s), latest(s), isObject);
  setKind(s, Kind.OTHER);
  const bit = (<u8>1) << (<u8>(s.depth & 7));
  const byte = changetype<usize>(s) + STACK + (<usize>s.depth >> 3);
  store<u8>(byte, isObject ? load<u8>(byte) | bit : load<u8>(byte) & ~bit);
  s.depth++;
  if (s.depth < WATCHED) {
    const watched = changetype<usize>(s) + <usize>s.depth;
    store<u8>(watched, <u8>inner, CONTEXTS);
    store<u8>(watched, 0, LATEST);
    store<u8>(watched, 0, OWN);
    store<u8>(watched, 0, INNER);
    store<u8>(watched, 0, OUTPUTS);
    store<u32>(changetype<usize>(s) + ((<usize>s.depth) << 2), counted(s, offset), STARTS);
  }
  return isObject ? FIRST_KEY : FIRST_VALUE;
}

function close(s: Scan, offset: u32): u8 {
  const closed = context(s);
  const at = changetype<usize>(s) + <usize>s.depth;
  s.depth--;
  if (closed == Context.ITEM || closed == Context.LIST) {
    // The parent is watched, too: a list or an item, or the body itself.
    if (load<u8>(at, OWN) & MEDIA)
      noteMedia(s, counted(s, offset) - load<u32>(changetype<usize>(s) + ((<usize>s.depth + 1) << 2), STARTS));
    const flags = load<u8>(at, OWN) | load<u8>(at, INNER) | load<u8>(at, OUTPUTS);
    if (s.depth > 1 && latest(s) == Field.OUTPUT) store<u8>(at - 1, load<u8>(at - 1, OUTPUTS) | flags, OUTPUTS);
    else if (s.depth > 1) store<u8>(at - 1, load<u8>(at - 1, INNER) | flags, INNER);
    else if (latest(s) == Field.MESSAGES) s.messages = flags;
    else s.input = flags;
  }
  return endValue(s, offset);
}

/** An image, audio or file of this many bytes has ended. */
function noteMedia(s: Scan, length: u32): void {
  if (load<u8>(changetype<usize>(s), LATEST + 1) == Field.MESSAGES) s.messagesMedia += length;
  else s.inputMedia += length;
}

/** Whether the innermost open container, of which there must be one, is an object. */
function inObject(s: Scan): bool {
  const index = s.depth - 1;
  return ((load<u8>(changetype<usize>(s) + STACK + (<usize>index >> 3)) >> <u8>(index & 7)) & 1) != 0;
}

function context(s: Scan): Context {
  return s.depth < WATCHED
    ? <Context>load<u8>(changetype<usize>(s) + <usize>s.depth, CONTEXTS)
    : Context.NONE;
}

/** The latest key of the innermost container, if it matters. */
function latest(s: Scan): Field {
  return s.depth < WATCHED ? <Field>load<u8>(changetype<usize>(s) + <usize>s.depth, LATEST) : Field.NONE;
}

function endValue(s: Scan, offset: u32): u8 {
  if (s.depth == 0) return END;
  if (s.depth == 1) {
    const field = latest(s);
    if (field >= FIRST_PROMPT && field <= LAST_PROMPT) {
      noteLength(s, field, counted(s, offset) - s.promptFrom);
      noteNumber(s, field, s.promptStart);
    }
  }
  return AFTER;
}

/** Notes what the value of the latest key of the body itself is. */
function setKind(s: Scan, kind: Kind): void {
  if (s.depth == 1) noteKind(s, latest(s), kind);
}

// --- Strings ---

function startKey(s: Scan): u8 {
  s.isKey = true;
  return context(s) == Context.NONE ? startSkipping(s) : startTaking(s, NAME, <u32>NAME_LIMIT);
}

function startText(s: Scan): u8 {
  s.isKey = false;
  const field = textField(s);
  if (field != Field.NONE) return startTaking(s, TEXT_BYTES + <usize>field * <usize>TEXT_LIMIT, TEXT_LIMIT);
  return isTold(s) || isLimit(s) ? startTaking(s, NAME, <u32>NAME_LIMIT) : startSkipping(s);
}

/** The field whose text the value of the latest key is. */
function textField(s: Scan): Field {
  const field = latest(s);
  if (field == Field.NONE) return field;
  switch (context(s)) {
    case Context.TOP:
      return field <= LAST_TEXT ? field : Field.NONE;
    case Context.CONVERSATION:
      return Field.CONVERSATION;
    case Context.METADATA:
      return Field.USER_ID;
    default:
      return Field.NONE;
  }
}

/** Whether the value of the latest key tells what an item is: its type, or the role of a message. */
function isTold(s: Scan): bool {
  const field = latest(s);
  return context(s) == Context.ITEM && (field == Field.TYPE || (field == Field.ROLE && s.depth == 3));
}

/** Whether the value of the latest key limits the answer: a number, which engines read from a text, too. */
function isLimit(s: Scan): bool {
  const field = latest(s);
  return context(s) == Context.TOP && field >= FIRST_LIMIT && field <= LAST_LIMIT;
}

function startSkipping(s: Scan): u8 {
  s.string = SKIP;
  return SKIP;
}

function startTaking(s: Scan, target: usize, room: u32): u8 {
  s.target = changetype<usize>(s) + target;
  s.room = room;
  s.taken = 0;
  s.high = 0;
  s.string = TAKE;
  return TAKE;
}

// @ts-ignore: decorator
@inline
function takeByte(s: Scan, byte: u8): void {
  if (s.high) takeHalf(s);
  push(s, byte);
}

// @ts-ignore: decorator
@inline
function push(s: Scan, byte: u8): void {
  if (s.taken < s.room) store<u8>(s.target + <usize>s.taken, byte);
  s.taken++;
}

function escape(s: Scan, byte: u8): u8 {
  let value: u8 = 0;
  switch (byte) {
    case 0x22:
    case 0x5c:
    case 0x2f:
      value = byte;
      break;
    case 0x62:
      value = 0x08;
      break;
    case 0x66:
      value = 0x0c;
      break;
    case 0x6e:
      value = 0x0a;
      break;
    case 0x72:
      value = 0x0d;
      break;
    case 0x74:
      value = 0x09;
      break;
    case 0x75: {
      s.step = 0;
      s.unit = 0;
      return HEX;
    }
    default:
      return FAILED;
  }
  if (s.string == TAKE) takeByte(s, value);
  return s.string;
}

function hexDigit(s: Scan, byte: u8): u8 {
  let digit = <u32>byte - 0x30;
  if (digit > 9) {
    digit = (<u32>byte | 0x20) - 0x61;
    if (digit > 5) return FAILED;
    digit += 10;
  }
  s.unit = (s.unit << 4) | digit;
  if (++s.step < 4) return HEX;
  s.spared += sparedBy(s.unit);
  if (s.string == TAKE) takeUnit(s, s.unit);
  return s.string;
}

/** Takes a UTF-16 code unit as UTF-8; a half without its other half is written as if it were a character. */
function takeUnit(s: Scan, unit: u32): void {
  if (s.high && unit >> 10 == 0x37) {
    const point = 0x10000 + ((s.high & 0x3ff) << 10) + (unit & 0x3ff);
    s.high = 0;
    push(s, <u8>(0xf0 | (point >> 18)));
    push(s, <u8>(0x80 | ((point >> 12) & 0x3f)));
    push(s, <u8>(0x80 | ((point >> 6) & 0x3f)));
    push(s, <u8>(0x80 | (point & 0x3f)));
    return;
  }
  if (s.high) takeHalf(s);
  if (unit >> 10 == 0x36) s.high = unit;
  else if (unit < 0x80) push(s, <u8>unit);
  else if (unit < 0x800) {
    push(s, <u8>(0xc0 | (unit >> 6)));
    push(s, <u8>(0x80 | (unit & 0x3f)));
  } else takeThree(s, unit);
}

function takeHalf(s: Scan): void {
  const half = s.high;
  s.high = 0;
  takeThree(s, half);
}

function takeThree(s: Scan, unit: u32): void {
  push(s, <u8>(0xe0 | (unit >> 12)));
  push(s, <u8>(0x80 | ((unit >> 6) & 0x3f)));
  push(s, <u8>(0x80 | (unit & 0x3f)));
}

function endString(s: Scan, offset: u32): u8 {
  const taken = s.string == TAKE;
  if (taken) {
    if (s.high) takeHalf(s);
    endName(s);
  }
  if (s.isKey) {
    noteKey(
      s,
      taken && s.taken <= <u32>NAME_LIMIT ? fieldIn(context(s), s.target, <usize>s.taken) : Field.NONE,
    );
    return COLON;
  }
  if (taken) {
    const field = textField(s);
    if (field != Field.NONE) {
      noteLength(s, field, s.taken);
      noteKind(s, field, Kind.TEXT);
    } else if (isLimit(s)) {
      noteLimit(s);
    } else if (s.taken <= <u32>NAME_LIMIT) {
      const own = changetype<usize>(s) + OWN + <usize>s.depth;
      store<u8>(own, load<u8>(own) | flagsOf(latest(s), s.target, <usize>s.taken));
    }
  } else {
    setKind(s, Kind.TEXT);
  }
  return endValue(s, offset);
}

function noteLimit(s: Scan): void {
  const number = s.taken <= <u32>NAME_LIMIT ? numberIn(s.target, <usize>s.taken) : -1;
  setKind(s, number < 0 ? Kind.TEXT : Kind.NUMBER);
  if (number >= 0) noteNumber(s, latest(s), <u64>number);
}

/** Clears what lies behind a name: names are compared as whole words. */
function endName(s: Scan): void {
  const name = changetype<usize>(s) + NAME;
  if (s.target != name || s.taken > <u32>NAME_LIMIT) return;
  v128.store(name + <usize>s.taken, i64x2.splat(0));
  v128.store(name + <usize>s.taken, i64x2.splat(0), 16);
}

/** A key begins: what its earlier occurrences in the same object have told is forgotten. */
function noteKey(s: Scan, field: Field): void {
  if (s.depth >= WATCHED) return;
  const at = changetype<usize>(s) + <usize>s.depth;
  store<u8>(at, <u8>field, LATEST);
  if (field == Field.NONE) return;
  switch (context(s)) {
    case Context.TOP: {
      noteKind(s, field, Kind.ABSENT);
      if (field == Field.METADATA) noteKind(s, Field.USER_ID, Kind.ABSENT);
      else if (field == Field.TOOLS) s.hasTools = false;
      else if (field == Field.MESSAGES) {
        s.messages = 0;
        s.messagesMedia = 0;
      } else if (field == Field.INPUT) {
        s.input = 0;
        s.inputMedia = 0;
      }
      break;
    }
    case Context.CONVERSATION: {
      noteKind(s, Field.CONVERSATION, Kind.OTHER);
      break;
    }
    case Context.METADATA: {
      noteKind(s, Field.USER_ID, Kind.OTHER);
      break;
    }
    case Context.ITEM: {
      if (field == Field.CONTENT) store<u8>(at, 0, INNER);
      else if (field == Field.OUTPUT) store<u8>(at, 0, OUTPUTS);
      else store<u8>(at, load<u8>(at, OWN) & ~(field == Field.TYPE ? BY_TYPE : ANSWER), OWN);
      break;
    }
  }
}

// --- Numbers and literals ---

const END_OF_NUMBER: u8 = 255;
const MOST_PLACES: i32 = 1_000_000;

/** Where a number is after this byte; END_OF_NUMBER if the byte is not part of it. */
function nextOfNumber(s: Scan, byte: u8): u8 {
  const step = s.step;
  if (byte >= 0x30 && byte <= 0x39) return nextOfDigits(s, step, byte);
  if (byte == 0x2e && (step == ZERO || step == INTEGER)) return POINT;
  if ((byte | 0x20) == 0x65 && (step == ZERO || step == INTEGER || step == FRACTION)) return EXPONENT;
  if ((byte == 0x2b || byte == 0x2d) && step == EXPONENT) {
    s.shrinks = byte == 0x2d;
    return EXPONENT_SIGN;
  }
  return END_OF_NUMBER;
}

function nextOfDigits(s: Scan, step: u8, byte: u8): u8 {
  if (step == ZERO) return END_OF_NUMBER;
  if (step <= INTEGER) {
    s.number = withDigit(s.number, byte);
    return step == MINUS && byte == 0x30 ? ZERO : INTEGER;
  }
  if (step <= FRACTION) {
    if (hasRoom(s.number)) {
      s.number = withDigit(s.number, byte);
      s.places--;
    }
    return FRACTION;
  }
  // A number that is not zero has reached any limit long before.
  s.exponent = min(s.exponent * 10 + <i32>(byte - 0x30), MOST_PLACES);
  return EXPONENT_DIGITS;
}

function isWholeNumber(step: u8): bool {
  return step == ZERO || step == INTEGER || step == FRACTION || step == EXPONENT_DIGITS;
}

function endNumber(s: Scan, offset: u32): u8 {
  if (s.depth == 1) {
    setKind(s, s.negative ? Kind.OTHER : Kind.NUMBER);
    noteNumber(s, latest(s), shifted(s.number, s.places + (s.shrinks ? -s.exponent : s.exponent)));
  }
  return endValue(s, offset);
}

function literalByte(s: Scan, byte: u8, offset: u32): u8 {
  const word = LITERALS + ((<usize>s.literal) << 3);
  if (load<u8>(word + <usize>s.step) != byte) return FAILED;
  s.step++;
  if (load<u8>(word + <usize>s.step)) return LITERAL;
  if (s.literal == MARK) return VALUE;
  setKind(s, s.literal == 0 ? Kind.TRUE : s.literal == 1 ? Kind.FALSE : Kind.OTHER);
  return endValue(s, offset);
}
