// Which needs a header brings along. The names come with the snapshot, so they are not in the table of `attributes.ts`.

import * as L from '../../wire/layout';
import { equals } from '../abi/text';
import { needCount, needs, snapshot, textAt, textLength } from '../snapshot/current';

const SLOTS: u32 = 128;
/** Open addressing: number + 1 of the first need with a header of this name, 0 when empty. */
const TABLE: usize = memory.data(128);
/** For each need, number + 1 of the next one with the same header. */
const NEXT: usize = memory.data(64);

/** Prepares for the needs of the snapshot in force. */
export function watchNeedHeaders(): void {
  memory.fill(TABLE, 0, SLOTS);
  memory.fill(NEXT, 0, L.MAX_NEEDS);
  for (let i: u32 = 0; i < needCount; i++) {
    const need = needs + <usize>i * L.NEED_SIZE;
    if (load<u32>(need, L.NEED_KIND) != L.NEED_BY_HEADER) continue;
    const slot = find(textAt(need + L.NEED_NAME), textLength(need + L.NEED_NAME));
    store<u8>(NEXT + <usize>i, load<u8>(slot));
    store<u8>(slot, <u8>(i + 1));
  }
}

/** Whether a header may bring a need along whose name, of 5 bytes or more, belongs in this slot. */
// @ts-ignore: decorator
@inline
export function mayBringNeed(slot: u32): bool {
  return load<u8>(TABLE + <usize>slot) != 0;
}

/** Bits of the needs that such a header with this value brings along. */
export function needsOfHeader(name: usize, nameLength: usize, value: usize, length: usize): u64 {
  if (length == 0) return 0;
  let bits: u64 = 0;
  let number = load<u8>(find(name, nameLength));
  while (number) {
    const index = <usize>number - 1;
    const reference = needs + index * L.NEED_SIZE + L.NEED_VALUE;
    const wanted = textLength(reference);
    if (wanted == 0 || equals(textAt(reference), wanted, value, length)) bits |= (<u64>1) << (<u64>index);
    number = load<u8>(NEXT + index);
  }
  return bits;
}

/** First slot of a name: its last four bytes and its length tell the names apart well enough. */
// @ts-ignore: decorator
@inline
export function slotOf(name: usize, length: usize): u32 {
  return ((load<u32>(name + length - 4) + (<u32>length << 12)) * 0x9e3779b1) >> 25;
}

/** The slot of a name, or the empty one where it would be. */
function find(name: usize, length: usize): usize {
  let slot = slotOf(name, length);
  while (true) {
    const number = load<u8>(TABLE + <usize>slot);
    if (!number) return TABLE + <usize>slot;
    const reference = needs + (<usize>number - 1) * L.NEED_SIZE + L.NEED_NAME;
    if (equals(textAt(reference), textLength(reference), name, length)) return TABLE + <usize>slot;
    slot = (slot + 1) & (SLOTS - 1);
  }
}
