// Header lists in the host's form: a count, the lengths of all names and values, then the texts, each with a zero.

import { begin, putByte, putBytes, putU32, Text } from './text';

const MAX_PAIRS: usize = 12;
/** Address and length of a name, address and length of its value. */
const PAIRS: usize = memory.data(192, 8);
let count: usize = 0;

export function startPairs(): void {
  count = 0;
}

/** Adds a pair; the texts must stay where they are until `endPairs`. */
export function addPair(name: Text, value: usize, length: usize): void {
  if (count == MAX_PAIRS) unreachable();
  const pair = PAIRS + (count << 4);
  store<u32>(pair, <u32>name.at);
  store<u32>(pair, <u32>name.length, 4);
  store<u32>(pair, <u32>value, 8);
  store<u32>(pair, <u32>length, 12);
  count++;
}

export function addPairText(name: Text, value: Text): void {
  addPair(name, value.at, value.length);
}

/** Composes the list; its length is `lengthFrom` what is returned. */
export function endPairs(): usize {
  const start = begin();
  putU32(<u32>count);
  for (let i: usize = 0; i < count; i++) {
    putU32(load<u32>(PAIRS + (i << 4), 4));
    putU32(load<u32>(PAIRS + (i << 4), 12));
  }
  for (let i: usize = 0; i < count; i++) {
    const pair = PAIRS + (i << 4);
    putBytes(<usize>load<u32>(pair), <usize>load<u32>(pair, 4));
    putByte(0);
    putBytes(<usize>load<u32>(pair, 8), <usize>load<u32>(pair, 12));
    putByte(0);
  }
  return start;
}
