// What became of a request: guardrails, budget and counters learn from it, and the client is told the decision.

import * as L from '../../wire/layout';
import {
  getHeader,
  getProperty,
  OK,
  removeHeader,
  RESPONSE_HEADERS,
  RESPONSE_TRAILERS,
  WARN,
} from '../abi/host';
import { RESULT, resultAt, resultLength } from '../abi/memory';
import { logFrom } from '../abi/log';
import { begin, contains, equals, put, putBytes, Text } from '../abi/text';
import { logFields, nativeSteering } from '../config';
import { Told } from '../body/told-error';
import { hash64 } from '../hash';
import { RETRY } from '../reasons';
import { textAt, textLength } from '../snapshot/current';
import { settle } from '../state/budget';
import {
  ANSWERS_BROKEN,
  ANSWERS_STALLED,
  count,
  ENGINE_EJECTIONS,
  REPLICA_EJECTIONS,
  RETRIES_USED,
} from '../state/counters';
import {
  ENGINE_FAILURES,
  Failure,
  isSpotless,
  makeGoodByBeginning,
  noteBegun,
  noteEnded,
  noteFailure,
  noteMinorAnswer,
  REPLICA_FAILURES,
  Verdict,
} from '../state/guarded';
import { noteOutdone, noteRefusal, noteServes } from '../state/refusers';
import { FlowState, flows, pairKey, ReplicaState } from '../state/rows';
import { closeAnswer, errorOf, openAnswer, readAnswer } from './answer';
import { closeBody } from './body';
import { tellDecision, tellLetGo } from './decision';
import { LOAD_HEADER, LOAD_HEADER_BINARY, noteLoadReport } from './load-report';
import { tellLog } from './log-fields';
import { countsTokens, noteComplete, noteFirstToken } from './measure';
import {
  attempts,
  binaryLoadAt,
  binaryLoadLength,
  isReadable,
  isStream,
  loadAt,
  loadLength,
  readResponse,
  status,
} from './response';
import { ANSWERED, closeStream, LET_GO, ROUTED, SETTLED, Stream } from './streams';

const UPSTREAM_ADDRESS = new Text('upstream\0address');
const CODE_DETAILS = new Text('response\0code_details');
const ATTEMPT_COUNT = new Text('upstream\0request_attempt_count');

// Response code details of Envoy that tell about an engine.
const VIA_UPSTREAM = new Text('via_upstream');
const UPSTREAM = new Text('upstream_');
const RESPONSE_TIMEOUT = new Text('response_timeout');
// The same, for answers that had begun.
const SILENT = new Text('upstream_per_try_idle_timeout');
const RESET = new Text('upstream_reset_after_response_started');
const NO_HOST = new Text('no_healthy_upstream');
/** In the details when one of Envoy's own limits was in the way. */
const OVERFLOW = new Text('overflow');

const SWITCHING_PROTOCOLS: u32 = 101;

/** Response headers have arrived: from an engine, or made by Envoy when all attempts failed. */
// @ts-ignore: decorator
@inline
export function noteResponse(stream: Stream, ended: bool): void {
  if (stream.state != ROUTED && stream.state != LET_GO) return;
  readResponse();
  if (stream.entries == 0 && !followUnsteered(stream)) return;
  const told = attempts < 0 ? askAttempts() : attempts;
  const made = <u32>max(told, 1);
  let entry = min(made - 1, <u32>stream.entries - 1);
  let failed = false;
  if (made > 1 || status >= 500) {
    entry = followRetries(stream, entry);
    failed = status >= 500 && blame(stream, entry);
  }
  stream.served = stream.flow(entry);
  stream.state = ANSWERED;
  stream.answeredWell = status >= 200 && status < 300;
  stream.endSaysNothing = status >= 500 || status == SWITCHING_PROTOCOLS;
  stream.streamed = stream.answeredWell && isStream;
  moveTo(stream, entry);
  if (loadAt) takeLoadReport(stream, RESPONSE_HEADERS, loadAt, loadLength, false);
  if (binaryLoadAt) takeLoadReport(stream, RESPONSE_HEADERS, binaryLoadAt, binaryLoadLength, true);
  if (failed) noteFailed(stream, entry);
  else if (status >= 400) noteRejected(stream, entry);
  // Engines send the headers of a stream before they have done anything for it.
  else if (!stream.streamed) noteServed(stream, entry);
  if (made > 1 && !stream.observed) {
    stream.reason = RETRY;
    count(RETRY);
  }
  settleRetries(stream, told);
  if (stream.counted) {
    countStatus(stream);
    stream.countsTokens = stream.answeredWell && countsTokens(stream.served, stream.streamed);
    if (stream.countsTokens && isReadable && !ended) openAnswer(stream);
  }
  if (ended) noteWhole(stream);
  tellDecision(stream);
}

/** Of a request that was not steered, by us or at all: false when there is no more to learn from its response. */
function followUnsteered(stream: Stream): bool {
  if (stream.state == LET_GO) {
    dropLoadReports(RESPONSE_HEADERS);
    tellLetGo(stream);
    return false;
  }
  if (bindServer(stream)) return true;
  dropLoadReports(RESPONSE_HEADERS);
  if (stream.observed) tellDecision(stream);
  leave(stream);
  return false;
}

/** The entry that the last attempt went to, `guess` if Envoy does not say; those before it have failed. */
function followRetries(stream: Stream, guess: u32): u32 {
  const found = entryOf(stream);
  const entry = found < 0 ? guess : <u32>found;
  if (stream.onTrial) noteTrial(stream, entry);
  else for (let i: u32 = 0; i < entry; i++) noteFailed(stream, i);
  return entry;
}

/** Envoy has retried what may have been refused: that says something only if another entry then served it. */
function noteTrial(stream: Stream, entry: u32): void {
  if (entry > 0) endProbes(stream);
  if (status >= 400) return;
  for (let i: u32 = 0; i < entry; i++) {
    stream.flow(i).failures++;
    const times = noteOutdone(stream.pool.pool, stream.replica(i), stream.startedNs);
    if (times > 0) count(REPLICA_EJECTIONS);
    if (times == 1) logRefuser(stream, i);
  }
}

const REPLICA = new Text('replica ');
const OF_ENGINE = new Text(' of engine ');
const REFUSES = new Text(
  ' refuses (401, 403 or 404) what others of a pool serve; it gets no more of its requests until it serves one',
);

function logRefuser(stream: Stream, entry: u32): void {
  const start = begin();
  put(REPLICA);
  const row = stream.replica(entry).snapshotRow;
  if (row) putBytes(textAt(row + L.REPLICA_ADDRESS), textLength(row + L.REPLICA_ADDRESS));
  put(OF_ENGINE);
  const engine = stream.flow(entry).engine;
  putBytes(engine.idAt, <usize>engine.idLength);
  put(REFUSES);
  logFrom(WARN, start);
}

/** The request is on its way to its first entry. */
export function noteRouted(stream: Stream): void {
  replicaOf(stream).beginAttempt();
  stream.flow0.engine.inFlight++;
}

/** The entry that has the request now is another than the first. */
function moveTo(stream: Stream, entry: u32): void {
  if (entry == 0) return;
  replicaOf(stream).endAttempt();
  stream.entry = <u8>entry;
  replicaOf(stream).beginAttempt();
}

/** Trailers have arrived; Envoy hands them over before the end of the body. */
export function noteTrailers(stream: Stream): void {
  if (stream.state != ANSWERED) return dropLoadReports(RESPONSE_TRAILERS);
  takeLoadTrailer(stream, LOAD_HEADER, false);
  takeLoadTrailer(stream, LOAD_HEADER_BINARY, true);
}

function takeLoadTrailer(stream: Stream, name: Text, binary: bool): void {
  store<u64>(RESULT, 0);
  if (getHeader(RESPONSE_TRAILERS, name.at, name.length, RESULT, RESULT + 4) != OK) return;
  takeLoadReport(stream, RESPONSE_TRAILERS, resultAt(), resultLength(), binary);
}

/** Reads a load report of the replica that answers, and keeps it from the client. */
function takeLoadReport(stream: Stream, map: i32, at: usize, length: usize, binary: bool): void {
  noteLoadReport(replicaOf(stream), at, length, binary);
  const name = binary ? LOAD_HEADER_BINARY : LOAD_HEADER;
  removeHeader(map, name.at, name.length);
}

/** Of a replica that is not known, they are kept from the client all the same. */
function dropLoadReports(map: i32): void {
  removeHeader(map, LOAD_HEADER.at, LOAD_HEADER.length);
  removeHeader(map, LOAD_HEADER_BINARY.at, LOAD_HEADER_BINARY.length);
}

// @ts-ignore: decorator
@inline
function replicaOf(stream: Stream): ReplicaState {
  return stream.replica(stream.entry);
}

/** A piece of the response body has arrived, or its end. */
// @ts-ignore: decorator
@inline
export function noteBody(stream: Stream, size: u32, ended: bool): void {
  if (stream.state != ANSWERED) return;
  if (size) {
    const isToken = !stream.answer || readAnswer(stream, size);
    if (isToken && !stream.firstByteSeen) {
      stream.firstByteSeen = true;
      if (stream.streamed) {
        noteServed(stream, stream.entry);
        noteFirstToken(stream);
      }
    }
  }
  if (ended) noteWhole(stream);
}

/**
 * The answer has come to its end, which speaks for the engine also when there was no token in it. An error in its place
 * says nothing, as it may be the request's, unless it is one that engines blame themselves for.
 */
function noteWhole(stream: Stream): void {
  if (stream.complete) return;
  const told = stream.streamed ? errorOf(stream) : Told.NO_ERROR;
  if (told == Told.FAILURE) {
    count(ANSWERS_BROKEN);
    stream.served.broken++;
    noteCutShort(stream);
  } else if (told == Told.NO_ERROR) {
    if (stream.streamed && !stream.hasServed) noteServed(stream, stream.entry);
    if (stream.hasServed) noteEndedWell(stream);
  }
  noteComplete(stream);
}

/** The request is over. Its context must be the effective one, so that Envoy can be asked about attempts. */
export function noteEnd(stream: Stream): void {
  if (stream.state == ROUTED) noteUnanswered(stream);
  else if (stream.state == ANSWERED && !stream.complete) noteBroken(stream);
  if (logFields) tellLog(stream);
  finish(stream);
  closeBody(stream);
  closeStream(stream);
}

function noteUnanswered(stream: Stream): void {
  if (stream.entries == 0) return leave(stream);
  const made = askAttempts();
  // The last attempt was cut short from outside; the ones before it failed.
  if (!stream.onTrial) for (let i = 0; i < min(made - 1, <i32>stream.entries - 1); i++) noteFailed(stream, i);
  finishUnanswered(stream, made);
}

/** The answer did not come to its end: because of the engine, or because of the client. */
function noteBroken(stream: Stream): void {
  if (stream.endSaysNothing || !property(CODE_DETAILS)) return;
  const at = resultAt();
  const length = resultLength();
  if (equals(at, length, SILENT.at, SILENT.length)) {
    count(ANSWERS_STALLED);
    if (stream.counted) stream.served.stalled++;
  } else if (length >= RESET.length && memory.compare(at, RESET.at, RESET.length) == 0) {
    count(ANSWERS_BROKEN);
    if (stream.counted) stream.served.broken++;
  } else {
    return;
  }
  noteCutShort(stream);
}

/** The engine has failed after its headers. */
function noteCutShort(stream: Stream): void {
  noteFailed(stream, stream.entry, stream.hasServed);
}

/** The context has gone without a word; whatever has not been accounted for is now. */
export function noteGone(stream: Stream): void {
  if (stream.state == ROUTED && stream.entries == 0) leave(stream);
  if (stream.state == ROUTED) finishUnanswered(stream, -1);
  finish(stream);
  closeBody(stream);
  closeStream(stream);
}

/** Where Envoy picks the host: binds the stream to the replica that has answered; false when there is none of the pool. */
function bindServer(stream: Stream): bool {
  if (!property(UPSTREAM_ADDRESS)) {
    if (stream.counted) stream.pool.unavailable++;
    return false;
  }
  const seed = hash64(resultAt(), resultLength(), 0);
  for (let at = flows.first; at; at = changetype<FlowState>(at).next) {
    const flow = changetype<FlowState>(at);
    if (flow.pool != stream.pool.home) continue;
    const key = pairKey(flow.engine.key, seed);
    for (let i: usize = 0; i < <usize>flow.engine.replicaCount; i++) {
      const replica = changetype<ReplicaState>(<usize>load<u32>(flow.engine.replicas + (i << 2)));
      if (replica.key != key) continue;
      stream.append(flow, replica);
      noteRouted(stream);
      if (stream.counted) flow.planned++;
      return true;
    }
  }
  return false;
}

/** Lets go of a stream that no replica is known to have answered. */
function leave(stream: Stream): void {
  stream.state = SETTLED;
  stream.pool.pins--;
  forgetDecided(stream);
}

function forgetDecided(stream: Stream): void {
  if (!changetype<usize>(stream.decided)) return;
  stream.decided.pins--;
  stream.decided = changetype<FlowState>(0);
}

function finishUnanswered(stream: Stream, made: i32): void {
  settleRetries(stream, made);
  if (stream.counted) stream.flow0.noResponse++;
  stream.state = ANSWERED;
}

function finish(stream: Stream): void {
  if (stream.state != ANSWERED) return;
  stream.state = SETTLED;
  endProbes(stream);
  if (stream.answer) closeAnswer(stream);
  if (stream.counted) stream.flow0.ended++;
  replicaOf(stream).endAttempt();
  stream.keepRetries(0);
  stream.flow0.engine.inFlight--;
  stream.flow0.pins--;
  stream.replica0.pins--;
  stream.pool.pins--;
  forgetDecided(stream);
}

/** Ends the reservation for retries after `made` attempts; all of it is taken as used if they are unknown (-1). */
function settleRetries(stream: Stream, made: i32): void {
  const used = max(made - 1, 0);
  settle(stream.pool, stream.granted, made < 0 ? stream.granted : used);
  if (used) count(RETRIES_USED, used);
  if (stream.counted) stream.flow0.retries += used;
}

/** The answer has begun, which passes no test that wants its end. */
// @ts-ignore: decorator
@inline
function endShortProbes(stream: Stream): void {
  if (stream.probesEngine && !stream.flow0.engine.wantsEnds) endEngineProbe(stream);
  if (stream.probesReplica && !stream.replica0.wantsEnds) endReplicaProbe(stream);
}

/** The first entry has shown whether it serves, or never will. */
function endProbes(stream: Stream): void {
  if (stream.probesEngine) endEngineProbe(stream);
  if (stream.probesReplica) endReplicaProbe(stream);
}

function endEngineProbe(stream: Stream): void {
  stream.flow0.engine.probes--;
  stream.probesEngine = false;
}

function endReplicaProbe(stream: Stream): void {
  stream.replica0.probes--;
  stream.probesReplica = false;
}

/** Of what needs no model a WebSocket alone says that an engine serves: it may list its models, and say that it is well, when it cannot. */
// @ts-ignore: decorator
@inline
function noteServed(stream: Stream, entry: u32): void {
  if (entry == 0) endShortProbes(stream);
  if (!stream.counted && (stream.streamed || status != SWITCHING_PROTOCOLS)) return noteMinor(stream, entry);
  stream.hasServed = true;
  const replica = stream.replica(entry);
  if (!isSpotless(replica)) noteServedBy(stream, replica);
  noteBegun(stream.flow(entry).engine, stream.startedNs);
}

/** By a replica that has failed or refused lately. */
function noteServedBy(stream: Stream, replica: ReplicaState): void {
  makeGoodByBeginning(replica, stream.startedNs);
  if (replica.doubts && stream.answeredWell) noteServes(stream.pool.pool, replica);
}

/** A 4xx is an answer: nobody but the client is to blame, as far as an engine can tell. */
function noteRejected(stream: Stream, entry: u32): void {
  if (status >= 500 || !isFromEngine()) return;
  noteServed(stream, entry);
  if (status != 401 && status != 403 && status != 404) return;
  if (stream.counted && !stream.observed && !nativeSteering) noteRefusal(stream.pool.pool, stream.replica(entry));
}

// @ts-ignore: decorator
@inline
function noteEndedWell(stream: Stream): void {
  noteEnded(replicaOf(stream), stream.startedNs);
  noteEnded(stream.flow(stream.entry).engine, stream.startedNs);
}

function noteMinor(stream: Stream, entry: u32): void {
  noteMinorAnswer(stream.replica(entry), stream.startedNs);
  noteMinorAnswer(stream.flow(entry).engine, stream.startedNs);
}

/** `late`: after its answer has spoken for the replica. */
function noteFailed(stream: Stream, entry: u32, late: bool = false): void {
  if (entry == 0) endProbes(stream);
  const started = stream.startedNs;
  const flow = stream.flow(entry);
  if (stream.counted) flow.failures++;
  const failure = !stream.counted ? Failure.MINOR : late ? Failure.LATE : Failure.USUAL;
  const verdict = noteFailure(stream.replica(entry), REPLICA_FAILURES, started, failure);
  // What a replica that is already ejected goes on losing says nothing about the others.
  if (verdict == Verdict.IGNORED) return;
  if (verdict == Verdict.EJECTED) count(REPLICA_EJECTIONS);
  if (noteFailure(flow.engine, ENGINE_FAILURES, started, failure) == Verdict.EJECTED) count(ENGINE_EJECTIONS);
}

/** Whether an error is the engine's: its own answer, or Envoy's because it could not be reached in time. */
function blame(stream: Stream, entry: u32): bool {
  if (!property(CODE_DETAILS)) return true;
  const at = resultAt();
  const length = resultLength();
  if (equals(at, length, NO_HOST.at, NO_HOST.length)) {
    // Envoy knows none of the listed endpoints (yet, or any more).
    for (let i = entry + 1; i < <u32>stream.entries; i++) noteFailed(stream, i);
    return true;
  }
  if (length > UPSTREAM.length && memory.compare(at, UPSTREAM.at, UPSTREAM.length) == 0) {
    return !contains(at, length, OVERFLOW);
  }
  return (
    equals(at, length, VIA_UPSTREAM.at, VIA_UPSTREAM.length) ||
    equals(at, length, RESPONSE_TIMEOUT.at, RESPONSE_TIMEOUT.length)
  );
}

/** Whether the answer is an engine's, and not made by Envoy or another filter. */
function isFromEngine(): bool {
  return property(CODE_DETAILS) && equals(resultAt(), resultLength(), VIA_UPSTREAM.at, VIA_UPSTREAM.length);
}

/** The entry that the last attempt went to, by its address, or -1: Envoy skips entries that it does not know. */
function entryOf(stream: Stream): i32 {
  if (!property(UPSTREAM_ADDRESS)) return -1;
  const seed = hash64(resultAt(), resultLength(), 0);
  for (let i: u32 = 0; i < <u32>stream.entries; i++) {
    if (stream.replica(i).key == pairKey(stream.flow(i).engine.key, seed)) return <i32>i;
  }
  return -1;
}

/** Attempts made so far as Envoy tells them, -1 if it does not. */
function askAttempts(): i32 {
  return property(ATTEMPT_COUNT) && resultLength() == 8 ? <i32>load<u64>(resultAt()) : -1;
}

function property(path: Text): bool {
  store<u64>(RESULT, 0);
  return getProperty(path.at, path.length, RESULT, RESULT + 4) == OK && resultLength() > 0;
}

function countStatus(stream: Stream): void {
  const flow = stream.served;
  // Redirects are answers, too.
  if (status < 400) flow.status2xx++;
  else if (status < 500) flow.status4xx++;
  else flow.status5xx++;
}
