// Contents of JSON strings, many bytes at a time: where they end, and what of them is plain.

/** Bytes by which escapes that were skipped are longer than the characters that they stand for, as UTF-8 has them. */
export let spared: u32 = 0;

export function startSparing(): void {
  spared = 0;
}

/** The same of one escape, by its code unit; of ASCII, which nobody escapes so, as of what comes after it. */
export function sparedBy(unit: u32): u32 {
  return unit < 0x800 || unit >> 11 == 0x1b ? 4 : 3;
}

/**
 * Skips contents of a string, whole escapes included, up to the closing quote, something that is not allowed, an escape
 * close to the end of the piece, or the end.
 */
export function skipContents(start: usize, end: usize): usize {
  let at = skipBlocks(start, end);
  while (at + 16 <= end) {
    const mask = specials(v128.load(at));
    if (!mask) {
      at += 16;
      continue;
    }
    at += <usize>ctz(mask);
    if (load<u8>(at) != 0x5c || at + 6 > end) return at;
    const escaped = load<u8>(at, 1);
    if (isSimpleEscape(escaped)) at += 2;
    else if (escaped == 0x75 && isHex4(at + 2)) {
      spareHex4(at + 2);
      at += 6;
    } else return at;
  }
  while (at < end) {
    const byte = load<u8>(at);
    if (byte == 0x22 || byte == 0x5c || byte < 0x20) break;
    at++;
  }
  return at;
}

const BACKSLASH: i8 = 0x5c;
const QUOTE: i8 = 0x22;
/** As an escape spells it. */
const LINE_END: i8 = 0x6e;
/** With these bits flipped, the quote and the control characters are the least of all bytes, as signed numbers. */
const FLIPPED: i8 = <i8>0x82;
const ABOVE_ENDS: i8 = <i8>0xa1;

/**
 * What bytes are compared with, each in all 16 lanes. V8 makes constants anew in every turn of a loop, which is a third of what
 * there is to do; what has been loaded it keeps.
 */
const LANES: usize = memory.data(80, 16);
v128.store(LANES, i8x16.splat(BACKSLASH));
v128.store(LANES, i8x16.splat(QUOTE), 16);
v128.store(LANES, i8x16.splat(LINE_END), 32);
v128.store(LANES, i8x16.splat(FLIPPED), 48);
v128.store(LANES, i8x16.splat(ABOVE_ENDS), 64);

/** Every other bit, from the second on. */
const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;

/**
 * The same 64 bytes at a time, without a branch for each escape: texts are full of line ends, at places that no
 * processor predicts. Stops early, but never within an escape. Which bytes are escaped is found as in simdjson (Langdale
 * and Lemire 2019).
 */
function skipBlocks(start: usize, end: usize): usize {
  const slash = v128.load(LANES);
  const quote = v128.load(LANES, 16);
  const lineEnd = v128.load(LANES, 32);
  const flipped = v128.load(LANES, 48);
  const above = v128.load(LANES, 64);
  let at = start;
  /** 1 when the first byte of the block is escaped. */
  let open: u64 = 0;
  for (; at + 64 <= end; at += 64) {
    const a = v128.load(at);
    const b = v128.load(at, 16);
    const c = v128.load(at, 32);
    const d = v128.load(at, 48);
    const slashA = i8x16.eq(a, slash);
    const slashB = i8x16.eq(b, slash);
    const slashC = i8x16.eq(c, slash);
    const slashD = i8x16.eq(d, slash);
    const endA = isEnd(a, flipped, above);
    const endB = isEnd(b, flipped, above);
    const endC = isEnd(c, flipped, above);
    const endD = isEnd(d, flipped, above);
    const slashes = v128.or(v128.or(slashA, slashB), v128.or(slashC, slashD));
    const allEnds = v128.or(v128.or(endA, endB), v128.or(endC, endD));
    if (!v128.any_true(v128.or(slashes, allEnds)) && !open) continue;
    const backslashes = bits(slashA, slashB, slashC, slashD);
    const ends = bits(endA, endB, endC, endD);
    const starts = backslashes & ~open;
    const odd = (((starts << 1) | ODD) - starts) ^ ODD;
    const escaped = odd ^ (backslashes | open);
    const stops = ends & ~escaped;
    // Nothing counts from the closing quote on.
    const inside = escaped & ((stops & -stops) - 1);
    const usualA = isUsual(a, lineEnd, quote);
    const usualB = isUsual(b, lineEnd, quote);
    const usualC = isUsual(c, lineEnd, quote);
    const usualD = isUsual(d, lineEnd, quote);
    let others = inside & ~bits(usualA, usualB, usualC, usualD);
    for (; others; others &= others - 1) {
      const place = at + <usize>ctz(others);
      const byte = load<u8>(place);
      if (isSimpleEscape(byte)) continue;
      if (byte != 0x75 || place + 5 > end || !isHex4(place + 1)) return place - 1;
      spareHex4(place + 1);
    }
    if (stops) return at + <usize>ctz(stops);
    open = (odd & backslashes) >> 63;
  }
  return at - <usize>open;
}

// @ts-ignore: decorator
@inline
function bits(a: v128, b: v128, c: v128, d: v128): u64 {
  return (
    <u64>(<u32>(i8x16.bitmask(a) | (i8x16.bitmask(b) << 16))) |
    ((<u64>(<u32>(i8x16.bitmask(c) | (i8x16.bitmask(d) << 16)))) << 32)
  );
}

/** A quote or a control character. */
// @ts-ignore: decorator
@inline
function isEnd(bytes: v128, flipped: v128, above: v128): v128 {
  return i8x16.lt_s(v128.xor(bytes, flipped), above);
}

/** What most escapes are: a line end, a quote. */
// @ts-ignore: decorator
@inline
function isUsual(bytes: v128, lineEnd: v128, quote: v128): v128 {
  return v128.or(i8x16.eq(bytes, lineEnd), i8x16.eq(bytes, quote));
}

/** A quote, a backslash or a control character. */
// @ts-ignore: decorator
@inline
function isSpecial(bytes: v128): v128 {
  const ends = isEnd(bytes, i8x16.splat(FLIPPED), i8x16.splat(ABOVE_ENDS));
  return v128.or(i8x16.eq(bytes, i8x16.splat(BACKSLASH)), ends);
}

/** A bit for each of 16 bytes that is a quote, a backslash or a control character. */
// @ts-ignore: decorator
@inline
export function specials(bytes: v128): i32 {
  return i8x16.bitmask(isSpecial(bytes));
}

/** One of `"\/bfnrt`: bits of the characters from 0x22 and from 0x5c on. */
// @ts-ignore: decorator
@inline
function isSimpleEscape(byte: u8): bool {
  const low = <u32>byte - 0x22;
  if (low < 32) return ((0x2001 >> low) & 1) != 0;
  const high = <u32>byte - 0x5c;
  return high < 32 && ((0x1440441 >> high) & 1) != 0;
}

/** Four hex digits. */
// @ts-ignore: decorator
@inline
function isHex4(at: usize): bool {
  return isHex(load<u8>(at)) && isHex(load<u8>(at, 1)) && isHex(load<u8>(at, 2)) && isHex(load<u8>(at, 3));
}

/** By the first two digits, which tell the length: `sparedBy` what they make with any others. */
// @ts-ignore: decorator
@inline
function spareHex4(at: usize): void {
  const first = load<u8>(at) | 0x20;
  const second = load<u8>(at, 1);
  spared += (first == 0x30 && second < 0x38) || (first == 0x64 && second >= 0x38) ? 4 : 3;
}

// @ts-ignore: decorator
@inline
function isHex(byte: u8): bool {
  return <u32>byte - 0x30 <= 9 || (<u32>byte | 0x20) - 0x61 <= 5;
}
