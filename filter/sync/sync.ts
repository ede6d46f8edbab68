// What a VM does on every tick and when the control server answers.

import * as L from '../../wire/layout';
import { nowMs, wallMs } from '../abi/clock';
import { continueStream, OK, REQUEST_STREAM, setEffectiveContext } from '../abi/host';
import { resetArena, resultAt, resultLength } from '../abi/memory';
import { Key, setScope } from '../abi/shared';
import { clear } from '../abi/text';
import { frontendAt, frontendLength, startupHoldMs, syncPeriodMs } from '../config';
import { decideHeld, refuseHeld, setFresh, setStartupHold } from '../request/decide';
import { startPeriod } from '../request/measure';
import { watchNeedHeaders } from '../request/need-headers';
import { sortNeeds } from '../request/needs';
import { noteGone } from '../request/outcome';
import { HELD, Stream, slotCount, streamInSlot } from '../request/streams';
import { classCount, classRows, classState, countsOthers, drop, snapshot, version } from '../snapshot/current';
import { tickBudget } from '../state/budget';
import { flushCounters, recordSnapshot } from '../state/counters';
import { forgetDisplaced, setDisplacedClock } from '../state/displaced';
import { Guarded, passTime } from '../state/guarded';
import { tellNextLoads } from '../state/replica-loads';
import { engines, replicas } from '../state/rows';
import { Row, Table } from '../state/table';
import {
  Answer,
  call,
  callIsDue,
  isCall,
  noteInstalled,
  noteRefused,
  noteUnchanged,
  readAnswer,
  resetCall,
} from './call';
import {
  exchangeDisplaced,
  isCrowded,
  noteDisplacedTold,
  prepareDisplacedLog,
  takeDisplaced,
} from './displaced-log';
import { heldAt, install, installInline } from './install';
import { isRoundTrip, measureNext, noteRoundTrip, resetRoundTrips } from './round-trips';
import { formatKey } from './format-key';
import { holdsLease, leaveLease } from './lease';
import { addUpInFlight, prepareInFlight, publishInFlight } from './in-flight';
import { composeReport, prepareSlots, publishUsage, reportAt, SLOTS, slot } from './usage';

/** Age from which a snapshot's word on readiness and retry ratios counts less. */
const STALE_MS: u64 = 30_000;
/** So long a VM that has refused a snapshot leaves the calls to others, whose configuration may be a newer one. */
const REFUSED_MS: u64 = 2_000;

let root: u32 = 0;
let incarnation: u64 = 0;
let nodeAt: usize = 0;
let nodeLength: usize = 0;
let startedMs: u64 = 0;
/** When the control server last confirmed the snapshot in force; the host's clock. */
let confirmedMs: u64 = 0;
/** What that was when a report was last known to have arrived. */
let toldMs: u64 = 0;
/** Version in shared data that this VM has refused. */
let refused: u64 = 0;
/** When this VM last refused what the control server sent, and 0 before. */
let refusedMs: u64 = 0;
/** A snapshot has been installed since held requests were last let go. */
let mayResume: bool = false;

let leaseKey: Key | null = null;
let headKey: Key | null = null;
let snapshotKey: Key | null = null;
const HEAD: usize = memory.data(16, 8);
const HEAD_VERSION: usize = 0;
const HEAD_CONFIRMED: usize = 8;

/**
 * Starts over for a frontend; `node` is the id of this Envoy. False when the configuration brings a snapshot that is
 * refused.
 */
export function startSync(vm: u64, node: usize, nodeIdLength: usize): bool {
  incarnation = vm;
  nodeAt = node;
  nodeLength = nodeIdLength;
  if (setScope(frontendAt, frontendLength)) {
    leaseKey = formatKey('lease');
    headKey = formatKey('head');
    snapshotKey = formatKey('snapshot');
    prepareSlots();
    prepareInFlight(SLOTS);
    prepareDisplacedLog();
    forgetDisplaced();
  }
  resetCall();
  resetRoundTrips();
  drop();
  watchNeedHeaders();
  sortNeeds();
  refused = 0;
  refusedMs = 0;
  mayResume = false;
  startPeriod();
  startedMs = nowMs();
  setStartupHold(startupHoldMs > 0);
  if (!installInline()) return false;
  // Nobody has confirmed it since it was issued.
  confirmedMs = snapshot ? load<u64>(snapshot, L.HEADER_ISSUED_AT) : 0;
  lookAtShared();
  applyFreshness(wallMs());
  return true;
}

/** The root context that ticks and calls; an older one may still live. */
export function setRoot(context: u32): void {
  root = context;
}

export function isRoot(context: u32): bool {
  return context == root;
}

export function tick(): void {
  const wall = wallMs();
  const now = nowMs();
  startPeriod();
  lookAtShared();
  resetArena();
  passTimeOf(engines, now);
  passTimeOf(replicas, now);
  applyFreshness(wall);
  if (mayResume) resumeHeld();
  if (!snapshot && now - startedMs >= startupHoldMs) refuseAllHeld();
  sweepStreams();

  if (confirmedMs != toldMs) {
    toldMs = confirmedMs;
    tellNextLoads();
  }
  publishUsage(incarnation, wall);
  if (slot >= 0) publishInFlight(slot, wall);
  if (countsOthers) addUpInFlight(slot, wall);
  setDisplacedClock(now);
  exchangeDisplaced();
  const rests = refusedMs > 0 && now - refusedMs < REFUSED_MS;
  const leaseMs = max<u64>(2_000, 4 * <u64>syncPeriodMs);
  if (!rests && holdsLease(leaseKey!, incarnation, wall, leaseMs)) {
    if (callIsDue()) callNow(wall);
    measureNext();
  }
  flushCounters();
  recordSnapshot(version, snapshot ? ageMs(wall) / 1000 : 0);
}

/** A call has been answered, or will not be. */
export function noteAnswer(token: u32, headers: u32, bodySize: u32): void {
  if (isRoundTrip(token)) return noteRoundTrip(token, headers);
  if (!isCall(token)) return;
  const wall = wallMs();
  const answer = readAnswer(headers, bodySize);
  if (answer != Answer.FAILED) noteDisplacedTold();
  if (answer == Answer.UNCHANGED) {
    confirm(wall);
  } else if (answer == Answer.DISPLACED) {
    if (!takeDisplaced(resultAt(), resultLength())) {
      noteRefused();
    } else {
      noteUnchanged();
      confirm(wall);
    }
  } else if (answer == Answer.SNAPSHOT) {
    const before = version;
    if (!install(resultAt(), resultLength())) {
      noteRefused();
      refusedMs = nowMs();
      leaveLease(leaseKey!, incarnation);
    } else {
      mayResume = true;
      if (version == before) noteUnchanged();
      else noteInstalled();
      snapshotKey!.write(heldAt(), <usize>load<u32>(heldAt(), L.HEADER_LENGTH));
      confirm(wall);
      resumeHeld();
    }
  }
  resetArena();
  if (callIsDue() && !isCrowded) callNow(wall);
}

function callNow(wall: u64): void {
  clear();
  const length = composeReport(wall, max<u64>(5_000, 4 * <u64>syncPeriodMs));
  call(nodeAt, nodeLength, reportAt(), length);
}

/** Tells the other VMs which snapshot is in force and that the control server stands by it. */
function confirm(wall: u64): void {
  if (!snapshot) return;
  confirmedMs = wall;
  applyFreshness(wall);
  store<u64>(HEAD, version, HEAD_VERSION);
  store<u64>(HEAD, wall, HEAD_CONFIRMED);
  headKey!.write(HEAD, 16);
}

/** Installs what another VM has fetched. */
function lookAtShared(): void {
  if (!headKey!.read(16)) return;
  const shared = load<u64>(resultAt(), HEAD_VERSION);
  const confirmed = load<u64>(resultAt(), HEAD_CONFIRMED);
  if (shared == version) {
    confirmedMs = confirmed;
    return;
  }
  if (shared == refused || !snapshotKey!.read(1)) return;
  if (!install(resultAt(), resultLength())) {
    refused = shared;
    return;
  }
  mayResume = true;
  confirmedMs = confirmed;
}

/** Lets readiness and budgets count as much as the age of the snapshot allows. */
function applyFreshness(wall: u64): void {
  const stale = ageMs(wall) > STALE_MS;
  setFresh(!stale);
  for (let i: u32 = 0; i < classCount; i++) {
    tickBudget(classState(i), load<f64>(classRows + <usize>i * L.CLASS_SIZE, L.CLASS_RETRY_RATIO), stale);
  }
}

function ageMs(wall: u64): u64 {
  return wall > confirmedMs ? wall - confirmedMs : 0;
}

function passTimeOf(table: Table, now: u64): void {
  for (let row = table.first; row; row = changetype<Row>(row).next) passTime(changetype<Guarded>(row), now);
}

function resumeHeld(): void {
  mayResume = false;
  for (let slot: u32 = 0; slot < slotCount(); slot++) {
    const stream = heldIn(slot);
    if (stream && decideHeld(changetype<Stream>(stream))) continueStream(REQUEST_STREAM);
  }
  setEffectiveContext(root);
}

function refuseAllHeld(): void {
  setStartupHold(false);
  for (let slot: u32 = 0; slot < slotCount(); slot++) {
    const stream = heldIn(slot);
    if (stream) refuseHeld(changetype<Stream>(stream));
  }
  setEffectiveContext(root);
}

/** Ticks in which all slots are looked through for streams whose contexts have gone without a word. */
const SWEEP_TICKS: u32 = 32;
let nextSwept: u32 = 0;

/** Every request ends with the callback for logs. Should one ever not, it does not count as in flight forever. */
function sweepStreams(): void {
  const slots = slotCount();
  for (let i = (slots + SWEEP_TICKS - 1) / SWEEP_TICKS; i > 0; i--) {
    if (nextSwept >= slots) nextSwept = 0;
    const at = streamInSlot(nextSwept);
    // What is behind a stream that goes may come in its place.
    if (at && setEffectiveContext(changetype<Stream>(at).context) != OK) noteGone(changetype<Stream>(at));
    else nextSwept++;
  }
  setEffectiveContext(root);
}

/** The held stream in a slot, its context made the effective one until the root's is again; 0 if there is none any more. */
function heldIn(slot: u32): usize {
  const at = streamInSlot(slot);
  if (!at || changetype<Stream>(at).state != HELD) return 0;
  resetArena();
  clear();
  return setEffectiveContext(changetype<Stream>(at).context) == OK ? at : 0;
}
