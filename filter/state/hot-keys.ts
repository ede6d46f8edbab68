// Keys with so many requests that moving one moves the load with it. Of those, single requests overflow. Counted only
// where something overflows: the most frequent keys of late by the space-saving algorithm (Metwally, Agrawal, El Abbadi
// 2005), which never counts a key too low.

/** Keys that are counted at a time. */
const ENTRIES: usize = 16;
const ENTRY_SIZE: usize = 16;
/** A hot key has at least this part of the requests counted, and so many of them. */
const HOT_PART: u32 = 8;
const HOT_COUNT: u32 = 16;
/** Counts are halved after this many requests, so that they tell about the latest. */
const WINDOW: u32 = 512;

const TABLE: usize = memory.data(256, 8);
let total: u32 = 0;

/** Counts a request of a key; true when the key is hot. */
export function noteKey(hash: u64): bool {
  if (++total >= WINDOW) halve();
  let rarest = TABLE;
  for (let at = TABLE; at < TABLE + ENTRIES * ENTRY_SIZE; at += ENTRY_SIZE) {
    if (load<u64>(at) == hash) return count(at);
    if (load<u32>(at, 8) < load<u32>(rarest, 8)) rarest = at;
  }
  // The newcomer takes over the count of the rarest, which it may have had unseen.
  store<u64>(rarest, hash);
  store<u32>(rarest, load<u32>(rarest, 8), 12);
  return count(rarest);
}

function count(entry: usize): bool {
  const seen = load<u32>(entry, 8) + 1;
  store<u32>(entry, seen, 8);
  // What it took over may not have been its own.
  const sure = seen - load<u32>(entry, 12);
  return sure >= HOT_COUNT && sure * HOT_PART >= total;
}

function halve(): void {
  total >>= 1;
  for (let at = TABLE; at < TABLE + ENTRIES * ENTRY_SIZE; at += ENTRY_SIZE) {
    store<u32>(at, load<u32>(at, 8) >> 1, 8);
    store<u32>(at, load<u32>(at, 12) >> 1, 12);
  }
}
