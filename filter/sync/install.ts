// Brings a snapshot in force: checked as a whole, then swapped in. One that fails the check changes nothing.

import { nowMs } from '../abi/clock';
import { WARN } from '../abi/host';
import { logFrom } from '../abi/log';
import { landing, Region, swapLanding } from '../abi/memory';
import { begin, put, putDecimal, Text } from '../abi/text';
import { frontendAt, frontendLength, readBodies } from '../config';
import { watchNeedHeaders } from '../request/need-headers';
import { adopt } from '../snapshot/current';
import { Refusal, validate } from '../snapshot/validate';
import { count, SNAPSHOT_INSTALLS, SNAPSHOT_REFUSALS } from '../state/counters';

const REFUSED = new Text('snapshot refused, the one in force stays; failed check ');

/** Where the snapshot in force lies. */
let held: Region = new Region();

/** Installs the bytes, which lie in the arena or in the landing region; false if they are refused. */
export function install(at: usize, length: usize): bool {
  const refusal = validate(at, length, frontendAt, frontendLength, readBodies);
  if (refusal != Refusal.NONE) {
    count(SNAPSHOT_REFUSALS);
    const start = begin();
    put(REFUSED);
    putDecimal(refusal);
    logFrom(WARN, start);
    return false;
  }
  if (at != landing.base) memory.copy(landing.reserve(length), at, length);
  held = swapLanding(held);
  adopt(held.base, nowMs());
  watchNeedHeaders();
  count(SNAPSHOT_INSTALLS);
  return true;
}

export function heldAt(): usize {
  return held.base;
}
