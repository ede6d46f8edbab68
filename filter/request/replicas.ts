// Step 4: the replicas of an engine for a key, by rendezvous hashing: every usable replica gets a score from key and
// address, the highest wins. Only keys of a replica that fails move, and each to its own second choice.

import * as L from '../../wire/layout';
import { mix64, overflowMark, overflowPoint } from '../hash';
import { admits, Guarded, isUnproven, USABLE } from '../state/guarded';
import { EngineState, ReplicaState } from '../state/rows';

// How much health counts in a choice.
/** Only what nothing is held against; for retries. */
export const STEADY: i32 = 0;
/** Also what is being tested, as far as the test admits another request. */
export const HEALTHY: i32 = 1;
/** Also all that has come up and not failed, however many requests test it. */
export const UNPROVEN: i32 = 2;
/** Ejections are ignored, readiness is not. */
export const READY: i32 = 3;
/** Everything in the snapshot will do. */
export const ANY: i32 = 4;

/** Whether the state of an engine or a replica lets it take a request. */
// @ts-ignore: decorator
@inline
export function standing(row: Guarded, level: i32): bool {
  return row.state == USABLE || standsUnusable(row, level);
}

/** Of a row that is not usable. */
function standsUnusable(row: Guarded, level: i32): bool {
  if (level == STEADY) return false;
  return level > UNPROVEN || admits(row) || (level == UNPROVEN && isUnproven(row));
}

/** The replica to use, 0 if there is none. */
export let best: usize = 0;
/** Another replica for a retry, 0 if there is none; never one that is only being tested. */
export let second: usize = 0;
/** Another one that is only being tested, for when there is nobody else; 0 if there is none. */
export let spare: usize = 0;

/** What decides where the request overflows: the hash of its key, or chance where a key is hot. */
export let overflowHash: u64 = 0;

export function setOverflowHash(hash: u64): void {
  overflowHash = hash;
}

/** Ranks the replicas of an engine for a key; true when there is one to use. */
export function rankReplicas(engine: EngineState, hash: u64, level: i32): bool {
  let first: usize = 0;
  let next: usize = 0;
  let firstScore: u64 = 0;
  let nextScore: u64 = 0;
  let firstIsSteady = false;
  spare = 0;
  let spareScore: u64 = 0;
  let isAnyLeftOut = false;
  const end = engine.replicas + ((<usize>engine.replicaCount) << 2);
  for (let at = engine.replicas; at < end; at += 4) {
    const replica = changetype<ReplicaState>(<usize>load<u32>(at));
    if (!replica.ready && level < ANY) continue;
    if (!standing(replica, level)) {
      if (level == HEALTHY && isUnproven(replica)) isAnyLeftOut = true;
      continue;
    }
    const steady = replica.state == USABLE || level != HEALTHY;
    const score = mix64(hash ^ load<u64>(replica.snapshotRow, L.REPLICA_SEED));
    if (!first || score > firstScore) {
      if (firstIsSteady) {
        next = first;
        nextScore = firstScore;
      } else {
        spare = first;
        spareScore = firstScore;
      }
      first = changetype<usize>(replica);
      firstScore = score;
      firstIsSteady = steady;
    } else if (steady) {
      if (!next || score > nextScore) {
        next = changetype<usize>(replica);
        nextScore = score;
      }
    } else if (!spare || score > spareScore) {
      spare = changetype<usize>(replica);
      spareScore = score;
    }
  }
  if (isAnyLeftOut && areTooFew(engine)) return rankReplicas(engine, hash, UNPROVEN);
  const swapped = level == HEALTHY && next != 0 && overflows(first) && !overflows(next);
  best = swapped ? next : first;
  second = swapped ? first : next;
  return first != 0;
}

/** Whether less than half of the replicas that shared an engine's load are left: too few to take what others are spared. */
function areTooFew(engine: EngineState): bool {
  let left: u32 = 0;
  for (let i: usize = 0; i < <usize>engine.replicaCount; i++) {
    const replica = changetype<ReplicaState>(<usize>load<u32>(engine.replicas + (i << 2)));
    if (replica.ready && replica.state == USABLE) left++;
  }
  return left << 1 < engine.sharers;
}

/** Whether a key leaves its replica for the second of its choice. */
function overflows(replica: usize): bool {
  const state = changetype<ReplicaState>(replica);
  const fraction = load<f64>(state.snapshotRow, L.REPLICA_OVERFLOW);
  if (fraction == 0) return false;
  return <f64>overflowPoint(overflowHash, overflowMark(state.key)) < fraction * 4294967296.0;
}
