// A request, from its headers to the headers that steer it or to an answer of our own.

import { CONTINUE, HOLD, STOP } from '../abi/host';
import { nowNs } from '../abi/clock';
import { equals, Text } from '../abi/text';
import { hash64, shedPoint } from '../hash';
import { planId, poolCount, poolRows, poolStates, saltHash, snapshot } from '../snapshot/current';
import { chargeClientRetry, earn, reserve } from '../state/budget';
import { CLIENT_RETRIES, count, RETRIES_DENIED, RETRIES_GRANTED } from '../state/counters';
import { PoolState } from '../state/rows';
import * as L from '../../wire/layout';
import { READY_PATH } from '../../wire/names';
import {
  bodyless,
  clientRetry,
  keyAt,
  keyLength,
  modelAt,
  modelLength,
  pathAt,
  pathLength,
  readAttributes,
  tenantAt,
  tenantLength,
} from './attributes';
import { onlyPool, poolOfModel } from './eligibility';
import { pick, randomKey } from './pick';
import { MODEL_MISSING, MODEL_NOT_FOUND, NO_KEY, PASSED, PLANNED, SHED, STARTING, UNAVAILABLE } from './reasons';
import {
  answerModelMissing,
  answerModelNotFound,
  answerReadyCheck,
  answerShed,
  answerStarting,
  answerUnavailable,
} from './replies';
import { ANY, HEALTHY, READY } from './replicas';
import { steer } from './steer';
import { HELD, openStream, ROUTED, SETTLED, Stream } from './streams';

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
  if (snapshot) return decide(stream);
  if (startupHold) {
    stream.state = HELD;
    return HOLD;
  }
  return refuseStarting(stream);
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
  count(STARTING);
  stream.state = SETTLED;
  answerStarting();
  return STOP;
}

function isReadyCheck(): bool {
  if (pathLength < READY_CHECK.length || memory.compare(pathAt, READY_CHECK.at, READY_CHECK.length) != 0) return false;
  return pathLength == READY_CHECK.length || load<u8>(pathAt + READY_CHECK.length) == 0x3f;
}

function decide(stream: Stream): i32 {
  stream.planId = planId;
  stream.state = SETTLED;
  const keyed = keyLength > 0;
  const hash = keyed
    ? hash64(keyAt, keyLength, hash64(tenantAt, tenantLength, saltHash))
    : randomKey();
  if (stream.bodyless) return pass(stream, hash);

  let pool: i32;
  if (modelLength > 0) {
    pool = poolOfModel(modelAt, modelLength);
    if (pool < 0) {
      count(MODEL_NOT_FOUND);
      answerModelNotFound(modelAt, modelLength);
      return STOP;
    }
  } else {
    pool = onlyPool();
    if (pool < 0) {
      count(MODEL_MISSING);
      answerModelMissing();
      return STOP;
    }
  }
  return serve(stream, <u32>pool, hash, keyed);
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
    earn(state);
  }
  if (!keyed) state.withoutKey++;
  const shedFraction = load<f64>(poolRows + <usize>pool * L.POOL_SIZE, L.POOL_SHED_FRACTION);
  if (<f64>shedPoint(hash) < shedFraction * 4294967296.0) {
    count(SHED);
    state.shed++;
    answerShed(again);
    return STOP;
  }
  if (!pick(stream, pool, hash, keyed, worst)) {
    count(UNAVAILABLE);
    state.unavailable++;
    answerUnavailable(again);
    return STOP;
  }
  return route(stream, pool);
}

/**
 * A request that needs no model, such as a list of models or a health check: goes to its key's engine in the first
 * pool that has a usable one, beginning with the pool of the model if it names one that exists.
 */
function pass(stream: Stream, hash: u64): i32 {
  const named = modelLength > 0 ? poolOfModel(modelAt, modelLength) : -1;
  let pool: u32 = named < 0 ? 0 : <u32>named;
  for (let level = HEALTHY; level <= worst; level++) {
    for (let i: u32 = 0; i < poolCount; i++) {
      if (pick(stream, pool, hash, true, level)) {
        stream.pool = poolState(pool);
        stream.reason = PASSED;
        return route(stream, pool);
      }
      if (++pool == poolCount) pool = 0;
    }
  }
  count(UNAVAILABLE);
  answerUnavailable(true);
  return STOP;
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
  state.pins++;
  if (stream.counted) {
    if (stream.reason == PLANNED || stream.reason == NO_KEY) stream.flow0.planned++;
    else stream.flow0.diverted++;
  }
  steer(stream, pool);
  return CONTINUE;
}

// @ts-ignore: decorator
@inline
function poolState(pool: u32): PoolState {
  return changetype<PoolState>(<usize>load<u32>(poolStates + ((<usize>pool) << 2)));
}
