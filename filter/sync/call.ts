// The call to the control server: the usage report goes up, a new snapshot comes down. The server answers when it
// has something new, or with 304 after a while, and is called again at once.

import {
  SYNC_CLUSTER,
  SYNC_DISPLACED_HEADER,
  SYNC_FRONTEND_HEADER,
  SYNC_NODE_HEADER,
  SYNC_PATH,
  SYNC_SNAPSHOT_HEADER,
} from '../../wire/names';
import { nowMs } from '../abi/clock';
import {
  CALL_RESPONSE_BODY,
  CALL_RESPONSE_HEADERS,
  getBuffer,
  getHeader,
  httpCall,
  OK,
  WARN,
} from '../abi/host';
import { log, logFrom } from '../abi/log';
import { RESULT, resultAt, resultLength } from '../abi/memory';
import { addPair, addPairText, endPairs, startPairs } from '../abi/pairs';
import { begin, equals, lengthFrom, put, putBytes, putDecimal, Text } from '../abi/text';
import * as L from '../../wire/layout';
import { frontendAt, frontendLength, tokenAt, tokenLength } from '../config';
import { version } from '../snapshot/current';
import { count, SYNC_CALLS, SYNC_FAILURES } from '../state/counters';
import { cursor } from './displaced-log';

/** A call that has not been answered by then has failed; the server holds it for half a second at most. */
const TIMEOUT_MS: u32 = 5_000;
/** Time between calls while they fail grows to this. */
const LONGEST_PAUSE_MS: u64 = 1_000;
/** A server that has nothing new and does not hold the call is not called again at once. */
const SHORT_MS: u64 = 50;

const CLUSTER = new Text(SYNC_CLUSTER);
const METHOD = new Text(':method');
const POST = new Text('POST');
const PATH = new Text(':path');
const PATH_VALUE = new Text(SYNC_PATH);
const AUTHORITY = new Text(':authority');
const CONTENT_TYPE = new Text('content-type');
const BINARY = new Text('application/octet-stream');
const NODE = new Text(SYNC_NODE_HEADER);
const FRONTEND = new Text(SYNC_FRONTEND_HEADER);
const SNAPSHOT = new Text(SYNC_SNAPSHOT_HEADER);
const DISPLACED = new Text(SYNC_DISPLACED_HEADER);
const AUTHORIZATION = new Text('authorization');
const BEARER = new Text('Bearer ');
const STATUS = new Text(':status');
const S200 = new Text('200');
const S304 = new Text('304');
const FAILED = new Text('sync fails: ');
const NO_ANSWER = new Text('no answer');
const WORKS = new Text('sync works again');

const CALL_TOKEN: usize = memory.data(4, 4);
let inFlight: bool = false;
let sentMs: u64 = 0;
let nextMs: u64 = 0;
let failures: u32 = 0;

export enum Answer {
  FAILED,
  UNCHANGED,
  /** The snapshot is at `resultAt()`. */
  SNAPSHOT,
  /** Displaced keys are at `resultAt()`. */
  DISPLACED,
}

/** Forgets the call in flight, which another root context has made. */
export function resetCall(): void {
  inFlight = false;
  nextMs = 0;
}

/** Whether this is the call in flight. */
export function isCall(token: u32): bool {
  return inFlight && token == load<u32>(CALL_TOKEN);
}

/** Whether it is time for a call. */
export function callIsDue(): bool {
  const now = nowMs();
  if (inFlight && now - sentMs < TIMEOUT_MS + 1_000) return false;
  return now >= nextMs;
}

/** Sends the report; the effective context must be the root's. */
export function call(nodeAt: usize, nodeLength: usize, report: usize, reportLength: usize): void {
  startPairs();
  addPairText(METHOD, POST);
  addPairText(PATH, PATH_VALUE);
  addPairText(AUTHORITY, CLUSTER);
  addPairText(CONTENT_TYPE, BINARY);
  addPair(NODE, nodeAt, nodeLength);
  addPair(FRONTEND, frontendAt, frontendLength);
  const held = begin();
  putDecimal(version);
  addPair(SNAPSHOT, held, lengthFrom(held));
  const known = begin();
  putDecimal(cursor);
  addPair(DISPLACED, known, lengthFrom(known));
  if (tokenLength > 0) {
    const credentials = begin();
    put(BEARER);
    putBytes(tokenAt, tokenLength);
    addPair(AUTHORIZATION, credentials, lengthFrom(credentials));
  }
  const headers = endPairs();
  count(SYNC_CALLS);
  sentMs = nowMs();
  inFlight =
    httpCall(
      CLUSTER.at,
      CLUSTER.length,
      headers,
      lengthFrom(headers),
      report,
      reportLength,
      0,
      0,
      TIMEOUT_MS,
      CALL_TOKEN,
    ) == OK;
  if (!inFlight) noteFailure(NO_ANSWER.at, NO_ANSWER.length);
}

/** Reads the answer to a call; `headers` is 0 when there was none. */
export function readAnswer(headers: u32, bodySize: u32): Answer {
  inFlight = false;
  store<u64>(RESULT, 0);
  if (headers == 0) return noteFailure(NO_ANSWER.at, NO_ANSWER.length);
  getHeader(CALL_RESPONSE_HEADERS, STATUS.at, STATUS.length, RESULT, RESULT + 4);
  const status = resultAt();
  const statusLength = resultLength();
  if (equals(status, statusLength, S304.at, S304.length)) return noteUnchanged();
  if (!equals(status, statusLength, S200.at, S200.length)) return noteFailure(status, statusLength);
  store<u64>(RESULT, 0);
  getBuffer(CALL_RESPONSE_BODY, 0, bodySize, RESULT, RESULT + 4);
  if (resultLength() >= 4 && load<u32>(resultAt()) == L.DISPLACED_MAGIC) return Answer.DISPLACED;
  return Answer.SNAPSHOT;
}

/** The answer was a snapshot that could be installed. */
export function noteInstalled(): void {
  noteSuccess();
  nextMs = 0;
}

/** The answer was nothing new. */
export function noteUnchanged(): Answer {
  noteSuccess();
  nextMs = nowMs() - sentMs < SHORT_MS ? nowMs() + SHORT_MS : 0;
  return Answer.UNCHANGED;
}

const REFUSED = new Text('the snapshot was refused');

/** The answer was a snapshot, or something else, that was refused. */
export function noteRefused(): void {
  noteFailure(REFUSED.at, REFUSED.length);
}

function noteFailure(problem: usize, length: usize): Answer {
  count(SYNC_FAILURES);
  // The first of a row is enough for the log; the counter tells how long it lasts.
  if (failures == 0) {
    const start = begin();
    put(FAILED);
    putBytes(problem, length);
    logFrom(WARN, start);
  }
  failures++;
  nextMs = nowMs() + min<u64>(<u64>failures * 100, LONGEST_PAUSE_MS);
  return Answer.FAILED;
}

function noteSuccess(): void {
  if (failures > 0) log(WARN, WORKS);
  failures = 0;
}
