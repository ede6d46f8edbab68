// The conversations whose turns are counted, for the time between turns. Which these are is decided by their keys alone,
// so that all VMs and Envoys count the turns of the same ones: a conversation's requests may come through any of them.

import * as L from '../../wire/layout';
import { mix64 } from '../hash';

@unmanaged
export class Turns {
  /** Of the last turn; 0 in a place that was never used. */
  atNs: u64;
  // As in a row of a usage report.
  pool: u64;
  key: u64;
  turns: u64;
}

const PLACES: usize = memory.data(L.WATCHED_CONVERSATIONS * 32, 8);
const FORGOTTEN_NS: u64 = <u64>L.TURN_SECONDS * 1_000_000_000;

/** A turn of the conversation with this key's hash. */
export function noteTurn(pool: u64, hash: u64, nowNs: u64): void {
  const key = mix64(pool + hash);
  const place = turnsIn(<usize>(key & <u64>(L.WATCHED_CONVERSATIONS - 1)));
  const isKnown = place.atNs > 0 && place.key == key;
  if (!isKnown) {
    const isTaken = place.atNs > 0 && nowNs - place.atNs < FORGOTTEN_NS;
    if (isTaken && place.key < key) return;
    place.pool = pool;
    place.key = key;
    place.turns = 0;
  }
  place.atNs = nowNs;
  place.turns++;
}

// @ts-ignore: decorator
@inline
export function turnsIn(place: usize): Turns {
  return changetype<Turns>(PLACES + place * offsetof<Turns>());
}
