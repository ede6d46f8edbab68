// What the other VMs of this Envoy have in flight at each engine, for the emergency brake and for placement. Every VM writes its own
// numbers on each tick, and adds up those of the others, so they are one tick old; a VM that is gone is left out.

import { Region, resetArena, resultAt, resultLength } from '../abi/memory';
import { Key } from '../abi/shared';
import { EngineState, engines } from '../state/rows';
import { Row } from '../state/table';
import { ageOf } from './age';
import { formatKey } from './format-key';

// A slot: a time stamp (u64), then an engine's key (u64) and its requests (u64) each.
const STAMP: usize = 8;
const ENTRY_SIZE: usize = 16;
/** Numbers of a VM that has not written for this long do not count. */
const FRESH_MS: u64 = 3_000;

const own = new Region();
let keys: Array<Key> = [];

export function prepareInFlight(slots: i32): void {
  keys = [];
  for (let i = 0; i < slots; i++) keys.push(formatKey('in-flight', i));
}

/** Writes what this VM has in flight into its slot. */
export function publishInFlight(slot: i32, now: u64): void {
  const start = own.reserve(STAMP + <usize>engines.count * ENTRY_SIZE);
  let at = start + STAMP;
  store<u64>(start, now);
  for (let row = engines.first; row; row = changetype<Row>(row).next) {
    const engine = changetype<EngineState>(row);
    if (!engine.inFlight) continue;
    store<u64>(at, engine.key);
    store<u64>(at, engine.inFlight, 8);
    at += ENTRY_SIZE;
  }
  unchecked(keys[slot]).write(start, at - start);
}

/** Adds up what the VMs in the other slots have in flight. */
export function addUpInFlight(slot: i32, now: u64): void {
  for (let row = engines.first; row; row = changetype<Row>(row).next) {
    changetype<EngineState>(row).othersInFlight = 0;
  }
  for (let i = 0; i < keys.length; i++) {
    resetArena();
    if (!unchecked(keys[i]).read(STAMP)) break;
    if (i == slot || ageOf(load<u64>(resultAt()), now) > FRESH_MS) continue;
    const end = resultAt() + resultLength();
    for (let at = resultAt() + STAMP; at < end; at += ENTRY_SIZE) {
      const engine = engineOf(load<u64>(at));
      if (engine) changetype<EngineState>(engine).othersInFlight += <u32>load<u64>(at, 8);
    }
  }
  resetArena();
}

function engineOf(key: u64): usize {
  for (let row = engines.first; row; row = changetype<Row>(row).next) {
    if (changetype<Row>(row).key == key) return row;
  }
  return 0;
}
