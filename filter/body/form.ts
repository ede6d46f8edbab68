// Reads a form (`multipart/form-data`, RFC 7578) as it arrives, in pieces cut anywhere, without building anything. Of
// repeated fields the last counts, as in the servers of engines. Readers of forms disagree about much that no client
// sends (bare line feeds, folded headers, space after a boundary, extended names …): such a form counts as broken,
// because an engine might see another model in it. Contents are skipped 16 bytes at a time.

import { equals, lower, Text } from '../abi/text';
import { BOUNDARY_LIMIT, boundaryLength, FOUND_BOUNDARY, isSpace, keepBoundary } from './boundary';
import { AUDIO, Context, Field, FILE, fieldIn, IMAGE, LAST_TEXT, NAME_LIMIT } from './fields';
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

// What is expected next.
const PREAMBLE: u8 = 0; // anything, up to the first delimiter
const DELIMITED: u8 = 1; // the end of a delimiter's line, or of the form
const DELIMITER_LF: u8 = 2;
const LAST_DASH: u8 = 3;
const HEADER: u8 = 4; // a header, or the end of the headers
const HEADERS_LF: u8 = 5;
const NAME: u8 = 6; // the rest of a header's name
const VALUE: u8 = 7; // the rest of a header's line, which does not matter
const VALUE_LF: u8 = 8;
const WORD: u8 = 9; // the first word of a header that matters
const PARAMETER: u8 = 10; // a parameter's name
const ASSIGNED: u8 = 11; // a parameter's value
const TOKEN: u8 = 12;
const QUOTED: u8 = 13;
const QUOTED_PAIR: u8 = 14;
const AFTER: u8 = 15; // a semicolon, or the end of the line
const CONTENT: u8 = 16;
const END: u8 = 17; // nothing that matters
const AT_FILE: u8 = 18; // stopped before the first file
const FAILED: u8 = 19;

// Headers that matter.
const OTHER: u8 = 0;
const DISPOSITION: u8 = 1;
const TYPE: u8 = 2;
const ENCODING: u8 = 3;

@unmanaged
export class Form extends Found {
  mode: u8;
  /** Only what comes before the first file is read. */
  headOnly: bool;
  /** What files are whose type does not tell. */
  filesAre: u8;
  /** The line break before the delimiter that is being matched is another's end, and not part of what is read. */
  borrowed: bool;
  /** The header that is being read. */
  header: u8;
  /** The parameter being read is the part's name. */
  isName: bool;
  // Of the part: its field, and what its headers have said so far.
  field: u8;
  disposed: bool;
  named: bool;
  isFile: bool;
  encoded: bool;
  media: u8;
  /** Bytes matched of the delimiter. */
  matched: u32;
  delimiterLength: u32;
  /** Where a word or the part's content goes, 0 for nowhere; how much fits there, and how much it is. */
  target: usize;
  room: u32;
  taken: u32;
}

/** CR LF and two hyphens come before the boundary. */
const DELIMITER: usize = (offsetof<Form>() + 7) & ~7;
const WORD_BYTES: usize = DELIMITER + ((4 + BOUNDARY_LIMIT + 7) & ~7);
const STATE_END: usize = WORD_BYTES + 2 * NAME_LIMIT;

const CONTENT_DISPOSITION = new Text('content-disposition');
const CONTENT_TYPE = new Text('content-type');
const CONTENT_TRANSFER_ENCODING = new Text('content-transfer-encoding');
const FORM_DATA = new Text('form-data');
const NAME_PARAMETER = new Text('name');
const FILENAME = new Text('filename');
const IMAGE_TYPE = new Text('image/');
const AUDIO_TYPE = new Text('audio/');
/** Transfer encodings that change nothing. */
const plain: StaticArray<Text> = [new Text('7bit'), new Text('8bit'), new Text('binary')];
/** Spellings of true that the servers of engines take. */
const truths: StaticArray<Text> = [
  new Text('true'),
  new Text('1'),
  new Text('on'),
  new Text('yes'),
  new Text('t'),
  new Text('y'),
];

/**
 * Prepares a block of FOUND_SIZE bytes for a form with the boundary found last. `filesAre` is the flag of `fields.ts` for
 * all of its files, or 0: then the type of each tells.
 */
export function startForm(at: usize, filesAre: u8): Form {
  if (STATE_END > STATE_ROOM) ERROR('the state of a form has no room');
  clearFound(at);
  const delimiter = at + DELIMITER;
  store<u32>(delimiter, 0x2d2d0a0d);
  memory.copy(delimiter + 4, FOUND_BOUNDARY, boundaryLength);
  const f = changetype<Form>(at);
  f.isForm = true;
  f.filesAre = filesAre;
  f.delimiterLength = 4 + <u32>boundaryLength;
  startMatching(f);
  return f;
}

/** Begins a form anew, to read no further than its first file. */
export function restartAtHead(f: Form): void {
  const at = changetype<usize>(f);
  const filesAre = f.filesAre;
  keepBoundary(at + DELIMITER + 4, <usize>f.delimiterLength - 4);
  startForm(at, filesAre).headOnly = true;
}

/** Whether the bytes read are one complete form. */
export function isCompleteForm(f: Form): bool {
  return f.mode == END;
}

/** Whether all before the first file has been read, and no more is to be. */
export function isAtFile(f: Form): bool {
  return f.mode == AT_FILE;
}

/** Whether what comes next makes no difference any more, where only what comes before the first file is read. */
export function isHeadRead(f: Form): bool {
  return f.headOnly && f.mode >= END;
}

export function isBrokenForm(f: Form): bool {
  return f.mode == FAILED;
}

/** Reads the next piece of the form. */
export function scanForm(f: Form, start: usize, length: usize): void {
  const end = start + length;
  let at = start;
  let mode = f.mode;
  while (at < end) {
    if (mode == CONTENT || mode == PREAMBLE) {
      if (!f.matched) {
        at = takeContent(f, at, end);
        if (at == end) break;
      }
      if (load<u8>(at) != load<u8>(changetype<usize>(f) + DELIMITER + <usize>f.matched)) {
        // No delimiter: what looked like one is content. Its first byte is nowhere else in it.
        giveBack(f);
        continue;
      }
      at++;
      if (++f.matched == f.delimiterLength) mode = mode == PREAMBLE ? DELIMITED : endPart(f);
      continue;
    }
    if (mode >= END) break;
    mode = structure(f, mode, load<u8>(at++), f.offset + <u32>(at - start));
  }
  f.mode = mode;
  f.offset += <u32>length;
}

// --- Contents ---

/** Takes contents up to where a delimiter may begin. */
function takeContent(f: Form, start: usize, end: usize): usize {
  const at = findDelimiter(start, end);
  take(f, start, at - start);
  return at;
}

/** The next CR that has LF and a hyphen behind it, or that is too close to the end to tell; the end if there is none. */
function findDelimiter(start: usize, end: usize): usize {
  let at = start;
  while (at + 18 <= end) {
    const mask = i8x16.bitmask(
      v128.and(
        v128.and(
          i8x16.eq(v128.load(at), i8x16.splat(0x0d)),
          i8x16.eq(v128.load(at, 1), i8x16.splat(0x0a)),
        ),
        i8x16.eq(v128.load(at, 2), i8x16.splat(0x2d)),
      ),
    );
    if (mask) return at + <usize>ctz(mask);
    at += 16;
  }
  while (at < end && load<u8>(at) != 0x0d) at++;
  return at;
}

function take(f: Form, at: usize, length: usize): void {
  if (f.target && f.taken < f.room) {
    memory.copy(f.target + <usize>f.taken, at, min(length, <usize>(f.room - f.taken)));
  }
  f.taken += <u32>length;
}

/** A delimiter can begin at the very start: the line break that belongs to it is the one before. */
function startMatching(f: Form): void {
  f.matched = 2;
  f.borrowed = true;
}

function giveBack(f: Form): void {
  const delimiter = changetype<usize>(f) + DELIMITER;
  const borrowed: usize = f.borrowed ? 2 : 0;
  take(f, delimiter + borrowed, <usize>f.matched - borrowed);
  f.matched = 0;
  f.borrowed = false;
}

/** The delimiter behind a part's content has come. */
function endPart(f: Form): u8 {
  // Right behind the headers it is the part's end to some and content to others.
  if (f.borrowed) return FAILED;
  const field = <Field>f.field;
  if (field == Field.NONE) return DELIMITED;
  if (f.isFile) {
    noteKind(f, field, Kind.OTHER);
  } else if (field == Field.STREAM) {
    noteKind(f, field, isTrue(f.target, <usize>f.taken) ? Kind.TRUE : Kind.FALSE);
  } else {
    noteKind(f, field, Kind.TEXT);
    noteLength(f, field, f.taken);
  }
  return DELIMITED;
}

function isTrue(at: usize, length: usize): bool {
  if (length > NAME_LIMIT) return false;
  for (let i: usize = 0; i < length; i++) store<u8>(at + i, lower(load<u8>(at + i)));
  return isOneOf(truths, at, length);
}

// --- Headers ---

/** A byte outside of contents; `offset` is where it ends in the body. */
function structure(f: Form, mode: u8, byte: u8, offset: u32): u8 {
  switch (mode) {
    case DELIMITED: {
      if (byte == 0x2d) return LAST_DASH;
      return byte == 0x0d ? DELIMITER_LF : FAILED;
    }
    case LAST_DASH:
      return byte == 0x2d ? END : FAILED;
    case DELIMITER_LF: {
      startPart(f);
      return byte == 0x0a ? HEADER : FAILED;
    }
    case HEADER: {
      if (byte == 0x0d) return HEADERS_LF;
      startWord(f);
      // It could be a delimiter.
      return byte == 0x2d ? FAILED : nameByte(f, byte);
    }
    case NAME:
      return byte == 0x3a ? startValue(f) : nameByte(f, byte);
    case HEADERS_LF:
      return byte == 0x0a ? startContent(f, offset) : FAILED;
    case VALUE_LF:
      return byte == 0x0a ? HEADER : FAILED;
    case VALUE: {
      if (byte == 0x0d) return VALUE_LF;
      return isControl(byte) ? FAILED : VALUE;
    }
    default:
      return parameters(f, mode, byte);
  }
}

function startPart(f: Form): void {
  f.field = <u8>Field.NONE;
  f.disposed = false;
  f.named = false;
  f.isFile = false;
  f.encoded = false;
  f.media = 0;
}

/** A byte of a header's name; a header does not begin with space, which would continue the one before. */
function nameByte(f: Form, byte: u8): u8 {
  if (byte <= 0x20 || byte >= 0x7f || byte == 0x3a) return FAILED;
  wordByte(f, lower(byte));
  return NAME;
}

function startValue(f: Form): u8 {
  f.header = isWord(f, CONTENT_DISPOSITION)
    ? DISPOSITION
    : isWord(f, CONTENT_TYPE)
      ? TYPE
      : isWord(f, CONTENT_TRANSFER_ENCODING)
        ? ENCODING
        : OTHER;
  if (f.header == DISPOSITION) {
    if (f.disposed) return FAILED;
    f.disposed = true;
  }
  startWord(f);
  return f.header == OTHER ? VALUE : WORD;
}

/** A byte of the value of a header that matters. */
function parameters(f: Form, mode: u8, byte: u8): u8 {
  if (isControl(byte) && byte != 0x0d) return FAILED;
  switch (mode) {
    case WORD: {
      if (isSpace(byte)) return f.taken ? endWord(f, AFTER) : WORD;
      if (byte == 0x3b) return endWord(f, PARAMETER);
      if (byte == 0x0d) return endWord(f, VALUE_LF);
      wordByte(f, lower(byte));
      return WORD;
    }
    case PARAMETER: {
      if (byte == 0x3d) return startAssigned(f);
      if (byte == 0x0d) return f.taken ? FAILED : VALUE_LF;
      if (isSpace(byte) && !f.taken) return PARAMETER;
      if (byte <= 0x20 || byte == 0x3b || byte == 0x22) return FAILED;
      wordByte(f, lower(byte));
      return PARAMETER;
    }
    case ASSIGNED: {
      if (byte == 0x22) return QUOTED;
      if (byte <= 0x20 || byte == 0x3b || byte == 0x5c) return FAILED;
      wordByte(f, byte);
      return TOKEN;
    }
    case TOKEN: {
      if (byte == 0x22 || byte == 0x5c) return FAILED;
      if (byte > 0x20 && byte != 0x3b) {
        wordByte(f, byte);
        return TOKEN;
      }
      endParameter(f);
      return after(f, byte);
    }
    case QUOTED: {
      if (byte == 0x0d) return FAILED;
      if (byte == 0x5c) return QUOTED_PAIR;
      if (byte == 0x22) {
        endParameter(f);
        return AFTER;
      }
      wordByte(f, byte);
      return QUOTED;
    }
    case QUOTED_PAIR: {
      // A name with any other escape is another one to readers that know no escapes.
      if (byte == 0x0d || (f.isName && byte != 0x22 && byte != 0x5c)) return FAILED;
      wordByte(f, byte);
      return QUOTED;
    }
    default:
      return after(f, byte);
  }
}

function after(f: Form, byte: u8): u8 {
  if (byte == 0x0d) return VALUE_LF;
  if (isSpace(byte)) return AFTER;
  startWord(f);
  return byte == 0x3b ? PARAMETER : FAILED;
}

/** The first word of a header has ended. */
function endWord(f: Form, next: u8): u8 {
  if (f.header == DISPOSITION) {
    if (!isWord(f, FORM_DATA)) return FAILED;
    startWord(f);
    return next;
  }
  if (f.header == TYPE) {
    f.media = wordBegins(f, IMAGE_TYPE) ? IMAGE : wordBegins(f, AUDIO_TYPE) ? AUDIO : 0;
  } else if (!isOneOf(plain, f.target, <usize>f.taken)) {
    f.encoded = true;
  }
  return next == VALUE_LF ? VALUE_LF : VALUE;
}

/** The name of a parameter has ended. */
function startAssigned(f: Form): u8 {
  f.isName = false;
  if (wordBegins(f, FILENAME)) {
    if (f.taken == <u32>FILENAME.length || load<u8>(f.target + FILENAME.length) == 0x2a) f.isFile = true;
  } else if (wordBegins(f, NAME_PARAMETER)) {
    f.isName = f.taken == <u32>NAME_PARAMETER.length;
    // A second name, or an extended one (`name*`).
    if (f.isName ? f.named : load<u8>(f.target + NAME_PARAMETER.length) == 0x2a) return FAILED;
  }
  startWord(f);
  return ASSIGNED;
}

/** The value of a parameter has ended. */
function endParameter(f: Form): void {
  if (!f.isName) return;
  f.named = true;
  if (f.taken > <u32>NAME_LIMIT) return;
  const end = f.target + <usize>f.taken;
  v128.store(end, i64x2.splat(0));
  v128.store(end, i64x2.splat(0), 16);
  const field = fieldIn(Context.TOP, f.target, <usize>f.taken);
  if (field <= LAST_TEXT || field == Field.STREAM || field == Field.PROMPT) f.field = <u8>field;
}

/** The headers of a part have ended; its content begins at `offset`. */
function startContent(f: Form, offset: u32): u8 {
  if (!f.named) return FAILED;
  const field = <Field>f.field;
  f.target = 0;
  f.room = 0;
  f.taken = 0;
  startMatching(f);
  if (f.isFile) {
    f.messages |= f.filesAre ? f.filesAre : f.media ? f.media : FILE;
    return f.headOnly ? AT_FILE : CONTENT;
  }
  if (field == Field.NONE) return CONTENT;
  if (f.encoded) return FAILED;
  if (field == Field.STREAM) {
    startWord(f);
  } else if (field == Field.PROMPT) {
    noteNumber(f, field, offset);
  } else {
    f.target = changetype<usize>(f) + TEXT_BYTES + <usize>field * <usize>TEXT_LIMIT;
    f.room = TEXT_LIMIT;
  }
  return CONTENT;
}

// --- Words ---

function startWord(f: Form): void {
  f.target = changetype<usize>(f) + WORD_BYTES;
  f.room = <u32>NAME_LIMIT;
  f.taken = 0;
}

// @ts-ignore: decorator
@inline
function wordByte(f: Form, byte: u8): void {
  if (f.taken < f.room) store<u8>(f.target + <usize>f.taken, byte);
  f.taken++;
}

function isWord(f: Form, text: Text): bool {
  return equals(f.target, <usize>f.taken, text.at, text.length);
}

function wordBegins(f: Form, text: Text): bool {
  return <usize>f.taken >= text.length && equals(f.target, text.length, text.at, text.length);
}

function isOneOf(texts: StaticArray<Text>, at: usize, length: usize): bool {
  for (let i = 0; i < texts.length; i++) {
    const text = unchecked(texts[i]);
    if (equals(at, length, text.at, text.length)) return true;
  }
  return false;
}

// @ts-ignore: decorator
@inline
function isControl(byte: u8): bool {
  return byte < 0x20 && byte != 0x09;
}
