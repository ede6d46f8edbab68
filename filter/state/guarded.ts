// The guardrail: one state machine for each engine and each replica, local to the VM.
//
//   usable  --n failures in a row-->  ejected  --back-off over-->  trickling  --3 successes-->  usable
//                                        ^                             |
//                                        +--------one failure----------+
//
// A replica that has come up, new or again, trickles until its first success: engines answer health checks, and even list
// their models, long before they can serve. Nothing is held against it, so its test widens with time, too: answers may
// take half a minute, and those that it replaces may be gone before.
//
// An answer that has begun speaks for a row, unless those before it failed after they had begun: engines that break off all
// answers begin each as if they were well. What failed so is made good only by an answer that comes to a good end. A row
// that was ejected for it is tested by whole answers, and as these take long its test widens with time, too.
//
// An outcome counts only if its request started after the last change of state: older requests tell about the time
// before. Nothing here empties a pool; what happens when everybody is ejected is decided where engines are picked.

import { nowMs } from '../abi/clock';
import { Row } from './table';

export const USABLE: u8 = 0;
export const EJECTED: u8 = 1;
export const TRICKLING: u8 = 2;

/** Failures in a row after which a replica is ejected. */
export const REPLICA_FAILURES: u8 = 3;
/** The same for an engine, whichever its replicas. */
export const ENGINE_FAILURES: u8 = 5;

export const NS_PER_MS: u64 = 1_000_000;
const FIRST_BACK_OFF_MS: u64 = 1_000;
const LONGEST_BACK_OFF_MS: u64 = 30_000;
/** After this long without ejection the back-off starts over. */
const FORGIVEN_MS: u64 = 60_000;
const SUCCESSES_TO_RETURN: u8 = 3;
/** So often a test that takes long, and that none has failed, takes twice as many requests at a time. */
const WIDENING_MS: u64 = 2_000;
/** More requests at a time than any row has. */
const MOST_PROBES: u32 = 1 << 20;
/** Of tests that do not widen. */
const NEVER: u64 = u64.MAX_VALUE;

@unmanaged
export class Guarded extends Row {
  /** Requests in flight that test a trickling row, and how many there may be. */
  probes: u32;
  mostProbes: u32;
  /** When the state last changed, in whole milliseconds; in nanoseconds, as the times of requests that it is compared with are. */
  sinceNs: u64;
  /** When an ejection ends, or a test widens. */
  untilMs: u64;
  // These four are looked at as one.
  state: u8;
  failures: u8;
  /** Pools of which it refuses what others serve, or may do so; see `refusers.ts`. */
  doubts: u8;
  /** Of the failures, those of requests whose answers are no successes. */
  minorFailures: u8;
  /** Of the others, those of answers that had begun. */
  lateFailures: u8;
  successes: u8;
  /** It was ejected for answers that had begun: only those that end well speak for it until it is usable again. */
  wantsEnds: bool;
  /** Ejections without a forgiving pause between them. */
  ejections: u8;
}

/** Whether a new request may use the row. */
// @ts-ignore: decorator
@inline
export function admits(row: Guarded): bool {
  return row.state == USABLE || (row.state == TRICKLING && row.probes < row.mostProbes);
}

/** Whether the row has come up and neither answered nor failed since. */
export function isUnproven(row: Guarded): bool {
  return row.state == TRICKLING && row.untilMs != NEVER && !row.wantsEnds;
}

/** Whether the row is usable and neither failures nor doubts are held against it, so that no good answer changes it. */
// @ts-ignore: decorator
@inline
export function isSpotless(row: Guarded): bool {
  return load<u32>(changetype<usize>(row), offsetof<Guarded>('state')) == 0;
}

/** What an outcome did to a row. */
export enum Verdict {
  /** Nothing: it tells about the time before the last change of state. */
  IGNORED,
  COUNTED,
  EJECTED,
}

/** What a failed request says. */
export enum Failure {
  /** It was not answered, or with an error. */
  USUAL,
  /** Its answer would have been no success. */
  MINOR,
  /** Its answer had begun as a success. */
  LATE,
}

/** A request that started then has failed. */
export function noteFailure(row: Guarded, limit: u8, startedNs: u64, failure: Failure): Verdict {
  if (row.state == EJECTED || startedNs < row.sinceNs) return Verdict.IGNORED;
  if (failure == Failure.MINOR) row.minorFailures++;
  else if (failure == Failure.LATE) row.lateFailures++;
  if (row.state == USABLE && ++row.failures < limit) return Verdict.COUNTED;
  const now = nowMs();
  if (row.lateFailures) row.wantsEnds = true;
  if (row.state == USABLE && now * NS_PER_MS - row.sinceNs > FORGIVEN_MS * NS_PER_MS) row.ejections = 0;
  enter(row, EJECTED, now);
  row.untilMs = now + backOffMs(row.ejections);
  if (row.ejections < 255) row.ejections++;
  return Verdict.EJECTED;
}

/** How long a row is out that has been ejected so often of late. */
export function backOffMs(ejections: u8): u64 {
  return min(FIRST_BACK_OFF_MS << (<u64>min<u8>(ejections, 5)), LONGEST_BACK_OFF_MS);
}

/** The answer to a request that started then has begun. */
// @ts-ignore: decorator
@inline
export function noteBegun(row: Guarded, startedNs: u64): void {
  if (!isSpotless(row)) makeGoodByBeginning(row, startedNs);
}

export function makeGoodByBeginning(row: Guarded, startedNs: u64): void {
  if (row.state == EJECTED || startedNs < row.sinceNs) return;
  row.failures = row.lateFailures;
  row.minorFailures = 0;
  if (row.state == TRICKLING && !row.wantsEnds) passTest(row);
}

/** The answer to a request that started then has come to a good end; that it had begun has been noted. */
// @ts-ignore: decorator
@inline
export function noteEnded(row: Guarded, startedNs: u64): void {
  if (!isSpotless(row)) makeGoodByEnd(row, startedNs);
}

function makeGoodByEnd(row: Guarded, startedNs: u64): void {
  if (row.state == EJECTED || startedNs < row.sinceNs) return;
  row.failures -= row.lateFailures;
  row.lateFailures = 0;
  if (row.state == TRICKLING && row.wantsEnds) passTest(row);
}

function passTest(row: Guarded): void {
  row.mostProbes = min(row.mostProbes << 1, MOST_PROBES);
  if (++row.successes == SUCCESSES_TO_RETURN) enter(row, USABLE, nowMs());
}

/** A request that started then has been answered, which is no success: it makes good what its like failed with. */
export function noteMinorAnswer(row: Guarded, startedNs: u64): void {
  if (row.state == EJECTED || startedNs < row.sinceNs) return;
  row.failures -= row.minorFailures;
  row.minorFailures = 0;
}

/** Lets an ejected row trickle when its back-off is over, and one whose test may take long, and is under way, trickle more. */
export function passTime(row: Guarded, now: u64): void {
  if (row.state == USABLE || now < row.untilMs) return;
  if (row.state == EJECTED) enter(row, TRICKLING, now);
  else widen(row, now);
}

function widen(row: Guarded, now: u64): void {
  if (row.probes) row.mostProbes = min(row.mostProbes << 1, MOST_PROBES);
  row.untilMs = now + WIDENING_MS;
}

/** Lets a row that has come up be tried at once: one that was ejected from the start, any other as in its last test. */
export function comeUp(row: Guarded, now: u64): void {
  if (row.state == TRICKLING) return;
  const wasUsable = row.state == USABLE;
  enter(row, TRICKLING, now);
  if (!wasUsable) return;
  row.successes = SUCCESSES_TO_RETURN - 1;
  row.mostProbes = 1 << (<u32>row.successes);
  row.untilMs = now + WIDENING_MS;
}

function enter(row: Guarded, state: u8, now: u64): void {
  if (state == USABLE) row.wantsEnds = false;
  row.state = state;
  row.sinceNs = now * NS_PER_MS;
  row.untilMs = state == TRICKLING && row.wantsEnds ? now + WIDENING_MS : NEVER;
  row.failures = 0;
  row.minorFailures = 0;
  row.lateFailures = 0;
  row.successes = 0;
  row.mostProbes = 1;
}
