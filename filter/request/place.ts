// Where a conversation begins. A plan gives each engine its share of the keys, but conversations come in lumps, and a
// hash cannot see that an engine happens to be busy. A new conversation has no cache anywhere, so it takes the better of
// two points of the partition (power of two choices): its own, unless the second is clearly better off. As both fall in
// the segments in proportion to the weights, the flows stay the plan's, and the plan moves a displaced key like any other.

import { placement } from '../config';
import { secondHash } from '../hash';
import { displace, isDisplaced } from '../state/displaced';
import { ReplicaUsage } from '../state/replica-usage';
import { FlowState, ReplicaState } from '../state/rows';
import { ownerOf, segmentAt } from './pick';
import { best } from './replicas';
import { Stream } from './streams';

/** The second choice is better off if it were still so with this many requests more. */
const MARGIN: f64 = 2;

/** The segment that the hash falls in which was returned last; 0 if the pool has no partition. */
export let segment: usize = 0;

/** The hash that a request goes by: its key's own, or that of the key's second point. */
export function place(stream: Stream, pool: u32, hash: u64, keyed: bool): u64 {
  const places = placement && !stream.observed;
  if (places && keyed && isDisplaced(hash)) return follow(pool, hash);
  segment = segmentAt(pool, hash);
  if (!places || (keyed && (!stream.begins || hasBegun(hash)))) return hash;
  const second = secondHash(hash);
  const other = segmentAt(pool, second);
  if (!isBetter(segment, hash, other, second)) return hash;
  segment = other;
  if (keyed) displace(hash);
  return second;
}

/** The same for a request that begins nothing. */
export function placeAgain(pool: u32, hash: u64): u64 {
  if (placement && isDisplaced(hash)) return follow(pool, hash);
  segment = segmentAt(pool, hash);
  return hash;
}

/** A displaced key goes home while its engine is of no use. */
function follow(pool: u32, hash: u64): u64 {
  const second = secondHash(hash);
  segment = segmentAt(pool, second);
  if (ownerOf(segment, second)) return second;
  segment = segmentAt(pool, hash);
  return hash;
}

/** Whether the second segment's engine, or replica, has clearly less in flight for its share than the first's. */
function isBetter(first: usize, hash: u64, next: usize, second: u64): bool {
  const home = ownerOf(first, hash);
  if (!home) return false;
  const replica = best;
  const other = ownerOf(next, second);
  if (!other) return false;
  if (home == other) return sentTo(replica) > sentTo(best) + MARGIN;
  const from = changetype<FlowState>(home);
  const to = changetype<FlowState>(other);
  return inFlight(from) * to.share > (inFlight(to) + MARGIN) * from.share;
}

/** Marks of keys that have begun here of late, each in the place of one before it. */
const BEGUN: usize = memory.data(4096, 4);
const BEGUN_PLACES: u64 = 1024;

/** Whether a conversation of this key has begun here of late: a key that many share has caches where it is. */
function hasBegun(hash: u64): bool {
  const at = BEGUN + ((<usize>(hash & (BEGUN_PLACES - 1))) << 2);
  const mark = <u32>(hash >> 32);
  if (load<u32>(at) == mark) return true;
  store<u32>(at, mark);
  return false;
}

// Both as this VM sees it.

/** Requests of the pool in flight at an engine: what the engine has from other pools is no part of this row's plan. */
// @ts-ignore: decorator
@inline
function inFlight(flow: FlowState): f64 {
  return <f64>(flow.planned + flow.diverted - flow.ended);
}

function sentTo(replica: usize): f64 {
  const usage = changetype<ReplicaState>(replica).usage;
  if (!usage) return 0;
  return <f64>(changetype<ReplicaUsage>(usage).sent - changetype<ReplicaUsage>(usage).ended);
}
