// The conversations whose turns are counted, for the time between turns: those whose keys end in so many zero bits that
// there is room for all of them. Which these are is decided by their keys alone, so that VMs and Envoys count the turns
// of the same ones: a conversation's requests may come through any of them.

import * as L from '../../wire/layout';
import { mix64 } from '../hash';

@unmanaged
export class Turns {
  /** Of the last turn. */
  atNs: u64;
  // As in a row of a usage report; no turns in a free place.
  pool: u64;
  key: u64;
  turns: u64;
}

const PLACES: usize = memory.data(L.WATCHED_CONVERSATIONS * 32, 8);
const ENDED_NS: u64 = <u64>L.TURN_SECONDS * 1_000_000_000;
/** With fewer conversations than this there is room for twice as many. */
const FEW: u32 = L.WATCHED_CONVERSATIONS / 4;

/** Zero bits that a key ends in to be watched. */
let level: u64 = 0;
let levelSinceNs: u64 = 0;

/** A turn of the conversation with this key's hash. */
export function noteTurn(pool: u64, hash: u64, nowNs: u64): void {
  const key = mix64(pool + hash);
  // Looked for from a place of its own on, so that one that is there is found soon.
  const home = <usize>(key >> 32);
  while (ctz(key) >= level) {
    for (let i: usize = 0; i < <usize>L.WATCHED_CONVERSATIONS; i++) {
      const place = turnsIn((home + i) % <usize>L.WATCHED_CONVERSATIONS);
      if (place.key != key || !place.turns) continue;
      place.turns++;
      place.atNs = nowNs;
      return;
    }
    if (begin(pool, key, home, nowNs)) return;
    raise(nowNs);
  }
}

/** Gives a conversation the first place from its own on that is free; false if there is none. */
function begin(pool: u64, key: u64, home: usize, nowNs: u64): bool {
  for (let i: usize = 0; i < <usize>L.WATCHED_CONVERSATIONS; i++) {
    const place = turnsIn((home + i) % <usize>L.WATCHED_CONVERSATIONS);
    if (place.turns && nowNs - place.atNs < ENDED_NS) continue;
    place.pool = pool;
    place.key = key;
    place.turns = 1;
    place.atNs = nowNs;
    return true;
  }
  return false;
}

/** Lets go of about half of the conversations. */
function raise(nowNs: u64): void {
  level++;
  levelSinceNs = nowNs;
  for (let i: usize = 0; i < <usize>L.WATCHED_CONVERSATIONS; i++) {
    const place = turnsIn(i);
    if (ctz(place.key) < level) place.turns = 0;
  }
}

/** The level, lowered when the conversations have become few. */
export function freshTurnLevel(nowNs: u64): u32 {
  if (level > 0 && nowNs - levelSinceNs >= ENDED_NS) {
    let running: u32 = 0;
    for (let i: usize = 0; i < <usize>L.WATCHED_CONVERSATIONS; i++) {
      if (turnsIn(i).turns && nowNs - turnsIn(i).atNs < ENDED_NS) running++;
    }
    if (running < FEW) level--;
    levelSinceNs = nowNs;
  }
  return <u32>level;
}

// @ts-ignore: decorator
@inline
export function turnsIn(place: usize): Turns {
  return changetype<Turns>(PLACES + place * offsetof<Turns>());
}
