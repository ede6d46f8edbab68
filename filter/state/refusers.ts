// Replicas that refuse (401, 403, 404) what others of a pool serve: they lack its model or adapter, or have other
// credentials. Such a replica is well and quick, and its word does not tell whether a request was wrong. The same request,
// tried elsewhere, does. So once a replica has refused a request of a pool, others of that pool that it refuses are tried
// elsewhere. Each that is served there counts against it, and with enough of them, for long enough, it gets no more of that
// pool's requests but single ones that test it, and are tried elsewhere, too.
//
// Whatever it serves of the pool clears it: who is refused by one replica alone, which serves others meanwhile, proves
// nothing against it. Nor do those who are refused by everybody.

import { nowMs } from '../abi/clock';
import { backOffMs, EJECTED, Guarded, NS_PER_MS } from './guarded';

/** Requests served elsewhere after which a replica gets no more, and how long after the first of them at the least. */
const ENOUGH_PROOFS: u8 = 3;
const LEAST_PROVING_MS: u64 = 1_000;
/** Where nothing is proven, so often a replica's refusals are tried elsewhere; and those of all together. */
const TRIAL_MS: u64 = 1_000;
const ANY_TRIAL_MS: u64 = 200;

/** A replica that has refused a request of a pool and has served none since. */
@unmanaged
class Refuser {
  /** Hash of the pool's id. */
  pool: u64;
  /** When the first proof came, and when it last was left out. */
  provenMs: u64;
  outNs: u64;
  /** No trial or test before. */
  untilMs: u64;
  replica: Guarded;
  proofs: u8;
  ejections: u8;
  isOut: bool;
  /** While it is hidden, one more than its state; 0 else. */
  hidden: u8;
}

const MOST: u32 = 128;
const SIZE: usize = offsetof<Refuser>();
const REFUSERS: usize = memory.data(128 * 40, 8);
/** How many there are; they lie one behind the other. */
export let refusers: u32 = 0;
let nextTrialMs: u64 = 0;

// @ts-ignore: decorator
@inline
function at(place: u32): Refuser {
  return changetype<Refuser>(REFUSERS + <usize>place * SIZE);
}

function find(pool: u64, replica: Guarded): Refuser | null {
  for (let i: u32 = 0; i < refusers; i++) {
    const refuser = at(i);
    if (refuser.replica == replica && refuser.pool == pool) return refuser;
  }
  return null;
}

/** A replica has refused a request of a pool. */
export function noteRefusal(pool: u64, replica: Guarded): void {
  if (!find(pool, replica)) add(pool, replica);
}

/** Null when there are too many. */
function add(pool: u64, replica: Guarded): Refuser | null {
  if (refusers == MOST && !dropHarmless()) return null;
  const refuser = at(refusers++);
  memory.fill(changetype<usize>(refuser), 0, SIZE);
  refuser.pool = pool;
  refuser.replica = replica;
  replica.doubts++;
  return refuser;
}

/** Makes room in place of one against whom nothing is proven. */
function dropHarmless(): bool {
  for (let i: u32 = 0; i < refusers; i++) {
    if (at(i).proofs) continue;
    drop(at(i));
    return true;
  }
  return false;
}

function drop(refuser: Refuser): void {
  refuser.replica.doubts--;
  const last = at(--refusers);
  if (refuser != last) memory.copy(changetype<usize>(refuser), changetype<usize>(last), SIZE);
}

/** Whether a new request of the pool is to be tried elsewhere if the replica, one that is in doubt, refuses it. */
export function isOnTrial(pool: u64, replica: Guarded, startedNs: u64, plenty: bool): bool {
  const refuser = find(pool, replica);
  if (!refuser) return false;
  const now = startedNs / NS_PER_MS;
  if (!refuser.isOut) {
    if (refuser.proofs == ENOUGH_PROOFS) return true;
    // Before they are for what may be wrong, retries are for what fails.
    if (!plenty) return false;
    if (refuser.proofs) return true;
    if (now < refuser.untilMs || now < nextTrialMs) return false;
    nextTrialMs = now + ANY_TRIAL_MS;
  }
  refuser.untilMs = now + TRIAL_MS;
  return true;
}

/** A request that started then was refused by the replica and served by another. If that leaves it out: how often it was. */
export function noteOutdone(pool: u64, replica: Guarded, startedNs: u64): u32 {
  let refuser = find(pool, replica);
  if (!refuser) refuser = add(pool, replica);
  if (!refuser || startedNs < refuser.outNs) return 0;
  const now = nowMs();
  if (refuser.proofs == 0) refuser.provenMs = now;
  if (refuser.proofs < ENOUGH_PROOFS) refuser.proofs++;
  if (!refuser.isOut && (refuser.proofs < ENOUGH_PROOFS || now - refuser.provenMs < LEAST_PROVING_MS)) return 0;
  refuser.isOut = true;
  refuser.outNs = now * NS_PER_MS;
  refuser.untilMs = now + backOffMs(refuser.ejections);
  if (refuser.ejections < 255) refuser.ejections++;
  return refuser.ejections;
}

/** The replica, one that is in doubt, has served a request of the pool. */
export function noteServes(pool: u64, replica: Guarded): void {
  const refuser = find(pool, replica);
  if (refuser) drop(refuser);
}

/** The replica has come up, perhaps with what it lacked: those of its refusals that leave it out are tested at once. */
export function testAgain(replica: Guarded): void {
  for (let i: u32 = 0; i < refusers; i++) if (at(i).replica == replica) at(i).untilMs = 0;
}

/** The replica is forgotten. */
export function forget(replica: Guarded): void {
  for (let i: u32 = refusers; replica.doubts && i > 0; i--) if (at(i - 1).replica == replica) drop(at(i - 1));
}

/** Has those who are left out of a pool look ejected to the pick that follows for one of its requests. */
export function hideRefusers(pool: u64, startedNs: u64): void {
  for (let i: u32 = 0; i < refusers; i++) {
    const refuser = at(i);
    if (!refuser.isOut || refuser.pool != pool || startedNs >= refuser.untilMs * NS_PER_MS) continue;
    refuser.hidden = refuser.replica.state + 1;
    refuser.replica.state = EJECTED;
  }
}

export function showRefusers(): void {
  for (let i: u32 = 0; i < refusers; i++) {
    const refuser = at(i);
    if (!refuser.hidden) continue;
    refuser.replica.state = refuser.hidden - 1;
    refuser.hidden = 0;
  }
}
