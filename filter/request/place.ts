// Where a conversation begins. A plan gives each engine its share of the keys, but conversations come in lumps, and a
// hash cannot see that an engine happens to be busy. A new conversation has no cache anywhere, so it takes the better of
// two points of the partition (power of two choices): its own, unless the second is clearly better off. As both fall in
// the segments in proportion to the weights, the flows stay the plan's, and the plan moves a displaced key like any other.
// Where a frontend has one engine alone, both points lead there. So while this Envoy has more in flight at the engine than its
// part of what a full one has, a new conversation begins at the backup: a plan follows a surge of demand seconds later.

import { placement } from '../config';
import { awayHash, secondHash } from '../hash';
import { displace, isDisplaced } from '../state/displaced';
import { FlowState, ReplicaState } from '../state/rows';
import { backupOf, isBusy, ownerOf, segmentAt } from './pick';
import { best } from './replicas';
import { Stream } from './streams';

/** The second choice is better off if it were still so with this many requests more. */
const MARGIN: f64 = 2;

/** The segment that the hash falls in which was returned last; 0 if the pool has no partition. */
export let segment: usize = 0;

/** The hash that a request goes by: its key's own, or that of the key's second point; notes where it is away. */
// @ts-ignore: decorator
@inline
export function place(stream: Stream, pool: u32, hash: u64, keyed: bool): u64 {
  const places = placement && !stream.observed;
  if (places && keyed) {
    if (isDisplaced(hash)) return follow(pool, hash);
    stream.away = isDisplaced(awayHash(hash));
  }
  segment = segmentAt(pool, hash);
  if (!places || stream.away || (keyed && (!stream.begins || hasBegun(hash)))) return hash;
  const home = ownerOf(segment, hash);
  if (!home) return hash;
  const replica = best;
  const second = secondHash(hash);
  const next = segmentAt(pool, second);
  const other = ownerOf(next, second);
  const better = other != 0 && isBetter(home, replica, other, best);
  if (isBusy(home) && (other == 0 || isBusy(other)) && backupOf(segment, hash)) {
    if (keyed) displace(awayHash(hash));
    stream.away = true;
    return hash;
  }
  if (!better) return hash;
  segment = next;
  if (keyed) displace(hash);
  return second;
}

/** The same for a request that begins nothing. */
export function placeAgain(stream: Stream, pool: u32, hash: u64): u64 {
  if (placement) {
    if (isDisplaced(hash)) return follow(pool, hash);
    stream.away = isDisplaced(awayHash(hash));
  }
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

/** Whether the second point's engine, or replica, has clearly less in flight for its share than the first's. */
function isBetter(home: usize, replica: usize, other: usize, otherReplica: usize): bool {
  if (home == other) return sentTo(replica) > sentTo(otherReplica) + MARGIN;
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
  const state = changetype<ReplicaState>(replica);
  return <f64>(state.sent - state.ended);
}
