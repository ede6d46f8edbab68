// Steps 3 to 5 together: engine, replica and where retries would go.

import * as L from '../../wire/layout';
import { random, vmTurn } from '../abi/random';
import { overflowPoint, partitionPoint } from '../hash';
import { FLOOR, GUARDRAIL, NO_KEY, OVERFLOW, PLANNED, SCAN } from '../reasons';
import {
  BOUND_BACKUP,
  BOUND_OWNER,
  BOUND_SIZE,
  boundSegments,
  hasLimits,
  poolEngines,
  poolFlows,
  poolRows,
} from '../snapshot/current';
import { indexIn } from '../snapshot/validate';
import { isSpotless, TRICKLING } from '../state/guarded';
import { noteKey } from '../state/hot-keys';
import { isOnTrial } from '../state/refusers';
import { EngineState, FlowState, PoolState, ReplicaState } from '../state/rows';
import { segmentOf } from './partition';
import {
  best,
  HEALTHY,
  overflowHash,
  READY,
  rankReplicas,
  STEADY,
  second,
  setOverflowHash,
  spare,
  standing,
  UNPROVEN,
} from './replicas';
import { askElsewhere } from './steer';
import { MOST_ENTRIES, Stream } from './streams';

/** Most other engines looked at for a retry. */
const RETRY_SCAN: u32 = 8;

let first: usize = 0;
let count: u32 = 0;

/** An engine that could have been used had as many requests in flight as it may have, since the last pick began. */
export let atLimit: bool = false;

/** A random key, for requests that have none. */
export function randomKey(): u64 {
  return random();
}

/** Turns of the golden ratio, which fill a circle evenly however soon they end. */
const GOLDEN_TURN: u32 = 0x9e3779b9;

/**
 * Moves a random key to the next of points that fill the partition evenly, so that a burst without keys is shared as
 * planned at any moment, where random points make runs. Each VM begins elsewhere.
 */
export function spreadKey(state: PoolState, key: u64): u64 {
  state.spread += GOLDEN_TURN;
  return ((<u64>(state.spread + vmTurn)) << 32) | (key & 0xffffffff);
}

/** The bound segment of a pool's partition that a hash falls in, 0 if the pool has no partition. */
export function segmentAt(pool: u32, hash: u64): usize {
  const row = poolRows + <usize>pool * L.POOL_SIZE;
  const segments = load<u32>(row, L.POOL_SEGMENTS_COUNT);
  if (segments == 0) return 0;
  const start = boundSegments + <usize>load<u32>(row, L.POOL_SEGMENTS_START) * BOUND_SIZE;
  return segmentOf(start, segments, partitionPoint(hash));
}

/** The owner of the segment that a hash falls in, if it would be picked; its replica is then `best`. 0 else. */
export function ownerOf(segment: usize, hash: u64): usize {
  if (!segment) return 0;
  const owner = <usize>load<u32>(segment, BOUND_OWNER);
  setOverflowHash(hash);
  return usable(owner, hash, HEALTHY) && !overflows(owner) ? owner : 0;
}

/** The backup of a hash that falls in a segment, if it would be picked and is not busy itself; 0 else. */
export function backupOf(segment: usize, hash: u64): usize {
  const backup = <usize>load<u32>(segment, BOUND_BACKUP);
  setOverflowHash(hash);
  return usable(backup, hash, HEALTHY) && !overflows(backup) && !isBusy(backup) ? backup : 0;
}

/** Whether this Envoy has more in flight at an engine than new conversations should add to. */
export function isBusy(flow: usize): bool {
  const engine = changetype<FlowState>(flow).engine;
  return <f64>(engine.inFlight + engine.othersInFlight) > engine.busyAbove;
}

/**
 * Chooses engine and replica for a key, by the segment that its hash falls in, and appends them to the stream, then where
 * retries go. False when no engine of the pool can take the request, down to the level `worst`.
 */
export function pick(
  stream: Stream,
  pool: u32,
  segment: usize,
  hash: u64,
  keyed: bool,
  worst: i32,
): bool {
  atLimit = false;
  const row = poolRows + <usize>pool * L.POOL_SIZE;
  first = poolFlows + ((<usize>load<u32>(row, L.POOL_ENGINES_START)) << 2);
  count = load<u32>(row, L.POOL_ENGINES_COUNT);
  if (count == 0) return false;

  const owner = segment ? <usize>load<u32>(segment, BOUND_OWNER) : 0;
  const backup = segment ? <usize>load<u32>(segment, BOUND_BACKUP) : 0;

  let level = HEALTHY;
  let chosen = chooseHealthy(owner, backup, hash, stream.away);
  // Who is only full is not down: looking further would bring up those who are.
  while (!chosen && (atLimit ? UNPROVEN : worst) > level) chosen = choose(owner, backup, hash, ++level);
  if (!chosen) return false;
  if (level > HEALTHY) stream.reason = FLOOR;
  else if (chosen == owner) stream.reason = keyed ? PLANNED : NO_KEY;
  else if (leftOwner) stream.reason = OVERFLOW;
  else stream.reason = chosen == backup ? GUARDRAIL : SCAN;

  appendFirst(stream, chosen, level);
  appendRetries(stream, owner, backup, hash, level);
  return true;
}

/**
 * Appends up to two entries for retries: another replica of the engine that was ranked last, which is the first entry's, and a
 * replica of another engine.
 */
function appendRetries(stream: Stream, owner: usize, backup: usize, hash: u64, level: i32): void {
  const chosen = changetype<usize>(stream.flow0);
  const other = second;
  const tested = spare;
  if (other) append(stream, stream.flow0, other);

  const retryLevel = level == HEALTHY ? STEADY : level;
  let elsewhere =
    chosen == owner && usable(backup, hash, retryLevel)
      ? backup
      : scan(hash, retryLevel, min(count, RETRY_SCAN), leftOwner ? 0 : owner, chosen);
  if (!elsewhere && !other) {
    // Rather than nobody, who is being tested: after a change of all replicas they all are.
    if (tested) append(stream, stream.flow0, tested);
    elsewhere = scan(hash, HEALTHY, min(count, RETRY_SCAN), chosen, 0);
  }
  if (!elsewhere) {
    if (!other && !tested) appendEjected(stream, chosen, hash);
    return;
  }
  const last = second;
  append(stream, changetype<FlowState>(elsewhere), best);
  if (last && stream.entries < MOST_ENTRIES) append(stream, changetype<FlowState>(elsewhere), last);
}

/**
 * Chooses a replica of one engine, by its number, if it is one of the pool's and usable, with another for a retry. For
 * requests that are no load, so that no limit counts.
 */
export function pickAt(stream: Stream, pool: u32, engine: u32, hash: u64, level: i32): bool {
  const row = poolRows + <usize>pool * L.POOL_SIZE;
  const start = <usize>load<u32>(row, L.POOL_ENGINES_START);
  const place = indexIn(poolEngines + (start << 2), load<u32>(row, L.POOL_ENGINES_COUNT), engine);
  if (place < 0) return false;
  const flow = <usize>load<u32>(poolFlows + ((start + <usize>place) << 2));
  const chosen = changetype<FlowState>(flow).engine;
  setOverflowHash(hash);
  if (!standing(chosen, level) || !rankReplicas(chosen, hash, level)) return false;
  const other = second;
  appendFirst(stream, flow, level);
  if (other) append(stream, changetype<FlowState>(flow), other);
  return true;
}

/** The owner could serve, but has, or is said to have, too much in flight for this key. */
let leftOwner: bool = false;

/**
 * Of the healthy ones: the owner, unless the key overflows from there, or has begun at the backup, which is there;
 * else, if there is any from which it does not overflow, the backup or the next in fixed order; else as without overflow.
 */
// @ts-ignore: decorator
@inline
function chooseHealthy(owner: usize, backup: usize, hash: u64, away: bool): usize {
  setOverflowHash(isHot(owner, hash) ? random() : hash);
  if (away && usable(backup, hash, HEALTHY) && !overflows(backup)) {
    leftOwner = true;
    return backup;
  }
  const fits = usable(owner, hash, HEALTHY);
  if (fits && !overflows(owner)) {
    leftOwner = false;
    return owner;
  }
  leftOwner = fits || atLimit;
  if (usable(backup, hash, HEALTHY) && !overflows(backup)) return backup;
  const other = scan(hash, HEALTHY, count, owner, backup, true);
  return other ? other : choose(owner, backup, hash, HEALTHY);
}

/** Whether the key alone makes up much of what an overflowing owner gets, so that it moves request by request. */
// @ts-ignore: decorator
@inline
function isHot(owner: usize, hash: u64): bool {
  return owner != 0 && changetype<FlowState>(owner).engine.overflowBelow != 0 && noteKey(hash);
}

/** Owner, else backup, else the next in fixed order; leaves the ranking of its replicas in `best` and `second`. */
function choose(owner: usize, backup: usize, hash: u64, level: i32): usize {
  if (usable(owner, hash, level)) return owner;
  if (usable(backup, hash, level)) return backup;
  return scan(hash, level, count, 0, 0);
}

/**
 * Looks at `steps` of the pool's engines, but for two, from a place given by the key: the same in every VM. With
 * `calm`, those from which the key overflows do not count.
 */
function scan(hash: u64, level: i32, steps: u32, not: usize, nor: usize, calm: bool = false): usize {
  let place = <u32>(((hash & 0xffffffff) * <u64>count) >> 32);
  for (let i: u32 = 0; i < steps; i++) {
    const flow = <usize>load<u32>(first + ((<usize>place) << 2));
    if (flow != not && flow != nor && !(calm && overflows(flow)) && usable(flow, hash, level))
      return flow;
    if (++place == count) place = 0;
  }
  return 0;
}

/** Whether the key's second choice is to be preferred to this engine. */
// @ts-ignore: decorator
@inline
function overflows(flow: usize): bool {
  const engine = changetype<FlowState>(flow).engine;
  return engine.overflowBelow != 0 && <u64>overflowPoint(overflowHash, engine.mark) < engine.overflowBelow;
}

// @ts-ignore: decorator
@inline
function usable(flow: usize, hash: u64, level: i32): bool {
  if (!flow) return false;
  const engine = changetype<FlowState>(flow).engine;
  if (!standing(engine, level)) return false;
  if (hasLimits && !hasRoom(engine)) {
    atLimit = true;
    return false;
  }
  return rankReplicas(engine, hash, level);
}

function hasRoom(engine: EngineState): bool {
  return <f64>(engine.inFlight + engine.othersInFlight) < engine.mostInFlight;
}

// @ts-ignore: decorator
@inline
function appendFirst(stream: Stream, flow: usize, level: i32): void {
  append(stream, changetype<FlowState>(flow), best);
  if (level == HEALTHY && !stream.observed) startProbes(stream);
}

// @ts-ignore: decorator
@inline
function append(stream: Stream, flow: FlowState, replica: usize): void {
  stream.append(flow, changetype<ReplicaState>(replica));
}

/** Rather than nobody, one that this VM avoids: it may be back, as when all replicas are restarted one after the other. */
function appendEjected(stream: Stream, chosen: usize, hash: u64): void {
  const flow = changetype<FlowState>(chosen);
  rankReplicas(flow.engine, hash, READY);
  const other = best == changetype<usize>(stream.replica0) ? second : best;
  if (other) {
    append(stream, flow, other);
    return;
  }
  const elsewhere = scan(hash, READY, min(count, RETRY_SCAN), chosen, 0);
  if (elsewhere) append(stream, changetype<FlowState>(elsewhere), best);
}

function startProbes(stream: Stream): void {
  const engine = stream.flow0.engine;
  const replica = stream.replica0;
  if (engine.state == TRICKLING) {
    stream.probesEngine = true;
    engine.probes++;
  }
  if (!isSpotless(replica)) startReplicaProbe(stream, replica);
}

function startReplicaProbe(stream: Stream, replica: ReplicaState): void {
  if (replica.state == TRICKLING) {
    stream.probesReplica = true;
    replica.probes++;
  }
  if (!replica.doubts || !stream.counted) return;
  const pool = stream.pool;
  if (isOnTrial(pool.pool, replica, stream.startedNs, pool.plenty)) stream.onTrial = askElsewhere();
}
