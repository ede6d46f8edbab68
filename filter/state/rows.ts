import { mix64 } from '../hash';
import { Guarded } from './guarded';
import { Row, Table } from './table';

/** Counters of a pool since the VM started, and the VM's part of its retry budget. */
@unmanaged
export class PoolState extends Row {
  offered: u64;
  clientRetries: u64;
  shed: u64;
  unavailable: u64;
  withoutKey: u64;

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

  // @ts-ignore: decorator
  @inline
  get idAt(): usize {
    return changetype<usize>(this) + offsetof<EngineState>('id0');
  }

  /** Keeps the id, of at most MAX_ENGINE_ID_BYTES. */
  setId(at: usize, length: usize): void {
    this.idLength = <u32>length;
    memory.copy(this.idAt, at, this.idLength);
  }
}

@unmanaged
export class ReplicaState extends Guarded {
  /** Row in the current snapshot; 0 when the replica is not in it. */
  snapshotRow: usize;
  ready: bool;
}

/** A pool's traffic to one of its engines: counters since the VM started. */
@unmanaged
export class FlowState extends Row {
  pool: PoolState;
  engine: EngineState;
  planned: u64;
  diverted: u64;
  ended: u64;
  failures: u64;
  status2xx: u64;
  status4xx: u64;
  status5xx: u64;
  noResponse: u64;
  retries: u64;
  firstByteSum: f64;
  firstByteCount: u64;
}

export const pools: Table = new Table(offsetof<PoolState>());
export const engines: Table = new Table(offsetof<EngineState>());
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
  replicas.sweep(install, now, (row) => {});
  flows.sweep(install, now, (row) => {
    changetype<FlowState>(row).pool.pins--;
    changetype<FlowState>(row).engine.pins--;
  });
  engines.sweep(install, now, (row) => {});
  pools.sweep(install, now, (row) => {});
}
