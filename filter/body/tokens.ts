// What an answer tells of its tokens: the `usage` object of OpenAI's and Anthropic's interfaces, found in the last
// bytes of an answer, and the events of a stream, counted as they pass.

/** Counts above this are nonsense. */
const MOST_TOKENS: u32 = 100_000_000;

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
  /** Nothing but its end has been seen of the line being read. */
  lineIsEmpty: bool;
  /** Something has been seen of the event being read. */
  inEvent: bool;
  events: u32;
}

// Names as words of eight bytes and a rest, so that none is compared byte by byte twice.
const USAGE: u64 = word('"usage"');
const PROMPT_TOKENS = new Name('prompt_tokens');
const INPUT_TOKENS = new Name('input_tokens');
const COMPLETION_TOKENS = new Name('completion_tokens');
const OUTPUT_TOKENS = new Name('output_tokens');
const CACHED_TOKENS = new Name('cached_tokens');
const CACHE_READ = new Name('cache_read_input_tokens');
const CACHE_CREATION = new Name('cache_creation_input_tokens');
const CACHE_HIT = new Name('prompt_cache_hit_tokens');

class Name {
  at: usize;
  length: usize;

  constructor(name: string) {
    this.length = <usize>name.length;
    this.at = heap.alloc(this.length);
    for (let i = 0; i < name.length; i++) store<u8>(this.at + <usize>i, <u8>name.charCodeAt(i));
  }
}

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
  const open = findUsage(at, end);
  if (!open) return;
  const close = closeOf(open, end);
  if (!close) return;
  let besides: u32 = 0;
  for (let p = open; p < close; ) {
    if (load<u8>(p) != 0x22) {
      p++;
      continue;
    }
    const name = p + 1;
    p = endOfText(name, close);
    const nameLength = p - name;
    p = afterColon(p + 1, close);
    const digits = p;
    let value: u32 = 0;
    while (p < close && isDigit(load<u8>(p)) && value <= MOST_TOKENS) value = value * 10 + load<u8>(p++) - 48;
    if (p == digits || value > MOST_TOKENS) continue;
    if (is(PROMPT_TOKENS, name, nameLength) || is(INPUT_TOKENS, name, nameLength)) {
      tokens.prompt = value;
      tokens.hasPrompt = true;
    } else if (is(COMPLETION_TOKENS, name, nameLength) || is(OUTPUT_TOKENS, name, nameLength)) {
      tokens.output = value;
      tokens.hasOutput = true;
    } else if (is(CACHED_TOKENS, name, nameLength) || is(CACHE_HIT, name, nameLength)) {
      tokens.cached = value;
      tokens.hasCached = true;
    } else if (is(CACHE_READ, name, nameLength)) {
      tokens.cached = value;
      tokens.hasCached = true;
      besides += value;
    } else if (is(CACHE_CREATION, name, nameLength)) {
      besides += value;
    }
  }
  if (besides) tokens.besides = besides;
}

/** Where the contents of the last `usage` object begin, 0 if there is none. */
function findUsage(at: usize, end: usize): usize {
  if (end - at < 10) return 0;
  for (let p = end - 8; p >= at; p--) {
    if ((load<u64>(p) & 0x00ff_ffff_ffff_ffff) != USAGE) continue;
    const value = afterColon(p + 7, end);
    if (value > p + 7 && value < end && load<u8>(value) == 0x7b) return value + 1;
  }
  return 0;
}

/** Where the object ends whose contents begin at `open`, 0 if it does not. */
function closeOf(open: usize, end: usize): usize {
  let depth = 1;
  for (let p = open; p < end; p++) {
    const byte = load<u8>(p);
    if (byte == 0x22) p = endOfText(p + 1, end);
    else if (byte == 0x7b) depth++;
    else if (byte == 0x7d && --depth == 0) return p;
  }
  return 0;
}

/** The quote that ends a text, `end` if there is none. */
function endOfText(at: usize, end: usize): usize {
  let p = at;
  while (p < end && load<u8>(p) != 0x22) p += load<u8>(p) == 0x5c ? 2 : 1;
  return min(p, end);
}

/** Behind a colon and the space around it; `at` itself if there is no colon. */
function afterColon(at: usize, end: usize): usize {
  let p = skipSpace(at, end);
  if (p >= end || load<u8>(p) != 0x3a) return at;
  return skipSpace(p + 1, end);
}

function skipSpace(at: usize, end: usize): usize {
  let p = at;
  while (p < end && load<u8>(p) <= 0x20) p++;
  return p;
}

// @ts-ignore: decorator
@inline
function isDigit(byte: u8): bool {
  return byte >= 48 && byte <= 57;
}

function is(name: Name, at: usize, length: usize): bool {
  return length == name.length && memory.compare(at, name.at, length) == 0;
}

/** Counts the events that end in these bytes of a stream, however it is cut into pieces. */
export function countEvents(at: usize, length: usize, tokens: Tokens): void {
  const end = at + length;
  let start = at;
  let p = at;
  for (; p + 16 <= end; p += 16) {
    let lines = i8x16.bitmask(i8x16.eq(v128.load(p), i8x16.splat(0x0a)));
    while (lines) {
      start = endLine(start, p + <usize>ctz(lines), tokens);
      lines &= lines - 1;
    }
  }
  for (; p < end; p++) if (load<u8>(p) == 0x0a) start = endLine(start, p, tokens);
  if (hasContent(start, end)) {
    tokens.lineIsEmpty = false;
    tokens.inEvent = true;
  }
}

/** Takes in the rest of a line up to its end; an empty one ends an event. The next line's start is returned. */
// @ts-ignore: decorator
@inline
function endLine(start: usize, lineEnd: usize, tokens: Tokens): usize {
  if (hasContent(start, lineEnd)) {
    tokens.inEvent = true;
  } else if (tokens.lineIsEmpty && tokens.inEvent) {
    tokens.events++;
    tokens.inEvent = false;
  }
  tokens.lineIsEmpty = true;
  return lineEnd + 1;
}

// @ts-ignore: decorator
@inline
function hasContent(start: usize, end: usize): bool {
  return end - start > 1 || (end - start == 1 && load<u8>(start) != 0x0d);
}
