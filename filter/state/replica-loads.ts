// What the responses of a replica said of its load. Most engines say nothing of it, so only the replicas of those that do
// have a block.

import * as L from '../../wire/layout';
import { allocate } from '../abi/blocks';

/** Counters since the VM started, as a row of a usage report. */
@unmanaged
export class ReplicaLoads {
  /** Key of its engine and hash of its address. */
  engine: u64;
  replica: u64;
  /** Responses with a load report that could be read, and with one that could not. */
  reports: u64;
  garbled: u64;

  // @ts-ignore: decorator
  @inline
  get sumsAt(): usize {
    return changetype<usize>(this) + <usize>L.LOAD_USAGE_SUMS;
  }

  // @ts-ignore: decorator
  @inline
  get next(): usize {
    return <usize>load<u32>(changetype<usize>(this), <usize>L.LOAD_USAGE_SIZE);
  }

  // @ts-ignore: decorator
  @inline
  set next(at: usize) {
    store<u32>(changetype<usize>(this), <u32>at, <usize>L.LOAD_USAGE_SIZE);
  }
}

const SIZE: usize = <usize>L.LOAD_USAGE_SIZE + 8;

/** Chain of the blocks in use, how many they are, and those that are free. */
export let replicaLoads: usize = 0;
export let replicaLoadsCount: u32 = 0;
let spare: usize = 0;

export function newLoads(engine: u64, replica: u64): usize {
  let at = spare;
  if (at) spare = changetype<ReplicaLoads>(at).next;
  else at = allocate(SIZE);
  memory.fill(at, 0, SIZE);
  const loads = changetype<ReplicaLoads>(at);
  loads.engine = engine;
  loads.replica = replica;
  loads.next = replicaLoads;
  replicaLoads = at;
  replicaLoadsCount++;
  return at;
}

export function freeLoads(at: usize): void {
  if (!at) return;
  let link: usize = 0;
  let other = replicaLoads;
  while (other != at) {
    link = other;
    other = changetype<ReplicaLoads>(other).next;
  }
  const next = changetype<ReplicaLoads>(at).next;
  if (link) changetype<ReplicaLoads>(link).next = next;
  else replicaLoads = next;
  changetype<ReplicaLoads>(at).next = spare;
  spare = at;
  replicaLoadsCount--;
}
