// A request, from its headers to the headers that steer it or to an answer of our own.

import * as L from '../../wire/layout';
import { READY_PATH } from '../../wire/names';
import { nowNs } from '../abi/clock';
import { CONTINUE, HOLD, STOP } from '../abi/host';
import { Text } from '../abi/text';
import { Scan } from '../body/scan';
import { nativeSteering, readBodies } from '../config';
import { hash64, shedPoint } from '../hash';
import { modelCount, models, planId, poolRows, poolStates, saltHash, snapshot } from '../snapshot/current';
import { chargeClientRetry, earn, reserve } from '../state/budget';
import { CLIENT_RETRIES, count, RETRIES_DENIED, RETRIES_GRANTED } from '../state/counters';
import { PoolState } from '../state/rows';
import {
  bodyless,
  clientRetry,
  encodingAt,
  encodingLength,
  keyAt,
  keyLength,
  modelAt,
  modelLength,
  pathAt,
  pathLength,
  readAttributes,
  tenantAt,
  tenantLength,
  typeAt,
  typeLength,
} from './attributes';
import { closeBody, completeBody, judgeBody, openBody, readBody, takeFromBody, Unread } from './body';
import { findModel, onlyModel, poolFor } from './eligibility';
import { carriedNeeds, needsBody } from './needs';
import { notePrompt, noteRouted } from './outcome';
import { pick, randomKey } from './pick';
import {
  BODY_TOO_LARGE,
  INVALID_JSON,
  MODEL_MISSING,
  MODEL_NOT_FOUND,
  NATIVE,
  NEED_UNMET,
  NO_KEY,
  PASSED,
  PLANNED,
  SHED,
  STARTING,
  UNAVAILABLE,
  UNSUPPORTED_ENCODING,
  UNSUPPORTED_TYPE,
} from './reasons';
import { ANY, HEALTHY, READY } from './replicas';
import {
  answerInvalidJson,
  answerModelMissing,
  answerModelNotFound,
  answerNeedUnmet,
  answerReadyCheck,
  answerShed,
  answerStarting,
  answerTooLarge,
  answerUnavailable,
  answerUnsupportedEncoding,
  answerUnsupportedType,
} from './replies';
import { steer, steerNatively } from './steer';
import { HELD, openStream, READING, ROUTED, SETTLED, Stream } from './streams';

const READY_CHECK = new Text(READY_PATH);

let startupHold: bool = true;
/** How far health may be ignored when nobody looks healthy: not beyond readiness while its news are fresh. */
let worst: i32 = ANY;

/** Whether requests may still wait for the first snapshot. */
export function setStartupHold(hold: bool): void {
  startupHold = hold;
}

/** Whether the control server has been heard of lately. */
export function setFresh(fresh: bool): void {
  worst = fresh ? READY : ANY;
}

/** Decides on a new request; `ended` when it has no body. */
export function decideNew(context: u32, ended: bool): i32 {
  readAttributes();
  if (isReadyCheck()) {
    answerReadyCheck(snapshot != 0);
    return STOP;
  }
  const stream = openStream(context);
  stream.startedNs = nowNs();
  stream.bodyless = ended || bodyless;
  if (!snapshot && !startupHold) return refuseStarting(stream);
  if (!stream.bodyless && judgeBody() == Unread.READ) {
    openBody(stream);
    stream.state = READING;
    return STOP;
  }
  if (snapshot) return decide(stream);
  stream.state = HELD;
  return HOLD;
}

/** More of a body that is being read has arrived, `size` bytes by now. */
export function decideOnBody(stream: Stream, size: u32, ended: bool): i32 {
  const fits = readBody(stream, size);
  if (fits && !ended) return STOP;
  if (!fits) closeBody(stream);
  return finishReading(stream);
}

/** The body that is being read has ended. */
export function finishReading(stream: Stream): i32 {
  if (!snapshot) {
    if (!startupHold) return refuseStarting(stream);
    stream.state = HELD;
    return STOP;
  }
  readAttributes();
  return decide(stream);
}

/** Decides on a request that was held; its context must be the effective one. True when it may go on. */
export function decideHeld(stream: Stream): bool {
  readAttributes();
  return decide(stream) == CONTINUE;
}

/** Ends the wait of a held request; its context must be the effective one. */
export function refuseHeld(stream: Stream): void {
  refuseStarting(stream);
}

function refuseStarting(stream: Stream): i32 {
  closeBody(stream);
  answerStarting();
  return refused(stream, STARTING);
}

/** An answer of our own has been given. */
function refused(stream: Stream, reason: u8): i32 {
  stream.state = SETTLED;
  count(reason);
  return STOP;
}

function isReadyCheck(): bool {
  if (pathLength < READY_CHECK.length || memory.compare(pathAt, READY_CHECK.at, READY_CHECK.length) != 0)
    return false;
  return pathLength == READY_CHECK.length || load<u8>(pathAt + READY_CHECK.length) == 0x3f;
}

/** Decides by the attributes read last, and by the body if it was read. */
function decide(stream: Stream): i32 {
  stream.planId = planId;
  takeFromBody(stream);
  const keyed = keyLength > 0;
  const hash = keyed ? hash64(keyAt, keyLength, hash64(tenantAt, tenantLength, saltHash)) : randomKey();
  const outcome = stream.bodyless ? pass(stream, hash) : serveModel(stream, hash, keyed);
  closeBody(stream);
  return outcome;
}

function serveModel(stream: Stream, hash: u64, keyed: bool): i32 {
  const body = completeBody(stream);
  let model: usize;
  if (modelLength > 0) {
    model = findModel(modelAt, modelLength);
    if (!model) {
      answerModelNotFound(modelAt, modelLength);
      return refused(stream, MODEL_NOT_FOUND);
    }
  } else {
    if (readBodies && !body) return refuseBody(stream);
    model = onlyModel();
    if (!model) {
      answerModelMissing();
      return refused(stream, MODEL_MISSING);
    }
  }
  if (!body && needsBody(model)) return refuseBody(stream);
  const carried = carriedNeeds(body);
  const pool = poolFor(model, carried);
  return pool < 0 ? refuseNeeds(stream, model, carried) : serve(stream, <u32>pool, hash, keyed);
}

/** Says why a body that had to be read was not. */
function refuseBody(stream: Stream): i32 {
  if (stream.scan) {
    answerInvalidJson(changetype<Scan>(stream.scan).tooDeep);
    return refused(stream, INVALID_JSON);
  }
  switch (judgeBody()) {
    case Unread.TYPE:
      answerUnsupportedType(typeAt, typeLength);
      return refused(stream, UNSUPPORTED_TYPE);
    case Unread.ENCODING:
      answerUnsupportedEncoding(encodingAt, encodingLength);
      return refused(stream, UNSUPPORTED_ENCODING);
    default:
      answerTooLarge();
      return refused(stream, BODY_TOO_LARGE);
  }
}

function refuseNeeds(stream: Stream, model: usize, carried: u64): i32 {
  answerNeedUnmet(model, carried);
  return refused(stream, NEED_UNMET);
}

/** A request for a model. */
function serve(stream: Stream, pool: u32, hash: u64, keyed: bool): i32 {
  const state = poolState(pool);
  stream.pool = state;
  stream.counted = true;
  // A client that has already come back is told to give up when there is no budget for more.
  let again = true;
  if (clientRetry) {
    count(CLIENT_RETRIES);
    state.clientRetries++;
    again = chargeClientRetry(state);
  } else {
    state.offered++;
    notePrompt(stream);
    earn(state);
  }
  if (!keyed) state.withoutKey++;
  const shedFraction = load<f64>(poolRows + <usize>pool * L.POOL_SIZE, L.POOL_SHED_FRACTION);
  if (<f64>shedPoint(hash) < shedFraction * 4294967296.0) {
    state.shed++;
    answerShed(again);
    return refused(stream, SHED);
  }
  if (nativeSteering) return routeNatively(stream, pool, hash, keyed);
  if (!pick(stream, pool, hash, keyed, worst)) {
    state.unavailable++;
    answerUnavailable(again);
    return refused(stream, UNAVAILABLE);
  }
  return route(stream, pool);
}

/**
 * A request that needs no model, such as a list of models or a health check: goes to its key's engine in the first
 * pool that meets its needs and has a usable one, beginning with the model that it names, if that exists.
 */
function pass(stream: Stream, hash: u64): i32 {
  const carried = carriedNeeds(0);
  const named = modelLength > 0 ? findModel(modelAt, modelLength) : 0;
  const first = named ? <u32>((named - models) / <usize>L.MODEL_SIZE) : 0;
  let met = false;
  for (let level = HEALTHY; level <= worst; level++) {
    for (let i: u32 = 0; i < modelCount; i++) {
      const model = models + <usize>((first + i) % modelCount) * L.MODEL_SIZE;
      const pool = poolFor(model, carried);
      if (pool < 0) continue;
      met = true;
      if (nativeSteering) return routeNatively(stream, <u32>pool, hash, keyLength > 0);
      if (!pick(stream, <u32>pool, hash, true, level)) continue;
      stream.pool = poolState(<u32>pool);
      stream.reason = PASSED;
      return route(stream, <u32>pool);
    }
  }
  if (!met && modelCount > 0) return refuseNeeds(stream, named ? named : models, carried);
  answerUnavailable(true);
  return refused(stream, UNAVAILABLE);
}

function route(stream: Stream, pool: u32): i32 {
  const state = stream.pool;
  const wanted = <i32>stream.entries - 1;
  const granted = reserve(state, wanted);
  stream.keepRetries(granted);
  stream.granted = <u8>granted;
  if (granted) count(RETRIES_GRANTED, granted);
  else if (wanted) count(RETRIES_DENIED);

  count(stream.reason);
  stream.state = ROUTED;
  stream.served = stream.flow0;
  noteRouted(stream);
  state.pins++;
  if (stream.counted) {
    if (stream.reason == PLANNED || stream.reason == NO_KEY) stream.flow0.planned++;
    else stream.flow0.diverted++;
  }
  steer(stream, pool);
  return CONTINUE;
}

/** Envoy picks the host: who it was is learnt with the response. */
function routeNatively(stream: Stream, pool: u32, hash: u64, keyed: bool): i32 {
  stream.pool = poolState(pool);
  stream.pool.pins++;
  stream.reason = NATIVE;
  stream.state = ROUTED;
  count(NATIVE);
  steerNatively(pool, hash, keyed);
  return CONTINUE;
}

// @ts-ignore: decorator
@inline
function poolState(pool: u32): PoolState {
  return changetype<PoolState>(<usize>load<u32>(poolStates + ((<usize>pool) << 2)));
}
