// A request, from its headers to the headers that steer it or to an answer of our own.

import * as L from '../../wire/layout';
import { READY_PATH } from '../../wire/names';
import { nowNs } from '../abi/clock';
import { CONTINUE, HOLD, STOP } from '../abi/host';
import { sameName, Text } from '../abi/text';
import { Found } from '../body/found';
import { Scan } from '../body/scan';
import { nativeSteering, observe, readBodies } from '../config';
import { hash64, shedPoint, steerPoint } from '../hash';
import {
  BODY_TOO_LARGE,
  INVALID_FORM,
  INVALID_JSON,
  MODEL_MISSING,
  MODEL_NOT_FOUND,
  NATIVE,
  NEED_UNMET,
  NO_KEY,
  OVERLOADED,
  PASSED,
  PLACED,
  PLANNED,
  SHED,
  STARTING,
  UNAVAILABLE,
  UNSUPPORTED_ENCODING,
  UNSUPPORTED_TYPE,
} from '../reasons';
import {
  classRows,
  classState,
  modelCount,
  models,
  nearest,
  nearestCount,
  planId,
  poolRows,
  saltHash,
  snapshot,
  steeredBelow,
} from '../snapshot/current';
import { chargeClientRetry, earn, reserve } from '../state/budget';
import { CLIENT_RETRIES, count, RETRIES_DENIED, RETRIES_GRANTED } from '../state/counters';
import { hideRefusers, refusers, showRefusers } from '../state/refusers';
import { PoolState } from '../state/rows';
import { noteTurn } from '../state/turns';
import { modelOfPath } from './asked-model';
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
import {
  closeBody,
  completeBody,
  isForm,
  isLongForm,
  judgeBody,
  openBody,
  readBody,
  recallHeaders,
  takeFromBody,
  Unread,
} from './body';
import { findModel, onlyModel, poolFor } from './eligibility';
import { nameRoute } from './limits';
import { carriedNeeds, needsBody, priorityFor } from './needs';
import { notePrompt } from './measure';
import { noteRouted } from './outcome';
import { atLimit, pick, pickAt, randomKey, spreadKey } from './pick';
import { place, placeAgain, segment } from './place';
import { ANY, HEALTHY, READY } from './replicas';
import {
  answerFormTooLarge,
  answerInvalidForm,
  answerInvalidJson,
  answerModelMissing,
  answerModelNotFound,
  answerNeedUnmet,
  answerOverloaded,
  answerReadyCheck,
  answerShed,
  answerStarting,
  answerTooLarge,
  answerUnavailable,
  answerUnsupportedEncoding,
  answerUnsupportedType,
} from './replies';
import { forbidRetries, letGo, steer, steerNatively } from './steer';
import { asksForTokens } from './token-counts';
import { HELD, LET_GO, openStream, READING, ROUTED, SETTLED, Stream } from './streams';

const READY_CHECK = new Text(READY_PATH);
/** As many points as there are. */
const EVERY_POINT: u64 = 1 << 32;

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
// @ts-ignore: decorator
@inline
export function decideNew(context: u32, ended: bool): i32 {
  readAttributes();
  if (isReadyCheck()) return answerCheck();
  const stream = openStream(context);
  stream.startedNs = nowNs();
  stream.bodyless = ended || bodyless;
  if (!snapshot && (observe || !startupHold)) return endWithoutSnapshot(stream);
  if (!stream.bodyless && judgeBody() == Unread.READ) {
    openBody(stream);
    stream.state = READING;
    return STOP;
  }
  if (snapshot) return decide(stream);
  stream.state = HELD;
  return HOLD;
}

function answerCheck(): i32 {
  answerReadyCheck(snapshot != 0);
  return STOP;
}

/** Ends a request that does not wait for the first snapshot. */
function endWithoutSnapshot(stream: Stream): i32 {
  return observe ? letPass(stream) : refuseStarting(stream);
}

/** More of a body that is being read has arrived, `size` bytes by now. */
export function decideOnBody(stream: Stream, size: u32, ended: bool): i32 {
  stream.bodySize = size;
  // A body of which the end alone has come is none: in chunks, and over HTTP/2, headers do not always tell.
  if (size == 0 && ended) stream.bodyless = true;
  return readBody(stream, size, ended) && !ended ? STOP : finishReading(stream);
}

/** The body that is being read ends with trailers. */
export function decideOnTrailers(stream: Stream): i32 {
  return decideOnBody(stream, stream.bodySize, true);
}

/** Of the body that is being read, no more is to come, or to be read. */
function finishReading(stream: Stream): i32 {
  if (!snapshot) {
    if (observe) {
      recallHeaders(stream);
      return letPass(stream);
    }
    if (!startupHold) return refuseStarting(stream);
    stream.state = HELD;
    return STOP;
  }
  recallHeaders(stream);
  return decide(stream);
}

/** Decides on a request that was held; its context must be the effective one. True when it may go on. */
export function decideHeld(stream: Stream): bool {
  recallHeaders(stream);
  return decide(stream) == CONTINUE;
}

/** Ends the wait of a held request; its context must be the effective one. */
export function refuseHeld(stream: Stream): void {
  refuseStarting(stream);
}

function refuseStarting(stream: Stream): i32 {
  closeBody(stream);
  count(STARTING);
  answerStarting();
  return settle(stream, STOP);
}

/** Of a request about which nothing can be said, where nothing is steered. */
function letPass(stream: Stream): i32 {
  forbidRetries();
  return settle(stream, CONTINUE);
}

/** Nothing more to do for the request. */
function settle(stream: Stream, action: i32): i32 {
  stream.state = SETTLED;
  return action;
}

/**
 * Counts a refusal. True when it is to be answered; not so where nothing is steered and the route leads somewhere, to
 * the pool (-1 if there is none) or by itself.
 */
function refuses(stream: Stream, reason: u8, pool: i32 = -1): bool {
  count(reason);
  stream.reason = reason;
  stream.state = SETTLED;
  if (!stream.observed || !letGo(pool)) return true;
  nameRoute(stream);
  stream.state = LET_GO;
  return false;
}

/** What the callback of a refused request answers. */
// @ts-ignore: decorator
@inline
function afterRefusal(stream: Stream): i32 {
  return stream.state == LET_GO ? CONTINUE : STOP;
}

function isReadyCheck(): bool {
  if (pathLength < READY_CHECK.length || !sameName(pathAt, READY_CHECK.at, READY_CHECK.length)) return false;
  return pathLength == READY_CHECK.length || load<u8>(pathAt + READY_CHECK.length) == 0x3f;
}

/** Decides by the attributes read last, and by the body if it was read. */
function decide(stream: Stream): i32 {
  stream.planId = planId;
  if (stream.scan) takeFromBody(stream);
  const keyed = keyLength > 0;
  const hash = keyed ? hash64(keyAt, keyLength, hash64(tenantAt, tenantLength, saltHash)) : randomKey();
  stream.observed = observe || (steeredBelow < EVERY_POINT && <u64>steerPoint(hash) >= steeredBelow);
  const outcome = stream.bodyless ? pass(stream, hash, keyed) : serveModel(stream, hash, keyed);
  closeBody(stream);
  return outcome;
}

// @ts-ignore: decorator
@inline
function serveModel(stream: Stream, hash: u64, keyed: bool): i32 {
  const body = completeBody(stream);
  let model: usize;
  if (modelLength > 0) {
    model = findModel(modelAt, modelLength);
    if (!model) return refuseModel(stream, MODEL_NOT_FOUND);
  } else {
    model = onlyModel();
    if (readBodies && !body && !(model && isForm())) return refuseBody(stream);
    if (!model) return refuseModel(stream, MODEL_MISSING);
  }
  if (!body && needsBody(model)) return refuseBody(stream);
  const carried = carriedNeeds(body);
  const pool = poolFor(model, carried);
  if (pool < 0) return refuseNeeds(stream, model, carried);
  if (!refusers) return serveFrom(stream, <u32>pool, carried, hash, keyed);
  hideRefusers(load<u64>(poolRows + <usize>pool * L.POOL_SIZE, L.POOL_HASH), stream.startedNs);
  const outcome = serveFrom(stream, <u32>pool, carried, hash, keyed);
  showRefusers();
  return outcome;
}

function serveFrom(stream: Stream, pool: u32, carried: u64, hash: u64, keyed: bool): i32 {
  return asksForTokens()
    ? serveTokens(stream, pool, hash, keyed)
    : serve(stream, pool, classOf(pool, priorityFor(carried)), hash, keyed);
}

/** A request for tokens alone is no demand and never shed: it goes where its conversation is. */
function serveTokens(stream: Stream, pool: u32, hash: u64, keyed: bool): i32 {
  const point = placeAgain(stream, pool, hash);
  if (nativeSteering || pick(stream, pool, segment, point, keyed, worst))
    return passTo(stream, pool, hash, keyed);
  if (refuses(stream, atLimit ? OVERLOADED : UNAVAILABLE, pool)) {
    if (atLimit) answerOverloaded(true);
    else answerUnavailable(true);
  }
  return afterRefusal(stream);
}

function refuseModel(stream: Stream, reason: u8): i32 {
  if (!refuses(stream, reason)) return CONTINUE;
  if (reason == MODEL_NOT_FOUND) answerModelNotFound(modelAt, modelLength);
  else answerModelMissing();
  return STOP;
}

/** Says why a body that had to be read was not. */
function refuseBody(stream: Stream): i32 {
  if (stream.scan) return changetype<Found>(stream.scan).isForm ? refuseForm(stream) : refuseJson(stream);
  switch (judgeBody()) {
    case Unread.TYPE:
      if (refuses(stream, UNSUPPORTED_TYPE)) answerUnsupportedType(typeAt, typeLength);
      break;
    case Unread.ENCODING:
      if (refuses(stream, UNSUPPORTED_ENCODING)) answerUnsupportedEncoding(encodingAt, encodingLength);
      break;
    case Unread.NO_BOUNDARY:
      if (refuses(stream, INVALID_FORM)) answerInvalidForm();
      break;
    default:
      if (refuses(stream, BODY_TOO_LARGE)) answerTooLarge();
  }
  return afterRefusal(stream);
}

function refuseJson(stream: Stream): i32 {
  const tooDeep = changetype<Scan>(stream.scan).tooDeep;
  if (refuses(stream, INVALID_JSON)) answerInvalidJson(tooDeep);
  return afterRefusal(stream);
}

function refuseForm(stream: Stream): i32 {
  if (isLongForm(stream)) {
    if (refuses(stream, BODY_TOO_LARGE)) answerFormTooLarge();
  } else if (refuses(stream, INVALID_FORM)) {
    answerInvalidForm();
  }
  return afterRefusal(stream);
}

function refuseNeeds(stream: Stream, model: usize, carried: u64): i32 {
  if (refuses(stream, NEED_UNMET)) answerNeedUnmet(model, carried);
  return afterRefusal(stream);
}

/** Number of the class of a pool for a priority; of an unknown one, that of priority 0. */
function classOf(pool: u32, priority: i32): u32 {
  const row = poolRows + <usize>pool * L.POOL_SIZE;
  const first = load<u32>(row, L.POOL_CLASSES_START);
  if (priority == 0) return first;
  for (let i: u32 = first + 1; i < first + load<u32>(row, L.POOL_CLASSES_COUNT); i++) {
    if (load<i32>(classRows + <usize>i * L.CLASS_SIZE, L.CLASS_PRIORITY) == priority) return i;
  }
  return first;
}

/** A request for a model. */
// @ts-ignore: decorator
@inline
function serve(stream: Stream, pool: u32, number: u32, key: u64, keyed: bool): i32 {
  const state = classState(number);
  const hash = keyed ? key : spreadKey(state, key);
  stream.pool = state;
  stream.counted = true;
  // A client that has already come back is told to give up when there is no budget for more.
  let again = true;
  if (clientRetry) {
    again = noteClientRetry(stream, state);
  } else {
    state.offered++;
    if (!stream.observed) earn(state);
  }
  notePrompt(stream, !clientRetry);
  if (!keyed) state.withoutKey++;
  else if (!clientRetry) noteTurn(state.pool, hash, stream.startedNs);
  const shedFraction = load<f64>(classRows + <usize>number * L.CLASS_SIZE, L.CLASS_SHED_FRACTION);
  if (shedFraction > 0 && <f64>shedPoint(hash) < shedFraction * 4294967296.0)
    return refuseAt(stream, SHED, pool, again);
  if (nativeSteering) return routeNatively(stream, pool, hash, keyed);
  const point = place(stream, pool, hash, keyed);
  if (pick(stream, pool, segment, point, keyed, worst)) {
    if (point != hash && (stream.reason == PLANNED || stream.reason == NO_KEY)) stream.reason = PLACED;
    return route(stream, pool);
  }
  return refuseAt(stream, atLimit ? OVERLOADED : UNAVAILABLE, pool, again);
}

/** Counts a retry that the client makes by itself; false when there is no budget for more. */
function noteClientRetry(stream: Stream, state: PoolState): bool {
  count(CLIENT_RETRIES);
  state.clientRetries++;
  return stream.observed || chargeClientRetry(state);
}

/** Refuses a request of a pool, `again` when the client may come back. */
function refuseAt(stream: Stream, reason: u8, pool: u32, again: bool): i32 {
  if (!refuses(stream, reason, pool)) return CONTINUE;
  if (reason == UNAVAILABLE) stream.pool.unavailable++;
  else stream.pool.shed++;
  if (reason == SHED) answerShed(again);
  else if (reason == OVERLOADED) answerOverloaded(again);
  else answerUnavailable(again);
  return STOP;
}

/**
 * A request that needs no model, such as a health check or what is known of a model. With a key, and a model that is named or
 * the only one, it goes where the key's conversation is; else to the nearest usable engine that its needs allow.
 */
function pass(stream: Stream, hash: u64, keyed: bool): i32 {
  const carried = carriedNeeds(0);
  const named = modelLength > 0 ? findModel(modelAt, modelLength) : onlyModel() || modelOfPath();
  if (named && keyed) {
    const pool = poolFor(named, carried);
    if (pool >= 0 && !nativeSteering) {
      const point = placeAgain(stream, pool, hash);
      if (pick(stream, pool, segment, point, true, worst)) return passTo(stream, pool, hash, keyed);
    }
  }
  let met: i32 = -1;
  for (let level = HEALTHY; level <= worst; level++) {
    for (let i: u32 = 0; i < nearestCount; i++) {
      const engine = load<u32>(nearest + ((<usize>i) << 2));
      for (let m: u32 = 0; m < modelCount; m++) {
        const model = named ? named : models + <usize>m * L.MODEL_SIZE;
        const pool = poolFor(model, carried);
        if (pool >= 0) {
          met = pool;
          stream.reason = PASSED;
          if (nativeSteering || pickAt(stream, pool, engine, hash, level))
            return passTo(stream, pool, hash, keyed);
        }
        if (named) break;
      }
    }
  }
  if (met < 0 && modelCount > 0 && nearestCount > 0)
    return refuseNeeds(stream, named ? named : models, carried);
  if (refuses(stream, UNAVAILABLE, met)) answerUnavailable(true);
  return afterRefusal(stream);
}

function passTo(stream: Stream, pool: u32, hash: u64, keyed: bool): i32 {
  stream.pool = classState(classOf(pool, 0));
  return nativeSteering ? routeNatively(stream, pool, hash, keyed) : route(stream, pool);
}

function route(stream: Stream, pool: u32): i32 {
  if (stream.observed) return routeObserved(stream, pool);
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
    if (stream.reason == PLANNED || stream.reason == NO_KEY || stream.reason == PLACED)
      stream.flow0.planned++;
    else stream.flow0.diverted++;
  }
  steer(stream, pool);
  nameRoute(stream);
  return CONTINUE;
}

/** Nothing is steered; who served the request is learnt with the response. */
function routeObserved(stream: Stream, pool: u32): i32 {
  stream.decided = stream.flow0;
  stream.decided.pins++;
  stream.clearEntries();
  stream.pool.pins++;
  stream.state = ROUTED;
  count(stream.reason);
  letGo(pool);
  nameRoute(stream);
  return CONTINUE;
}

/** Envoy picks the host: who it was is learnt with the response. */
function routeNatively(stream: Stream, pool: u32, hash: u64, keyed: bool): i32 {
  stream.pool.pins++;
  stream.reason = NATIVE;
  stream.state = ROUTED;
  count(NATIVE);
  if (stream.observed) letGo(pool);
  else steerNatively(pool, hash, keyed);
  nameRoute(stream);
  return CONTINUE;
}
