// What an answer tells of its tokens: the `usage` object of OpenAI's and Anthropic's interfaces, found in the last
// bytes of an answer, and the events of a stream, counted as they pass.

import { sameName, Text } from '../abi/text';

/** Counts above this are nonsense. */
const MOST_TOKENS: i32 = 100_000_000;

/** What is known of the tokens of one answer. */
@unmanaged
export class Tokens {
  prompt: u32;
  output: u32;
  /** Prompt tokens that came from a cache. */
  cached: u32;
  /** Prompt tokens besides `prompt`: Anthropic counts what a cache gave and took apart. */
  besides: u32;
  hasPrompt: bool;
  hasOutput: bool;
  hasCached: bool;
  /** What the line being read is, as far as it has been seen. */
  line: u8;
  /** The line before it ended in a carriage return, to which a line feed may still belong. */
  returned: bool;
  /** Something has been seen of the event being read. */
  inEvent: bool;
  events: u32;
  // Of a stream whose first token has not come: how much of a byte order mark it began with; how many bytes of a line have
  // been seen, the first of them, and the last eight, with the latest in the lowest byte; how far its data look like those
  // of an event that tells its name in them; and whether the event being read says by its name that it is no token.
  marked: u32;
  step: u8;
  isPrelude: bool;
  /** An error has come where the first token was waited for. */
  failed: bool;
  begun: u32;
  first: u64;
  last: u64;
}

const LF: u8 = 0x0a;
const CR: u8 = 0x0d;

// What a line of a stream is.
const EMPTY: u8 = 0;
const COMMENT: u8 = 1;
const FIELD: u8 = 2;

const USAGE: u64 = word('"usage"');
const PROMPT_TOKENS = new Text('prompt_tokens');
const INPUT_TOKENS = new Text('input_tokens');
const COMPLETION_TOKENS = new Text('completion_tokens');
const OUTPUT_TOKENS = new Text('output_tokens');
const CACHED_TOKENS = new Text('cached_tokens');
const CACHE_READ = new Text('cache_read_input_tokens');
const CACHE_CREATION = new Text('cache_creation_input_tokens');
const CACHE_HIT = new Text('prompt_cache_hit_tokens');

/** At most eight characters, the first in the lowest byte. */
function word(text: string): u64 {
  let bytes: u64 = 0;
  for (let i = text.length - 1; i >= 0; i--) bytes = (bytes << 8) | <u64>text.charCodeAt(i);
  return bytes;
}

/**
 * Takes in the last `usage` object among the bytes, if it is complete; what it does not tell stays as it was. Quotes
 * in texts are escaped, so a text that looks like a `usage` object is not taken for one.
 */
export function readUsage(at: usize, length: usize, tokens: Tokens): void {
  const end = at + length;
  let p = findUsage(at, end);
  if (!p) return;
  let prompt = -1;
  let output = -1;
  let cached = -1;
  let besides = 0;
  let depth = 1;
  while (p < end) {
    const byte = load<u8>(p);
    if (byte != 0x22) {
      if (byte == 0x7b) depth++;
      else if (byte == 0x7d && --depth == 0) return take(tokens, prompt, output, cached, besides);
      p++;
      continue;
    }
    const name = p + 1;
    p = endOfText(name, end);
    const nameLength = p - name;
    p = afterColon(p + 1, end);
    const digits = p;
    let value = 0;
    while (p < end && isDigit(load<u8>(p)) && value <= MOST_TOKENS) value = value * 10 + load<u8>(p++) - 48;
    if (p == digits || value > MOST_TOKENS) continue;
    switch (<i32>nameLength) {
      case 12: {
        if (is(INPUT_TOKENS, name)) prompt = value;
        break;
      }
      case 13: {
        if (is(PROMPT_TOKENS, name)) prompt = value;
        else if (is(OUTPUT_TOKENS, name)) output = value;
        else if (is(CACHED_TOKENS, name)) cached = value;
        break;
      }
      case 17: {
        if (is(COMPLETION_TOKENS, name)) output = value;
        break;
      }
      case 23: {
        if (is(CACHE_HIT, name)) {
          cached = value;
        } else if (is(CACHE_READ, name)) {
          cached = value;
          besides += value;
        }
        break;
      }
      case 27: {
        if (is(CACHE_CREATION, name)) besides += value;
        break;
      }
    }
  }
}

/** Keeps what an object told that has come to its end; what it did not tell is negative. */
function take(tokens: Tokens, prompt: i32, output: i32, cached: i32, besides: i32): void {
  if (prompt >= 0) {
    tokens.prompt = prompt;
    tokens.hasPrompt = true;
  }
  if (output >= 0) {
    tokens.output = output;
    tokens.hasOutput = true;
  }
  if (cached >= 0) {
    tokens.cached = cached;
    tokens.hasCached = true;
  }
  if (besides) tokens.besides = besides;
}

/** Where the contents of the last `usage` object begin, 0 if there is none. */
function findUsage(at: usize, end: usize): usize {
  if (end - at < 10) return 0;
  const quote = i8x16.splat(0x22);
  // Sixteen places at a time, from behind, by the two quotes of the name.
  let p = end - 6;
  while (p >= at + 16) {
    p -= 16;
    const first = i8x16.eq(v128.load(p), quote);
    const second = i8x16.eq(v128.load(p, 6), quote);
    let places = i8x16.bitmask(v128.and(first, second));
    while (places) {
      const place = 31 - clz(places);
      const contents = contentsOf(p + <usize>place, end);
      if (contents) return contents;
      places ^= 1 << place;
    }
  }
  while (p > at) {
    const contents = contentsOf(--p, end);
    if (contents) return contents;
  }
  return 0;
}

/** Where the contents of a `usage` object begin whose name is here, 0 if it is not. */
// @ts-ignore: decorator
@inline
function contentsOf(p: usize, end: usize): usize {
  if (p + 8 > end || (load<u64>(p) & 0x00ff_ffff_ffff_ffff) != USAGE) return 0;
  const value = afterColon(p + 7, end);
  return value > p + 7 && value < end && load<u8>(value) == 0x7b ? value + 1 : 0;
}

/** The quote that ends a text, `end` if there is none. */
export function endOfText(at: usize, end: usize): usize {
  let p = at;
  while (p + 16 <= end) {
    const bytes = v128.load(p);
    const quotes = i8x16.eq(bytes, i8x16.splat(0x22));
    const places = i8x16.bitmask(v128.or(quotes, i8x16.eq(bytes, i8x16.splat(0x5c))));
    if (!places) {
      p += 16;
      continue;
    }
    p += <usize>ctz(places);
    if (load<u8>(p) == 0x22) return p;
    p += 2;
  }
  while (p < end && load<u8>(p) != 0x22) p += load<u8>(p) == 0x5c ? 2 : 1;
  return min(p, end);
}

/** Behind a colon and the space around it; `at` itself if there is no colon. */
export function afterColon(at: usize, end: usize): usize {
  let p = skipSpace(at, end);
  if (p >= end || load<u8>(p) != 0x3a) return at;
  return skipSpace(p + 1, end);
}

// @ts-ignore: decorator
@inline
export function skipSpace(at: usize, end: usize): usize {
  return at < end && load<u8>(at) <= 0x20 ? endOfSpace(at + 1, end) : at;
}

function endOfSpace(at: usize, end: usize): usize {
  let p = at;
  while (p < end && load<u8>(p) <= 0x20) p++;
  return p;
}

// @ts-ignore: decorator
@inline
function isDigit(byte: u8): bool {
  return byte >= 48 && byte <= 57;
}

/** Whether a name of the same length is this one. */
// @ts-ignore: decorator
@inline
function is(name: Text, at: usize): bool {
  return sameName(at, name.at, name.length);
}

/** A byte order mark, the first of its bytes in the lowest. */
const MARK: u32 = 0xbfbbef;
const MARK_BYTES: u32 = 3;

/**
 * Behind the byte order mark that a stream may begin with, or a part of one, which is nothing either. To be called with each
 * of a stream's first pieces.
 */
export function skipMark(at: usize, length: usize, tokens: Tokens): usize {
  let p = at;
  while (p < at + length && tokens.marked < MARK_BYTES) {
    if (load<u8>(p) == <u8>(MARK >> (tokens.marked << 3))) {
      tokens.marked++;
      p++;
    } else {
      tokens.marked = MARK_BYTES;
    }
  }
  return p;
}

/** The longest of the beginnings of lines that matter. */
const LONGEST: u32 = 6;
const EVENT: u64 = ending('event:');
const DATA: u64 = ending('data:');
/** What data begin with that tell the event's name, the first in the lowest byte; a quote follows. */
const TYPE: u64 = word('{"type":');
const QUOTE_STEP: u8 = 8;
const NAME_STEP: u8 = 9;
/** How they go on, behind a brace, a quote and an `e`, where they are an error without a name. */
const ERROR_FIELD: u64 = word('rror":');
const ERROR_STEP: u8 = 16;
const COLON_STEP: u8 = ERROR_STEP + 5;
const VALUE_STEP: u8 = ERROR_STEP + 6;
/** Bit i: spaces may stand before the i-th byte of these. */
const MAY_BE_SPACED: u32 = (1 << 0) | (1 << 1) | (1 << 7) | (1 << 8);
/** Bytes of a line that are looked at for a name in its data. */
const MOST_OF_NAME: u32 = 96;
// How the names of events end that come before the first token, whatever engines do before they send them: of OpenAI's
// responses that they were queued and have begun, of Anthropic's messages and parts of either that they begin.
const QUEUED: u64 = ending('.queued');
const CREATED: u64 = ending('.created');
const IN_PROGRESS: u64 = ending('progress');
const ADDED: u64 = ending('.added');
const START: u64 = ending('_start');
const PING: u64 = ending('ping');
/** Of a tool that an engine calls by itself, which the answer outlives. */
const TOOL_FAILED: u64 = ending('.failed');
// And of those that say that the answer has failed.
const ERROR: u64 = ending('error');
const FAILED: u64 = ending('e.failed');

/** At most eight characters, the last in the lowest byte. */
function ending(text: string): u64 {
  let bytes: u64 = 0;
  for (let i = 0; i < text.length; i++) bytes = (bytes << 8) | <u64>text.charCodeAt(i);
  return bytes;
}

/** Whether the first token of a stream is among the next of its bytes, however it is cut into pieces. After an error none is. */
export function hasToken(at: usize, length: usize, tokens: Tokens): bool {
  const end = at + length;
  let p = at;
  while (p < end && !tokens.failed) {
    const byte = load<u8>(p++);
    if (byte == LF || byte == CR) {
      if (endsInToken(byte, tokens)) return true;
      continue;
    }
    tokens.begun++;
    if (tokens.first == DATA) {
      if (!tokens.isPrelude && showsToken(byte, tokens)) return true;
      if (tokens.isPrelude) p = findLineEnd(p, end);
    } else if (tokens.begun <= LONGEST) {
      tokens.first = (tokens.first << 8) | <u64>byte;
    } else if (tokens.first != EVENT) {
      p = findLineEnd(p, end);
    }
    tokens.last = (tokens.last << 8) | <u64>byte;
  }
  return false;
}

/** A line has come to its end: whether it was data of a token, which their beginning did not show. */
function endsInToken(byte: u8, tokens: Tokens): bool {
  const isData = tokens.first == DATA && !tokens.isPrelude && tokens.step > 0;
  if (tokens.begun) {
    if (tokens.first == EVENT) noteName(tokens);
  } else if (byte == CR || tokens.last != CR) {
    tokens.isPrelude = false;
  }
  tokens.begun = 0;
  tokens.first = 0;
  tokens.step = 0;
  tokens.last = byte;
  return isData;
}

/**
 * Takes in the next byte of data: true once it shows that these are no event that only says that something begins.
 * Events without a line for their name tell it in their data, as the first of its fields.
 */
function showsToken(byte: u8, tokens: Tokens): bool {
  const step = tokens.step;
  if (step < NAME_STEP) {
    if (byte == (step == QUOTE_STEP ? 0x22 : <u8>(TYPE >> (<u64>step << 3)))) {
      tokens.step++;
      return false;
    }
    if (step == 2 && byte == 0x65) {
      tokens.step = ERROR_STEP;
      return false;
    }
    if (byte != 0x20 || !((MAY_BE_SPACED >> <u32>step) & 1)) return true;
  } else if (step >= ERROR_STEP) {
    if (!goesOnAsError(byte, tokens)) return true;
    if (tokens.failed) return false;
  } else if (byte == 0x22) {
    noteName(tokens);
    return !tokens.isPrelude;
  }
  return tokens.begun > MOST_OF_NAME;
}

/** Whether data that may be an error without a name still may, with their next byte: a field `error` that holds something. */
function goesOnAsError(byte: u8, tokens: Tokens): bool {
  const step = tokens.step;
  if (step < VALUE_STEP && byte == <u8>(ERROR_FIELD >> (<u64>(step - ERROR_STEP) << 3))) {
    tokens.step++;
    return true;
  }
  if (byte == 0x20) return step >= COLON_STEP;
  if (step != VALUE_STEP || (byte != 0x7b && byte != 0x22)) return false;
  tokens.failed = true;
  tokens.isPrelude = true;
  return true;
}

/** Takes in the name of an event, of which the last bytes have been seen. */
function noteName(tokens: Tokens): void {
  tokens.failed = isErrorName(tokens.last);
  tokens.isPrelude = tokens.failed || isPreludeName(tokens.last);
}

export function isErrorName(last: u64): bool {
  return (last << 24) >> 24 == ERROR || last == FAILED;
}

function isPreludeName(last: u64): bool {
  return (
    (last << 8) >> 8 == QUEUED ||
    last == CREATED ||
    last == IN_PROGRESS ||
    (last << 16) >> 16 == ADDED ||
    (last << 16) >> 16 == START ||
    (last << 32) >> 32 == PING ||
    (last << 8) >> 8 == TOOL_FAILED
  );
}

/** The end of the line, `end` if there is none. */
function findLineEnd(at: usize, end: usize): usize {
  let p = at;
  for (; p + 16 <= end; p += 16) {
    const places = lineEnds(v128.load(p));
    if (places) return p + <usize>ctz(places);
  }
  while (p < end && load<u8>(p) != LF && load<u8>(p) != CR) p++;
  return p;
}

/** A bit for each byte that ends a line: a line feed, a carriage return, or both, one after the other. */
// @ts-ignore: decorator
@inline
export function lineEnds(bytes: v128): i32 {
  return i8x16.bitmask(v128.or(i8x16.eq(bytes, i8x16.splat(LF)), i8x16.eq(bytes, i8x16.splat(CR))));
}

/** Counts the events that end in these bytes of a stream, however it is cut into pieces; comments are none. */
export function countEvents(at: usize, length: usize, tokens: Tokens): void {
  const end = at + length;
  let start = at;
  let p = at;
  for (; p + 16 <= end; p += 16) {
    let ends = lineEnds(v128.load(p));
    while (ends) {
      start = endLine(start, p + <usize>ctz(ends), tokens);
      ends &= ends - 1;
    }
  }
  for (; p < end; p++) if (load<u8>(p) == LF || load<u8>(p) == CR) start = endLine(start, p, tokens);
  noteLine(start, end, tokens);
}

/** Takes in the rest of a line up to its end; an empty one ends an event. The next line's start is returned. */
// @ts-ignore: decorator
@inline
function endLine(start: usize, lineEnd: usize, tokens: Tokens): usize {
  noteLine(start, lineEnd, tokens);
  const isReturn = load<u8>(lineEnd) == CR;
  if (tokens.line == EMPTY && tokens.inEvent && (isReturn || !tokens.returned)) {
    tokens.events++;
    tokens.inEvent = false;
  }
  tokens.line = EMPTY;
  tokens.returned = isReturn;
  return lineEnd + 1;
}

/** Takes in some of a line, without its end. */
// @ts-ignore: decorator
@inline
function noteLine(start: usize, end: usize, tokens: Tokens): void {
  if (tokens.line != EMPTY || start == end) return;
  tokens.line = load<u8>(start) == 0x3a ? COMMENT : FIELD;
  if (tokens.line == FIELD) tokens.inEvent = true;
}
