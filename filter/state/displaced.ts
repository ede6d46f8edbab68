// Keys whose conversations began at their second point, so that their later requests follow. A table of a fixed size:
// where a bucket is full, the key that was not heard of for the longest time gives way. Forgetting one costs a cache.

import * as L from '../../wire/layout';

const BUCKETS: usize = 1536;
const BUCKET_SIZE: usize = 32;
// An entry: a mark of the key (u32, 0 when empty) and when it was last heard of (u32, seconds).
const ENTRY_SIZE: usize = 8;
const TABLE: usize = memory.data(49152, 8);

/** A key that nobody has heard of for this long goes home. */
const FORGOTTEN_SECONDS: u32 = 900;
/** One that is in use is told again after this long, so that it grows old everywhere alike. */
const REPEATED_SECONDS: u32 = 300;

/** So many that this VM displaces between two ticks are told to others; more are forgotten elsewhere. */
const OWN_ROWS: u32 = 512;
/** There is always room for as many of the control server's besides, a message of it. */
const RELAYED_ROWS: u32 = L.MAX_DISPLACED_ROWS;
export const OUTBOX_ROWS: u32 = OWN_ROWS + RELAYED_ROWS;
/** What is to be told at the next tick: keys without their lowest bit; it says whether the control server told the key. */
export const OUTBOX: usize = memory.data(8192, 8);
export let outboxRows: u32 = 0;
let relayedRows: u32 = 0;

/** Seconds as of the last tick. */
let now: u32 = 0;
let isEmpty: bool = true;

export function setDisplacedClock(ms: u64): void {
  now = <u32>(ms / 1000);
}

/** Remembers a key from now on. */
export function displace(hash: u64): void {
  note(hash);
  if (outboxRows - relayedRows < OWN_ROWS) tell(hash & ~1);
}

/** Remembers a key that another VM has displaced, or that the control server has told of. */
export function note(hash: u64): void {
  isEmpty = false;
  const mark = markOf(hash);
  let entry = bucketOf(hash);
  const end = entry + BUCKET_SIZE;
  for (let at = entry; at < end; at += ENTRY_SIZE) {
    if (load<u32>(at) == mark) {
      entry = at;
      break;
    }
    if (age(at) > age(entry)) entry = at;
  }
  store<u32>(entry, mark);
  store<u32>(entry, now, 4);
}

/** Whether so many keys that the control server tells can be passed on at the next tick. */
export function canRelay(rows: u32): bool {
  return rows <= RELAYED_ROWS - relayedRows;
}

/** Remembers a key that the control server has told of, and tells the other VMs; `canRelay` has been asked. */
export function relay(hash: u64): void {
  note(hash);
  tell(hash | 1);
  relayedRows++;
}

/** Whether a key is displaced. */
export function isDisplaced(hash: u64): bool {
  if (isEmpty) return false;
  const mark = markOf(hash);
  const first = bucketOf(hash);
  for (let at = first; at < first + BUCKET_SIZE; at += ENTRY_SIZE) {
    if (load<u32>(at) != mark) continue;
    const seconds = age(at);
    if (seconds >= FORGOTTEN_SECONDS) return false;
    if (seconds >= REPEATED_SECONDS) displace(hash);
    return true;
  }
  return false;
}

export function emptyOutbox(): void {
  outboxRows = 0;
  relayedRows = 0;
}

/** Forgets all keys, as after a change of what they are hashed with. */
export function forgetDisplaced(): void {
  if (!isEmpty) memory.fill(TABLE, 0, BUCKETS * BUCKET_SIZE);
  isEmpty = true;
  emptyOutbox();
}

function tell(row: u64): void {
  store<u64>(OUTBOX + ((<usize>outboxRows) << 3), row);
  outboxRows++;
}

// @ts-ignore: decorator
@inline
function bucketOf(hash: u64): usize {
  return TABLE + <usize>(((hash & 0xfffffffe) * <u64>BUCKETS) >> 32) * BUCKET_SIZE;
}

// @ts-ignore: decorator
@inline
function markOf(hash: u64): u32 {
  return max<u32>(<u32>(hash >> 32), 1);
}

/** Seconds since an entry was heard of; an empty one is older than all. */
// @ts-ignore: decorator
@inline
function age(entry: usize): u32 {
  return load<u32>(entry) ? now - load<u32>(entry, 4) : u32.MAX_VALUE;
}
