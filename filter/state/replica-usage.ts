// Attempts at a replica, and what its responses said of its load. Most replicas of a large snapshot are never sent
// anything by one VM, so only those that are have a block.

import * as L from '../../wire/layout';

/** Counters since the VM started; sums and counts of loads follow, as in a usage report. */
@unmanaged
export class ReplicaUsage {
  next: usize;
  engine: u64;
  /** Hash of the address. */
  replica: u64;
  /** Attempts; those that have not ended are in flight. */
  sent: u64;
  ended: u64;
  /** Responses with a load report that could be read, and with one that could not. */
  reports: u64;
  garbled: u64;

  // @ts-ignore: decorator
  @inline
  get loadsAt(): usize {
    return changetype<usize>(this) + LOADS_AT;
  }
}

const LOADS_AT: usize = (offsetof<ReplicaUsage>() + 7) & ~7;
const SIZE: usize = LOADS_AT + <usize>(L.LOAD_USAGE_SIZE - L.LOAD_USAGE_SUMS);

/** Chain of the blocks in use, and of those that are free. */
export let replicaUsages: usize = 0;
let spare: usize = 0;

export function newReplicaUsage(engine: u64, replica: u64): usize {
  let at = spare;
  if (at) spare = changetype<ReplicaUsage>(at).next;
  else at = heap.alloc(SIZE);
  memory.fill(at, 0, SIZE);
  const usage = changetype<ReplicaUsage>(at);
  usage.engine = engine;
  usage.replica = replica;
  usage.next = replicaUsages;
  replicaUsages = at;
  return at;
}

export function freeReplicaUsage(at: usize): void {
  if (!at) return;
  let link: usize = 0;
  let other = replicaUsages;
  while (other != at) {
    link = other;
    other = changetype<ReplicaUsage>(other).next;
  }
  const next = changetype<ReplicaUsage>(at).next;
  if (link) changetype<ReplicaUsage>(link).next = next;
  else replicaUsages = next;
  changetype<ReplicaUsage>(at).next = spare;
  spare = at;
}
