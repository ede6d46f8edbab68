// What the filter knows of the requests in flight, found by context id.

import { allocate } from '../abi/blocks';
import { clearBlock, Region } from '../abi/memory';
import { FlowState, PoolState, ReplicaState } from '../state/rows';

/** Its body is being read. */
export const READING: u8 = 1;
/** Waiting for the first snapshot. */
export const HELD: u8 = 2;
/** Sent to an engine; its end has to be accounted for. */
export const ROUTED: u8 = 3;
/** Routed, and its response headers have been seen. */
export const ANSWERED: u8 = 4;
/** Sent on without an engine of ours, where nothing is steered; its answer is told why. */
export const LET_GO: u8 = 6;
/** Nothing more to do: answered by the filter itself, or accounted for. */
export const SETTLED: u8 = 5;

/** Most entries of an endpoint list: as many as a stream has room for, and one more than retries are ever granted. */
export const MOST_ENTRIES: u8 = 3;

@unmanaged
export class Stream {
  context: u32;
  state: u8;
  /** Index of the reason in `reasons.ts`. */
  reason: u8;
  /** Retries granted, so tokens reserved. */
  granted: u8;
  /** Entries of the endpoint list. */
  entries: u8;
  /** Has no body, so needs no model. */
  bodyless: bool;
  /** Counts in usage reports; false for calls that need no model. */
  counted: bool;
  /** Its answer is a stream of events. */
  streamed: bool;
  /** The status of its answer is 2xx. */
  answeredWell: bool;
  /** Its answer has spoken for its replica. */
  hasServed: bool;
  /** How its answer ends says nothing: it is a failure already, or a WebSocket, which either side just closes. */
  endSaysNothing: bool;
  /** Its tokens count in usage reports, and its pace if it is streamed. */
  countsTokens: bool;
  firstByteSeen: bool;
  /** Its answer has come to its end. */
  complete: bool;
  /** The entry of the endpoint list that has the request now. */
  entry: u8;
  /** Its body has been read, so `promptTokens` and `asksForStream` hold. */
  bodyRead: bool;
  /** Decided on and counted, but not steered. */
  observed: bool;
  asksForStream: bool;
  /** Its body or the client says that it is the first request of a conversation. */
  begins: bool;
  /** Its conversation has begun, or begins, at the backup of its point because the owner was busy. */
  away: bool;
  /** The first entry tests a trickling engine or replica. */
  probesEngine: bool;
  probesReplica: bool;
  /** The first entry is in doubt: what it refuses is tried elsewhere. */
  onTrial: bool;
  startedNs: u64;
  firstByteNs: u64;
  /** Bytes of its body that have arrived while it is being read. */
  bodySize: u32;
  /** Estimated. */
  promptTokens: u32;
  /** What is read of its answer, 0 if nothing is. */
  answer: usize;
  /** What is read of its body, 0 if nothing is. */
  scan: usize;
  planId: u64;
  pool: PoolState;
  /** What was decided where nothing is steered, 0 else. */
  decided: FlowState;
  /** Of the attempt that was answered, the first before that. */
  served: FlowState;
  // Flow and replica of each entry of the endpoint list.
  flow0: FlowState;
  flow1: FlowState;
  flow2: FlowState;
  replica0: ReplicaState;
  replica1: ReplicaState;
  replica2: ReplicaState;

  // @ts-ignore: decorator
  @inline
  flow(entry: u32): FlowState {
    return load<FlowState>(changetype<usize>(this) + ((<usize>entry) << 2), offsetof<Stream>('flow0'));
  }

  // @ts-ignore: decorator
  @inline
  replica(entry: u32): ReplicaState {
    return load<ReplicaState>(changetype<usize>(this) + ((<usize>entry) << 2), offsetof<Stream>('replica0'));
  }

  /** Drops all entries. */
  clearEntries(): void {
    this.keepRetries(0);
    this.flow0.pins--;
    this.replica0.pins--;
    this.entries = 0;
  }

  /** Appends an entry, of MOST_ENTRIES at most, and pins its rows. */
  append(flow: FlowState, replica: ReplicaState): void {
    const at = changetype<usize>(this) + ((<usize>this.entries) << 2);
    store<FlowState>(at, flow, offsetof<Stream>('flow0'));
    store<ReplicaState>(at, replica, offsetof<Stream>('replica0'));
    flow.pins++;
    replica.pins++;
    this.entries++;
  }

  /** Keeps the first entry and the last `retries` of the others: the very last retry goes elsewhere. */
  keepRetries(retries: u32): void {
    while (<u32>this.entries > retries + 1) {
      this.flow1.pins--;
      this.replica1.pins--;
      this.flow1 = this.flow2;
      this.replica1 = this.replica2;
      this.entries--;
    }
  }
}

const STREAM_SIZE: usize = (offsetof<Stream>() + 15) & ~15;
const STREAMS_PER_CHUNK: usize = 64;

const FIRST_SLOTS: u32 = 256;
/** Open addressing, linear probing; a slot is a context id and the address of its stream, 0 when empty. */
let slots: usize = memory.data(2048, 8);
let mask: u32 = FIRST_SLOTS - 1;
let region: Region = new Region();
let spareRegion: Region = new Region();
let count: u32 = 0;
let spare: usize = 0;

/** Address of the stream of a context, 0 if there is none. */
export function findStream(context: u32): usize {
  const slot = home(context);
  const at = streamInSlot(slot);
  return !at || contextInSlot(slot) == context ? at : findBehind(slot, context);
}

function findBehind(first: u32, context: u32): usize {
  let slot = first;
  while (true) {
    slot = (slot + 1) & mask;
    const at = streamInSlot(slot);
    if (!at || contextInSlot(slot) == context) return at;
  }
}

/** A zeroed stream for a context that has none. */
export function openStream(context: u32): Stream {
  if ((count + 1) * 2 > mask) grow();
  if (!spare) addChunk();
  const at = spare;
  spare = <usize>load<u32>(at);
  clearBlock(at, STREAM_SIZE);
  const stream = changetype<Stream>(at);
  stream.context = context;
  place(context, at);
  count++;
  return stream;
}

// @ts-ignore: decorator
@inline
export function closeStream(stream: Stream): void {
  let slot = home(stream.context);
  while (contextInSlot(slot) != stream.context) slot = (slot + 1) & mask;
  // Moves followers back over the gap, so that none becomes unreachable.
  let gap = slot;
  while (true) {
    slot = (slot + 1) & mask;
    if (!streamInSlot(slot)) break;
    if (((slot - home(contextInSlot(slot))) & mask) >= ((slot - gap) & mask)) {
      store<u64>(slotAt(gap), load<u64>(slotAt(slot)));
      gap = slot;
    }
  }
  store<u64>(slotAt(gap), 0);
  count--;
  store<u32>(changetype<usize>(stream), <u32>spare);
  spare = changetype<usize>(stream);
}

/** Number of slots to look through with `streamInSlot`. */
export function slotCount(): u32 {
  return mask + 1;
}

// @ts-ignore: decorator
@inline
export function streamInSlot(slot: u32): usize {
  return <usize>load<u32>(slotAt(slot), 4);
}

// @ts-ignore: decorator
@inline
function contextInSlot(slot: u32): u32 {
  return load<u32>(slotAt(slot));
}

// @ts-ignore: decorator
@inline
function slotAt(slot: u32): usize {
  return slots + ((<usize>slot) << 3);
}

// @ts-ignore: decorator
@inline
function home(context: u32): u32 {
  return ((context * 0x9e3779b1) >> 7) & mask;
}

function place(context: u32, at: usize): void {
  let slot = home(context);
  while (streamInSlot(slot)) slot = (slot + 1) & mask;
  store<u32>(slotAt(slot), context);
  store<u32>(slotAt(slot), <u32>at, 4);
}

function grow(): void {
  const old = slots;
  const oldCount = slotCount();
  mask = oldCount * 2 - 1;
  const size = (<usize>mask + 1) << 3;
  slots = spareRegion.reserve(size);
  const used = spareRegion;
  spareRegion = region;
  region = used;
  memory.fill(slots, 0, size);
  for (let i: u32 = 0; i < oldCount; i++) {
    const entry = old + ((<usize>i) << 3);
    if (load<u32>(entry, 4)) place(load<u32>(entry), <usize>load<u32>(entry, 4));
  }
}

function addChunk(): void {
  const chunk = allocate(STREAM_SIZE * STREAMS_PER_CHUNK);
  for (let i: usize = 0; i < STREAMS_PER_CHUNK; i++) {
    store<u32>(chunk + i * STREAM_SIZE, <u32>spare);
    spare = chunk + i * STREAM_SIZE;
  }
}
