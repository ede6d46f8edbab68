// How the VMs of one Envoy, and the Envoys of one frontend, come to know the same displaced keys. In shared data lies a
// log of the latest; every VM reads it on its tick and appends its own. The VM that calls the control server tells it
// of them, notes in the log how far it has come, and appends what others have told the server. So nothing is asked while a
// request waits: the next turn of a conversation comes later than the news, and one that does not costs a cache. VMs that
// place nothing pass on what others displace: after a change of configuration, one may hold the lease for as long as its
// listener drains.

import * as L from '../../wire/layout';
import { resetArena, resultAt, resultLength } from '../abi/memory';
import { Key } from '../abi/shared';
import { canRelay, emptyOutbox, note, OUTBOX, OUTBOX_ROWS, outboxRows, relay } from '../state/displaced';
import { formatKey } from './format-key';

/** Rows that the log holds, as many as a VM may append in a tick; what is older has been read. */
const ROWS: u32 = OUTBOX_ROWS;
/** Rows ever appended (u64), how many of them the control server has been told (u64), then the latest, oldest first. */
const LOG: usize = memory.data(8208, 8);
const LOG_TOLD: usize = 8;
const FIRST_ROW: usize = 16;
/** Rows of the log as it was read last. */
let held: u32 = 0;
/** A log that others write to at the same moment is tried this often, then again on the next tick. */
const TRIES: i32 = 3;

let key: Key | null = null;
/** Rows of the log that this VM has read. */
let heard: u64 = 0;
/** Rows of which the control server has been told, by whichever VM, and as many once the call in flight is answered. */
let told: u64 = 0;
let telling: u64 = 0;
/** As many as the log says. */
let loggedTold: u64 = 0;
/** A message of the control server that found no room comes again after the next tick. */
export let isCrowded: bool = false;
/** What the control server has told: the number that it gave with the latest. */
export let cursor: u64 = 0;

export function prepareDisplacedLog(): void {
  key = formatKey('displaced-log');
  heard = 0;
  told = 0;
  telling = 0;
  cursor = 0;
  isCrowded = false;
}

/** Hears what other VMs have displaced, and tells them what this one has. */
export function exchangeDisplaced(): void {
  for (let i = 0; i < TRIES; i++) {
    readLog();
    if (!outboxRows && told == loggedTold) return;
    const kept = min(held, ROWS - outboxRows);
    const old = (<usize>kept) << 3;
    const added = (<usize>outboxRows) << 3;
    memory.copy(LOG + FIRST_ROW, LOG + FIRST_ROW + ((<usize>(held - kept)) << 3), old);
    memory.copy(LOG + FIRST_ROW + old, OUTBOX, added);
    store<u64>(LOG, heard + outboxRows);
    store<u64>(LOG, told, LOG_TOLD);
    if (!key!.writeIfUnchanged(LOG, FIRST_ROW + old + added)) continue;
    heard += outboxRows;
    loggedTold = told;
    emptyOutbox();
    isCrowded = false;
    return;
  }
}

/** Copies the log, and notes what is new in it. */
function readLog(): void {
  resetArena();
  held = 0;
  let total: u64 = 0;
  loggedTold = 0;
  if (key!.read(FIRST_ROW)) {
    held = min(<u32>((resultLength() - FIRST_ROW) >> 3), ROWS);
    total = load<u64>(resultAt());
    loggedTold = load<u64>(resultAt(), LOG_TOLD);
    memory.copy(LOG + FIRST_ROW, resultAt() + FIRST_ROW, (<usize>held) << 3);
  }
  for (let i = newSince(heard, total); i < held; i++) note(rowAt(i));
  // Another VM may have told more, and of what this one has told last the log may not know yet.
  told = total >= heard ? max(told, loggedTold) : loggedTold;
  heard = total;
}

/** Place in the log of the first row that came after so many. */
function newSince(seen: u64, total: u64): u32 {
  // A log that is shorter than before is another one.
  const fresh = total >= seen ? total - seen : total;
  return fresh >= held ? 0 : held - <u32>fresh;
}

// @ts-ignore: decorator
@inline
function rowAt(place: u32): u64 {
  return load<u64>(LOG + FIRST_ROW + ((<usize>place) << 3));
}

/** Bytes that `writeDisplaced` needs at most. */
export const MOST_TOLD: usize = <usize>ROWS << 3;

/** Writes the rows of this Envoy that the control server has not been told; how many is returned. */
export function writeDisplaced(at: usize): u32 {
  readLog();
  let rows: u32 = 0;
  for (let i = newSince(told, heard); i < held; i++) {
    if (rowAt(i) & 1) continue;
    store<u64>(at + ((<usize>rows) << 3), rowAt(i));
    rows++;
  }
  telling = heard;
  resetArena();
  return rows;
}

/** The control server has taken the report. */
export function noteDisplacedTold(): void {
  told = max(told, telling);
}

const HEADER_SIZE: usize = L.DISPLACED_HEADER_SIZE;

/** Takes what other Envoys have displaced, if it can be passed on; false for what is no such message. */
export function takeDisplaced(at: usize, length: usize): bool {
  if (length < HEADER_SIZE || load<u32>(at, 4) != L.DISPLACED_FORMAT) return false;
  const rows = load<u32>(at, L.DISPLACED_ROWS);
  if (rows > <u32>L.MAX_DISPLACED_ROWS || length != HEADER_SIZE + ((<usize>rows) << 3)) return false;
  isCrowded = !canRelay(rows);
  if (isCrowded) return true;
  for (let i: usize = 0; i < <usize>rows; i++) relay(load<u64>(at + HEADER_SIZE + (i << 3)));
  cursor = load<u64>(at, L.DISPLACED_CURSOR);
  return true;
}
