// Steps 3 to 5 together: engine, replica and where retries would go.

import * as L from '../../wire/layout';
import { random } from '../abi/random';
import { partitionPoint } from '../hash';
import {
  BOUND_BACKUP,
  BOUND_OWNER,
  BOUND_SIZE,
  boundSegments,
  poolFlows,
  poolRows,
} from '../snapshot/current';
import { TRICKLING } from '../state/guarded';
import { FlowState, ReplicaState } from '../state/rows';
import { segmentOf } from './partition';
import { FLOOR, GUARDRAIL, NO_KEY, PLANNED, SCAN } from './reasons';
import { best, HEALTHY, rankReplicas, STEADY, second, standing } from './replicas';
import { Stream } from './streams';

/** Most other engines looked at for a retry. */
const RETRY_SCAN: u32 = 8;

let first: usize = 0;
let count: u32 = 0;

/** A random key, for requests that have none. */
export function randomKey(): u64 {
  return random();
}

/**
 * Chooses engine and replica for a key and appends them to the stream, then up to two entries for retries: another
 * replica of the engine, and a replica of another engine. False when no engine of the pool can take the request,
 * down to the level `worst`.
 */
export function pick(stream: Stream, pool: u32, hash: u64, keyed: bool, worst: i32): bool {
  const row = poolRows + <usize>pool * L.POOL_SIZE;
  first = poolFlows + ((<usize>load<u32>(row, L.POOL_ENGINES_START)) << 2);
  count = load<u32>(row, L.POOL_ENGINES_COUNT);
  if (count == 0) return false;

  let owner: usize = 0;
  let backup: usize = 0;
  const segments = load<u32>(row, L.POOL_SEGMENTS_COUNT);
  if (segments > 0) {
    const start = boundSegments + <usize>load<u32>(row, L.POOL_SEGMENTS_START) * BOUND_SIZE;
    const segment = segmentOf(start, segments, partitionPoint(hash));
    owner = <usize>load<u32>(segment, BOUND_OWNER);
    backup = <usize>load<u32>(segment, BOUND_BACKUP);
  }

  let level = HEALTHY;
  let chosen: usize = 0;
  for (; level <= worst; level++) {
    chosen = choose(owner, backup, hash, level);
    if (chosen) break;
  }
  if (!chosen) return false;
  if (level > HEALTHY) stream.reason = FLOOR;
  else if (chosen == owner) stream.reason = keyed ? PLANNED : NO_KEY;
  else stream.reason = chosen == backup ? GUARDRAIL : SCAN;

  const flow = changetype<FlowState>(chosen);
  const other = second;
  append(stream, flow, best);
  if (level == HEALTHY) startProbes(stream);
  if (other) append(stream, flow, other);

  const retryLevel = level == HEALTHY ? STEADY : level;
  const elsewhere =
    chosen == owner && usable(backup, hash, retryLevel)
      ? backup
      : scan(hash, retryLevel, min(count, RETRY_SCAN), owner, chosen);
  if (!elsewhere) return true;
  const last = second;
  append(stream, changetype<FlowState>(elsewhere), best);
  if (!other && last) append(stream, changetype<FlowState>(elsewhere), last);
  return true;
}

/** Owner, else backup, else the next in fixed order; leaves the ranking of its replicas in `best` and `second`. */
function choose(owner: usize, backup: usize, hash: u64, level: i32): usize {
  if (usable(owner, hash, level)) return owner;
  if (usable(backup, hash, level)) return backup;
  return scan(hash, level, count, 0, 0);
}

/** Looks at `steps` of the pool's engines, but for two, from a place given by the key: the same in every VM. */
function scan(hash: u64, level: i32, steps: u32, not: usize, nor: usize): usize {
  let place = <u32>(((hash & 0xffffffff) * <u64>count) >> 32);
  for (let i: u32 = 0; i < steps; i++) {
    const flow = <usize>load<u32>(first + ((<usize>place) << 2));
    if (flow != not && flow != nor && usable(flow, hash, level)) return flow;
    if (++place == count) place = 0;
  }
  return 0;
}

function usable(flow: usize, hash: u64, level: i32): bool {
  if (!flow) return false;
  const engine = changetype<FlowState>(flow).engine;
  return standing(engine, level) && rankReplicas(engine, hash, level);
}

function append(stream: Stream, flow: FlowState, replica: usize): void {
  stream.append(flow, changetype<ReplicaState>(replica));
}

function startProbes(stream: Stream): void {
  const engine = stream.flow0.engine;
  const replica = stream.replica0;
  if (engine.state == TRICKLING) {
    stream.probesEngine = true;
    engine.probes++;
  }
  if (replica.state == TRICKLING) {
    stream.probesReplica = true;
    replica.probes++;
  }
}
