// The content type of a form (RFC 7578) and the boundary in it. A boundary that readers might take for different ones is none.

import { startsWith, Text } from '../abi/text';

/** Longest boundary, by RFC 2046. */
export const BOUNDARY_LIMIT: usize = 70;

const FORM_TYPE = new Text('multipart/form-data');
const BOUNDARY = new Text('boundary');

/** The boundary that was found last. */
export const FOUND_BOUNDARY: usize = memory.data(80);
export let boundaryLength: usize = 0;

/** Whether a content type is that of a form, whatever its parameters. */
export function isFormType(at: usize, length: usize): bool {
  if (!startsWith(at, length, FORM_TYPE)) return false;
  const end = skipSpace(at + FORM_TYPE.length, at + length);
  return end == at + length || load<u8>(end) == 0x3b;
}

/** Looks for the boundary in the content type of a form, for `startForm`; false if there is none that can be used. */
export function findBoundary(at: usize, length: usize): bool {
  const end = at + length;
  let p = at + FORM_TYPE.length;
  boundaryLength = 0;
  while (true) {
    while (p < end && (load<u8>(p) == 0x3b || isSpace(load<u8>(p)))) p++;
    if (p == end) return boundaryLength > 0;
    const name = p;
    while (p < end && load<u8>(p) != 0x3d && load<u8>(p) != 0x3b) p++;
    const nameLength = p - name;
    if (p == end || load<u8>(p++) == 0x3b) return false;
    const isQuoted = p < end && load<u8>(p) == 0x22;
    const value = isQuoted ? p + 1 : p;
    const valueEnd = isQuoted ? endOfQuoted(value, end) : endOfToken(value, end);
    if (!valueEnd) return false;
    p = skipSpace(isQuoted ? valueEnd + 1 : valueEnd, end);
    if (p < end && load<u8>(p) != 0x3b) return false;
    if (!startsWith(name, nameLength, BOUNDARY)) continue;
    // An extended or a second boundary means different things to different readers.
    if (nameLength != BOUNDARY.length || boundaryLength) return false;
    if (!takeBoundary(value, valueEnd, isQuoted)) return false;
  }
}

/**
 * The quote that ends a quoted text; 0 if there is none, or if there is anything before it that readers disagree about: an
 * escape of anything but a quote or a backslash, or of a backslash right before the end.
 */
function endOfQuoted(at: usize, end: usize): usize {
  let p = at;
  for (; p < end && load<u8>(p) != 0x22; p++) {
    if (load<u8>(p) != 0x5c) continue;
    if (end - ++p < 2) return 0;
    if (load<u8>(p) != 0x22 && (load<u8>(p) != 0x5c || load<u8>(p, 1) == 0x22)) return 0;
  }
  return p < end ? p : 0;
}

/** The end of a text without quotes, space behind it left out. */
function endOfToken(at: usize, end: usize): usize {
  let p = at;
  while (p < end && load<u8>(p) != 0x3b) p++;
  while (p > at && isSpace(load<u8>(p - 1))) p--;
  return p;
}

/** Keeps a boundary without its escapes; false if it can be none. */
function takeBoundary(at: usize, end: usize, isQuoted: bool): bool {
  for (let p = at; p < end; p++) {
    let byte = load<u8>(p);
    if (byte == 0x5c && isQuoted) byte = load<u8>(++p);
    else if (byte == 0x5c || byte == 0x22) return false;
    if (byte < 0x20 || byte > 0x7e || boundaryLength == BOUNDARY_LIMIT) return false;
    store<u8>(FOUND_BOUNDARY + boundaryLength++, byte);
  }
  return boundaryLength > 0 && load<u8>(FOUND_BOUNDARY + boundaryLength - 1) != 0x20;
}

/** Takes this for the one that was found last. */
export function keepBoundary(at: usize, length: usize): void {
  boundaryLength = length;
  memory.copy(FOUND_BOUNDARY, at, length);
}

// @ts-ignore: decorator
@inline
export function isSpace(byte: u8): bool {
  return byte == 0x20 || byte == 0x09;
}

function skipSpace(at: usize, end: usize): usize {
  let p = at;
  while (p < end && isSpace(load<u8>(p))) p++;
  return p;
}
