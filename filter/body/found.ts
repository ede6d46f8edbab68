// What has been found in a body, whichever kind it is: the part of a reader's state that the rest of the filter sees.

import { FIRST_LIMIT, FIRST_PROMPT, Field, LAST_LIMIT, LAST_PROMPT } from './fields';

/** Bytes kept of a text; what comes after them is only counted. */
export const TEXT_LIMIT: u32 = 256;

/** What the value of a field was found to be. */
export enum Kind {
  ABSENT,
  TEXT,
  /** A number that is not negative, of limits also in a text; its whole part is kept, and 2^53 - 1 for all that is larger. */
  NUMBER,
  TRUE,
  FALSE,
  OTHER,
}

@unmanaged
export class Found {
  /** Bytes read so far. */
  offset: u32;
  isForm: bool;
  hasTools: bool;
  /** What the messages of `messages` and `input` hold; what the files of a form are. */
  messages: u8;
  input: u8;
  /** Bytes of media in `messages` and `input`. */
  messagesMedia: u32;
  inputMedia: u32;
}

const FIELDS: usize = 32;
const TEXTS: usize = 10;

/** Room for all that a reader keeps besides: its state begins with `Found` and ends before the fields. */
export const STATE_ROOM: usize = 448;
// Kinds, numbers, lengths and bytes of the fields.
const KINDS: usize = STATE_ROOM;
const NUMBERS: usize = KINDS + FIELDS;
const LENGTHS: usize = NUMBERS + (FIELDS << 3);
/** What has to be zero at the beginning ends here. */
const CLEARED: usize = LENGTHS + (FIELDS << 2);
/** Where in a block the texts lie, TEXT_LIMIT bytes for each field up to LAST_TEXT. */
export const TEXT_BYTES: usize = CLEARED;

export const FOUND_SIZE: usize = TEXT_BYTES + TEXTS * <usize>TEXT_LIMIT;

/** Prepares a block of FOUND_SIZE bytes for a new body. */
export function clearFound(at: usize): void {
  memory.fill(at, 0, CLEARED);
}

export function kindOf(found: Found, field: Field): Kind {
  return <Kind>load<u8>(changetype<usize>(found) + KINDS + <usize>field);
}

/** Bytes of the text of a field, of which at most TEXT_LIMIT lie at `textOf`; or of the value of a prompt field. */
export function lengthOf(found: Found, field: Field): u32 {
  return load<u32>(changetype<usize>(found) + LENGTHS + ((<usize>field) << 2));
}

export function textOf(found: Found, field: Field): usize {
  return changetype<usize>(found) + TEXT_BYTES + <usize>field * <usize>TEXT_LIMIT;
}

export function numberOf(found: Found, field: Field): u64 {
  return load<u64>(changetype<usize>(found) + NUMBERS + ((<usize>field) << 3));
}

/** Where in the body the value of a prompt field begins. */
export function startOf(found: Found, field: Field): u32 {
  return <u32>numberOf(found, field);
}

// @ts-ignore: decorator
@inline
export function noteKind(found: Found, field: Field, kind: Kind): void {
  store<u8>(changetype<usize>(found) + KINDS + <usize>field, <u8>kind);
}

// @ts-ignore: decorator
@inline
export function noteLength(found: Found, field: Field, length: u32): void {
  store<u32>(changetype<usize>(found) + LENGTHS + ((<usize>field) << 2), length);
}

// @ts-ignore: decorator
@inline
export function noteNumber(found: Found, field: Field, number: u64): void {
  store<u64>(changetype<usize>(found) + NUMBERS + ((<usize>field) << 3), number);
}

/** Flags of `fields.ts` for what the messages hold, in `messages` and `input` together, or what the files are. */
export function messagesHold(found: Found): u8 {
  return found.messages | found.input;
}

/** Bytes of everything that makes up the prompt as it stands in the body, media left out. */
export function promptBytes(found: Found): u32 {
  let bytes: u32 = 0;
  for (let field = FIRST_PROMPT; field <= LAST_PROMPT; field++) {
    if (kindOf(found, field) != Kind.ABSENT) bytes += lengthOf(found, field);
  }
  return bytes - min(bytes, found.messagesMedia + found.inputMedia);
}

/** What the body says that the answer may have of tokens at most, the largest of its fields for that; 0 if it says nothing. */
export function mostOutputTokens(found: Found): u64 {
  let most: u64 = 0;
  for (let field = FIRST_LIMIT; field <= LAST_LIMIT; field++) {
    if (kindOf(found, field) == Kind.NUMBER) most = max(most, numberOf(found, field));
  }
  return most;
}

/** Whether `tools` is a list with anything in it. */
export function holdsTools(found: Found): bool {
  return found.hasTools;
}
