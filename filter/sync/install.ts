// Brings a snapshot in force: checked as a whole, then swapped in. One that fails the check changes nothing.

import { decodeBase64 } from '../abi/base64';
import { nowMs } from '../abi/clock';
import { WARN } from '../abi/host';
import { logFrom } from '../abi/log';
import { landing, Region, swapLanding } from '../abi/memory';
import { begin, put, Text } from '../abi/text';
import { frontendAt, frontendLength, readBodies, snapshotAt, snapshotLength } from '../config';
import { watchNeedHeaders } from '../request/need-headers';
import { sortNeeds } from '../request/needs';
import { adopt } from '../snapshot/current';
import { Refusal, validate } from '../snapshot/validate';
import { count, SNAPSHOT_INSTALLS, SNAPSHOT_REFUSALS } from '../state/counters';

const REFUSED = new Text('snapshot refused, the one in force stays: ');
/** By refusal. */
const complaints: StaticArray<Text> = [
  new Text(''),
  new Text('it is shorter than its header'),
  new Text('it does not begin with the magic number'),
  new Text('it has another format than this filter'),
  new Text('it is not as long as its header says'),
  new Text('it does not match its checksum'),
  new Text('a section is out of place'),
  new Text('a text is out of place'),
  new Text('its version is out of range'),
  new Text('it is for another frontend'),
  new Text('a model is not valid'),
  new Text('a pool is not valid'),
  new Text('a segment is not valid'),
  new Text('an engine is not valid'),
  new Text('a replica is not valid'),
  new Text('a need is not valid, or asks for bodies while readBodies is off'),
  new Text('a class is not valid'),
  new Text('the list of the nearest engines is not valid'),
  new Text('its share of steered keys is out of range'),
];

/** Where the snapshot in force lies. */
let held: Region = new Region();

/** Installs the bytes, which lie in the arena or in the landing region; false if they are refused. */
export function install(at: usize, length: usize): bool {
  const refusal = validate(at, length, frontendAt, frontendLength, readBodies);
  if (refusal != Refusal.NONE) {
    count(SNAPSHOT_REFUSALS);
    const start = begin();
    put(REFUSED);
    put(unchecked(complaints[refusal]));
    logFrom(WARN, start);
    return false;
  }
  if (at != landing.base) memory.copy(landing.reserve(length), at, length);
  held = swapLanding(held);
  adopt(held.base, nowMs());
  watchNeedHeaders();
  sortNeeds();
  count(SNAPSHOT_INSTALLS);
  return true;
}

/** Installs the snapshot that came with the configuration, if one did; false if it is refused. */
export function installInline(): bool {
  if (snapshotLength == 0) return true;
  const at = landing.reserve((snapshotLength / 4) * 3);
  return install(at, decodeBase64(snapshotAt, snapshotLength, at));
}

export function heldAt(): usize {
  return held.base;
}
