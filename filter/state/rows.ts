import * as L from '../../wire/layout';
import { mix64 } from '../hash';
import { Guarded } from './guarded';
import { forget } from './refusers';
import { freeLoads, sweepLoads } from './replica-loads';
import { Row, Table } from './table';

/**
 * A class of a pool: counters since the VM started, as in a usage report, and the VM's part of its retry budget. That of
 * priority 0 has the pool's key.
 */
@unmanaged
export class PoolState extends Row {
  offered: u64;
  clientRetries: u64;
  shed: u64;
  unavailable: u64;
  withoutKey: u64;
  bodiesRead: u64;
  followUps: u64;
  promptCount: u64;
  promptTokens: u64;
  cachedTokens: u64;
  cachedOfTokens: u64;
  outputCount: u64;
  outputTokens: u64;

  /** Hash of the pool's id. */
  pool: u64;
  priority: i32;
  /** The class of priority 0 of the same pool. */
  home: PoolState;
  /** Where its last request without a key went in the partition, counted from where the VM began. */
  spread: u32;
  /** Tokens of the retry budget that this VM may spend. */
  tokens: i32;
  /** Tokens asked for since the last tick. */
  needed: i32;
  /** The most that a tick of late has asked for. */
  need: f64;
  /** Tokens earned and not yet paid into the ledger. */
  earned: f64;
  /** Tokens that a first attempt earns now. */
  ratio: f64;
  /** First attempts not yet told to the ledger. */
  arrivals: u32;
  /** At least half of the bucket was free when the ledger was last seen. */
  plenty: bool;
  /** The ledger had nothing left when it was last seen in this tick. */
  exhausted: bool;
}

@unmanaged
export class EngineState extends Guarded {
  /** Row in the current snapshot; 0 when the engine is not in it. */
  snapshotRow: usize;
  /** First of the pointers to the states of its replicas, in the order of the snapshot. */
  replicas: usize;
  replicaCount: u32;
  readyCount: u32;
  /** Replicas that shared its load when last none of them was unproven, and when as many were ready last. */
  sharers: u32;
  sharedMs: u64;
  /** Its keys whose overflow point lies below this go elsewhere. */
  overflowBelow: u64;
  /** Makes its overflow points its own. */
  mark: u64;
  /** Requests in flight, of this VM and of the others of this Envoy when last heard of. */
  inFlight: u32;
  othersInFlight: u32;
  /** The brake: with this many in flight, no more are sent. */
  mostInFlight: f64;
  /** With more than this in flight, new conversations begin at backups. */
  busyAbove: f64;
  /** The id, for response headers: the snapshot that named it may be gone by then. */
  idLength: u32;
  id0: u64;
  id1: u64;
  id2: u64;
  id3: u64;
  id4: u64;
  id5: u64;
  id6: u64;
  id7: u64;
  /** Streamed answers that have begun. */
  streams: u64;
  /** Round trips measured, and the sum of their seconds. */
  roundTripCount: u64;
  roundTripSum: f64;

  // @ts-ignore: decorator
  @inline
  get idAt(): usize {
    return changetype<usize>(this) + offsetof<EngineState>('id0');
  }

  /** The counters of its buckets, as in a usage report. */
  // @ts-ignore: decorator
  @inline
  get bucketsAt(): usize {
    return changetype<usize>(this) + BUCKETS;
  }

  /** Keeps the id, of at most MAX_ENGINE_ID_BYTES. */
  setId(at: usize, length: usize): void {
    this.idLength = <u32>length;
    memory.copy(this.idAt, at, this.idLength);
  }
}

/** Behind the fixed part of an engine's row. */
const BUCKETS: usize = (offsetof<EngineState>() + 7) & ~7;
const BUCKETS_SIZE: usize = <usize>(L.FIRST_TOKEN_BUCKETS + L.PACE_BUCKETS) << 3;

@unmanaged
export class ReplicaState extends Guarded {
  /** Row in the current snapshot; 0 when the replica is not in it. */
  snapshotRow: usize;
  /** What its responses said of its load, 0 before the first word. */
  loads: usize;
  ready: bool;
  /** Key of its engine and hash of its address. */
  engine: u64;
  address: u64;
  /** Attempts since the VM started; those that have not ended are in flight. */
  sent: u64;
  ended: u64;

  // @ts-ignore: decorator
  @inline
  beginAttempt(): void {
    if (this.sent++ == this.ended) busyReplicas++;
  }

  // @ts-ignore: decorator
  @inline
  endAttempt(): void {
    if (++this.ended == this.sent) busyReplicas--;
  }
}

/** Replicas with attempts in flight. */
export let busyReplicas: u32 = 0;

/** A pool's traffic to one of its engines: counters since the VM started, from `planned` on as in a usage report. */
@unmanaged
export class FlowState extends Row {
  pool: PoolState;
  engine: EngineState;
  /** The tick that `left` is for, and how many more answers are read before the next. */
  period: u32;
  left: u32;
  /** Of the pool's partition. */
  share: f64;
  planned: u64;
  diverted: u64;
  ended: u64;
  failures: u64;
  status2xx: u64;
  status4xx: u64;
  status5xx: u64;
  noResponse: u64;
  retries: u64;
  stalled: u64;
  broken: u64;
  firstTokenSum: f64;
  firstTokenCount: u64;
  wholeSum: f64;
  wholeCount: u64;
  paceSum: f64;
  paceTokens: u64;
  usageCount: u64;
  promptTokens: u64;
  cachedTokens: u64;
  cachedOfTokens: u64;
  outputTokens: u64;
}

export const pools: Table = new Table(offsetof<PoolState>());
export const engines: Table = new Table(BUCKETS + BUCKETS_SIZE);
export const replicas: Table = new Table(offsetof<ReplicaState>());
export const flows: Table = new Table(offsetof<FlowState>());

/** Key of the row for a part of something: a replica of an engine, an engine of a pool. */
// @ts-ignore: decorator
@inline
export function pairKey(whole: u64, part: u64): u64 {
  return mix64(mix64(whole) + part);
}

/** Frees what left the snapshot long ago. */
export function sweepAll(install: u32, now: u64): void {
  replicas.sweep(install, now, (row) => {
    freeLoads(changetype<ReplicaState>(row).loads);
    forget(changetype<Guarded>(row));
  });
  sweepLoads();
  flows.sweep(install, now, (row) => {
    changetype<FlowState>(row).pool.pins--;
    changetype<FlowState>(row).engine.pins--;
  });
  engines.sweep(install, now, (row) => {});
  pools.sweep(install, now, (row) => {});
}
