// Texts as bytes: constants made once at start, and one buffer to compose others in.

import { copyBytes } from './memory';

/** An ASCII constant. */
export class Text {
  at: usize;
  length: usize;

  constructor(text: string) {
    this.length = <usize>text.length;
    this.at = heap.alloc(max(this.length, 1));
    for (let i = 0; i < text.length; i++) store<u8>(this.at + <usize>i, <u8>text.charCodeAt(i));
  }

  /** The bytes there, which must stay. */
  static of(at: usize, length: usize): Text {
    const text = new Text('');
    text.at = at;
    text.length = length;
    return text;
  }
}

// @ts-ignore: decorator
@inline
export function equals(a: usize, aLength: usize, b: usize, bLength: usize): bool {
  return aLength == bLength && same(a, b, aLength);
}

/** By words, of which the last may overlap the one before: `memory.compare` goes byte by byte unless both are aligned. */
export function same(a: usize, b: usize, length: usize): bool {
  if (length >= 4) return sameName(a, b, length);
  for (let i: usize = 0; i < length; i++) if (load<u8>(a + i) != load<u8>(b + i)) return false;
  return true;
}

/** The same for 4 bytes or more, in place of a call: for names of headers, which are compared with every request. */
// @ts-ignore: decorator
@inline
export function sameName(a: usize, b: usize, length: usize): bool {
  if (length <= 8) {
    const last = length - 4;
    return ((load<u32>(a) ^ load<u32>(b)) | (load<u32>(a + last) ^ load<u32>(b + last))) == 0;
  }
  if (length <= 16) {
    const last = length - 8;
    return ((load<u64>(a) ^ load<u64>(b)) | (load<u64>(a + last) ^ load<u64>(b + last))) == 0;
  }
  const last = length - 16;
  for (let i: usize = 0; i < last; i += 16) if (differ(a + i, b + i)) return false;
  return !differ(a + last, b + last);
}

// @ts-ignore: decorator
@inline
function differ(a: usize, b: usize): bool {
  return v128.any_true(v128.xor(v128.load(a), v128.load(b)));
}

/** Whether bytes begin like a lower-case text, whatever the case of their letters. */
export function startsWith(at: usize, length: usize, text: Text): bool {
  if (length < text.length) return false;
  if (same(at, text.at, text.length)) return true;
  for (let i: usize = 0; i < text.length; i++) {
    if (lower(load<u8>(at + i)) != load<u8>(text.at + i)) return false;
  }
  return true;
}

/** Whether bytes are a lower-case text, whatever the case of their letters. */
export function equalsIgnoringCase(at: usize, length: usize, text: Text): bool {
  return length == text.length && startsWith(at, length, text);
}

export function contains(at: usize, length: usize, part: Text): bool {
  for (let i: usize = 0; i + part.length <= length; i++) {
    if (same(at + i, part.at, part.length)) return true;
  }
  return false;
}

// @ts-ignore: decorator
@inline
export function lower(byte: u8): u8 {
  return byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte;
}

/** The byte that is escaped there as in a URL (`%2F`), -1 if none is. */
export function escapedAt(at: usize, end: usize): i32 {
  if (at + 3 > end || load<u8>(at) != 0x25) return -1;
  return (hexDigit(load<u8>(at, 1)) << 4) | hexDigit(load<u8>(at, 2));
}

/** Negative if it is none. */
function hexDigit(byte: u8): i32 {
  if (byte >= 0x30 && byte <= 0x39) return <i32>byte - 0x30;
  const letter = <i32>(byte | 0x20) - 0x61;
  return letter >= 0 && letter < 6 ? letter + 10 : -1;
}

/** The call to the control server is the longest: its token, of at most 4096 bytes, is composed, then put into the list of headers. */
const BUFFER_SIZE: usize = 12288;
const BUFFER: usize = memory.data(12288, 16);
let end: usize = BUFFER;

/** Starts a new text behind the ones composed so far in this callback; what does not fit the buffer is cut off. */
export function begin(): usize {
  return end;
}

/** Forgets everything composed before. */
export function clear(): void {
  end = BUFFER;
}

/** Forgets the texts composed from `start` on. */
export function discard(start: usize): void {
  end = start;
}

/** Length of the text composed last, which began at `start`. */
// @ts-ignore: decorator
@inline
export function lengthFrom(start: usize): usize {
  return end - start;
}

// @ts-ignore: decorator
@inline
function room(): usize {
  return BUFFER + BUFFER_SIZE - end;
}

export function put(text: Text): void {
  putBytes(text.at, text.length);
}

/** Appends as many of the bytes as fit. */
// @ts-ignore: decorator
@inline
export function putBytes(at: usize, length: usize): void {
  const taken = min(length, room());
  copyBytes(end, at, taken);
  end += taken;
}

export function putByte(byte: u8): void {
  if (room() > 0) store<u8>(end++, byte);
}

export function putU32(value: u32): void {
  if (room() < 4) return;
  store<u32>(end, value);
  end += 4;
}

export function putDecimal(value: u64): void {
  let digits: usize = 1;
  for (let rest = value; rest >= 10; rest /= 10) digits++;
  if (room() < digits) return;
  end += digits;
  let rest = value;
  for (let i: usize = 1; i <= digits; i++) {
    store<u8>(end - i, <u8>(48 + (rest % 10)));
    rest /= 10;
  }
}

/** 16 hex digits. */
export function putHex(value: u64): void {
  if (room() < 16) return;
  store<u64>(end, hexDigits(<u32>(value >> 32)));
  store<u64>(end, hexDigits(<u32>value), 8);
  end += 16;
}

/** The eight digits of a number, the first in the lowest byte. */
function hexDigits(value: u32): u64 {
  let bytes = <u64>bswap<u32>(value);
  bytes = (bytes | (bytes << 16)) & 0x0000_ffff_0000_ffff;
  bytes = (bytes | (bytes << 8)) & 0x00ff_00ff_00ff_00ff;
  const digits = ((bytes >> 4) | (bytes << 8)) & 0x0f0f_0f0f_0f0f_0f0f;
  const letters = ((digits + 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101;
  return digits + 0x3030_3030_3030_3030 + letters * 0x27;
}

/** Appends at most `limit` bytes as the inside of a JSON string; what is not printable ASCII becomes `?`. */
export function putJson(at: usize, length: usize, limit: usize): void {
  for (let i: usize = 0; i < min(length, limit); i++) {
    const byte = load<u8>(at + i);
    if (byte == 0x22 || byte == 0x5c) putByte(0x5c);
    putByte(byte >= 0x20 && byte < 0x7f ? byte : 0x3f);
  }
}
