// What the responses of a replica said of its load. Most engines say nothing of it, so only the replicas of those that do
// have a block. As there may be one for each replica of a large fleet, a block is small: sums are rounded, and all of it
// starts over before a counter is full, which the control server can tell.

import * as L from '../../wire/layout';
import { allocate } from '../abi/blocks';

/** Counters since the VM started, or since the block has started over. */
@unmanaged
export class ReplicaLoads {
  /** State of the replica; 0 when it is free. */
  replica: usize;
  next: usize;
  /** Responses with a load report that could be read, and with one that could not. */
  reports: u16;
  garbled: u16;

  /** Counts a report with these readings: `told` has a bit for each, and the values lie in the order of the loads. */
  noteGood(told: u32, values: usize): void {
    this.makeRoom();
    this.reports++;
    for (let kind: usize = 0; kind < <usize>L.LOADS; kind++) {
      if (!((told >> <u32>kind) & 1)) continue;
      const sum = changetype<usize>(this) + SUMS + (kind << 2);
      const readings = changetype<usize>(this) + READINGS + (kind << 1);
      store<f32>(sum, load<f32>(sum) + <f32>load<f64>(values + (kind << 3)));
      store<u16>(readings, load<u16>(readings) + 1);
    }
  }

  noteGarbled(): void {
    this.makeRoom();
    this.garbled++;
  }

  sum(kind: usize): f64 {
    return <f64>load<f32>(changetype<usize>(this) + SUMS + (kind << 2));
  }

  readings(kind: usize): u64 {
    return load<u16>(changetype<usize>(this) + READINGS + (kind << 1));
  }

  private makeRoom(): void {
    if (this.reports < MOST_REPORTS && this.garbled < MOST_REPORTS) return;
    memory.fill(changetype<usize>(this) + offsetof<ReplicaLoads>('reports'), 0, SIZE - offsetof<ReplicaLoads>('reports'));
  }
}

/** Reports after which a block starts over: few enough for sums of so few digits to tell the latest of them. */
const MOST_REPORTS: u16 = 4096;
/** The sum of each load (f32) and how many readings it has (u16). */
const SUMS: usize = offsetof<ReplicaLoads>();
const READINGS: usize = SUMS + ((<usize>L.LOADS) << 2);
const SIZE: usize = (READINGS + ((<usize>L.LOADS) << 1) + 7) & ~7;
const PER_CHUNK: usize = 32;

/** Chain of the blocks in use, how many they are, and those that are free. */
export let replicaLoads: usize = 0;
export let replicaLoadsCount: u32 = 0;
let spare: usize = 0;
let hasFreed: bool = false;
/** The block to be told first, and the one behind what was told last; 0 for the first of the chain. */
export let firstTold: usize = 0;
let nextTold: usize = 0;

export function newLoads(replica: usize): usize {
  if (!spare) addChunk();
  const at = spare;
  const loads = changetype<ReplicaLoads>(at);
  spare = loads.next;
  memory.fill(at, 0, SIZE);
  loads.replica = replica;
  loads.next = replicaLoads;
  replicaLoads = at;
  replicaLoadsCount++;
  return at;
}

function addChunk(): void {
  const chunk = allocate(SIZE * PER_CHUNK);
  for (let i: usize = 0; i < PER_CHUNK; i++) {
    changetype<ReplicaLoads>(chunk + i * SIZE).next = spare;
    spare = chunk + i * SIZE;
  }
}

/** Frees the block of a replica, if it has one, for `sweepLoads` to take out of the chain. */
export function freeLoads(at: usize): void {
  if (!at) return;
  changetype<ReplicaLoads>(at).replica = 0;
  replicaLoadsCount--;
  hasFreed = true;
}

/** Takes all blocks that were freed out of the chain at once. */
export function sweepLoads(): void {
  if (!hasFreed) return;
  hasFreed = false;
  let link: usize = 0;
  let at = replicaLoads;
  while (at) {
    const loads = changetype<ReplicaLoads>(at);
    const next = loads.next;
    if (loads.replica) {
      link = at;
    } else {
      if (firstTold == at) firstTold = next;
      if (nextTold == at) nextTold = next;
      if (link) changetype<ReplicaLoads>(link).next = next;
      else replicaLoads = next;
      loads.next = spare;
      spare = at;
    }
    at = next;
  }
}

/** Notes which block comes behind those that a report tells. */
export function noteLoadsTold(next: usize): void {
  nextTold = next;
}

/** The control server has what was told: the next reports tell of the others. */
export function tellNextLoads(): void {
  firstTold = nextTold;
}
