// How far away engines are. One after the other is asked for its health page, three times in a row at one replica: the
// first may have to open a connection, and any may wait in the engine, so the least of the three is kept. The VM that
// talks to the control server does this, besides all requests. In a large fleet several are asked at a time.

import * as L from '../../wire/layout';
import { DESTINATION_HEADER } from '../../wire/names';
import { nowNs } from '../abi/clock';
import { CALL_RESPONSE_HEADERS, getHeader, httpCall, OK } from '../abi/host';
import { Region, RESULT, resultAt, resultLength } from '../abi/memory';
import { addPair, addPairText, endPairs, startPairs } from '../abi/pairs';
import { random } from '../abi/random';
import { clear, lengthFrom, Text } from '../abi/text';
import { nativeSteering } from '../config';
import { engineAt, engineCount, poolCount, poolEngines, poolRows, textAt, textLength } from '../snapshot/current';
import { USABLE } from '../state/guarded';
import { EngineState, engines, ReplicaState } from '../state/rows';
import { Row } from '../state/table';

const ASKS: u32 = 3;
const TIMEOUT_MS: u32 = 2_000;
/** No answer comes after this. */
const LOST_NS: u64 = (<u64>TIMEOUT_MS + 1_000) * 1_000_000;
/** So many engines are asked at a time. */
const MOST_ASKED: i32 = 32;
/** Pause between engines until all have been asked so many times, and the longest after that. */
const FIRST_ROUNDS: u64 = 5;
const FIRST_PAUSE_NS: u64 = 1_000_000_000;
const LONGEST_PAUSE_NS: u64 = 5_000_000_000;
/** All engines are asked within this time. */
const ROUND_NS: u64 = 30_000_000_000;
/** What is late by more than a tick or two is not made up for. */
const LATE_NS: u64 = 200_000_000;

const METHOD = new Text(':method');
const GET = new Text('GET');
const PATH = new Text(':path');
const AUTHORITY = new Text(':authority');
const DESTINATION = new Text(DESTINATION_HEADER);
const STATUS = new Text(':status');
const TOKEN: usize = memory.data(4, 4);

/** An engine that is being asked. */
class Asked {
  /** Of the engine; 0 if none is asked. */
  key: u64 = 0;
  token: u32 = 0;
  asksLeft: u32 = 0;
  sentNs: u64 = 0;
  leastNs: u64 = 0;
  /** The headers of the question, then the name of the cluster. */
  readonly question: Region = new Region();
  headersLength: usize = 0;
  clusterLength: usize = 0;
}

const asked = new StaticArray<Asked | null>(MOST_ASKED);
for (let i = 0; i < MOST_ASKED; i++) asked[i] = new Asked();

let turn: u64 = 0;
let turnsDone: u64 = 0;
let nextNs: u64 = 0;

/** Forgets what is being asked, which another root context has sent. */
export function resetRoundTrips(): void {
  for (let i = 0; i < MOST_ASKED; i++) askedAt(i).key = 0;
  turn = random();
}

/** Whether the call is one of these. */
export function isRoundTrip(call: u32): bool {
  return findCall(call) != null;
}

/** Asks the engines whose turn it is; the effective context must be the root's. */
export function measureNext(): void {
  // A host of Envoy's choice would say nothing about an engine.
  if (nativeSteering || engineCount == 0) return;
  const now = nowNs();
  if (now > nextNs + LATE_NS) nextNs = now;
  while (nextNs <= now) {
    const free = findFree(now);
    if (!free) return;
    const pause = turnsDone < FIRST_ROUNDS * engineCount ? FIRST_PAUSE_NS : LONGEST_PAUSE_NS;
    nextNs += min<u64>(pause, ROUND_NS / engineCount);
    turnsDone++;
    const engine = engineAt(<usize>(turn++ % engineCount));
    const replica = isAsked(engine.key, now) ? <usize>0 : usableReplica(engine);
    if (!replica || !compose(free, engine, changetype<ReplicaState>(replica))) continue;
    free.asksLeft = ASKS;
    free.leastNs = u64.MAX_VALUE;
    free.key = engine.key;
    ask(free);
  }
}

/** The answer to a question; `headers` is 0 when there was none. */
export function noteRoundTrip(call: u32, headers: u32): void {
  const one = findCall(call);
  if (!one) return;
  const took = nowNs() - one.sentNs;
  // Envoy answers with 5xx for an engine that it does not reach.
  if (headers == 0 || !isFromEngine()) {
    one.key = 0;
    return;
  }
  one.leastNs = min(one.leastNs, took);
  if (--one.asksLeft) return ask(one);
  for (let row = engines.first; row; row = changetype<Row>(row).next) {
    const engine = changetype<EngineState>(row);
    if (engine.key != one.key) continue;
    engine.roundTripCount++;
    engine.roundTripSum += <f64>one.leastNs * 1e-9;
  }
  one.key = 0;
}

// @ts-ignore: decorator
@inline
function askedAt(index: i32): Asked {
  return asked[index]!;
}

function findCall(call: u32): Asked | null {
  for (let i = 0; i < MOST_ASKED; i++) {
    const one = askedAt(i);
    if (one.key != 0 && one.token == call) return one;
  }
  return null;
}

function findFree(now: u64): Asked | null {
  for (let i = 0; i < MOST_ASKED; i++) if (!isWaiting(askedAt(i), now)) return askedAt(i);
  return null;
}

function isAsked(engine: u64, now: u64): bool {
  for (let i = 0; i < MOST_ASKED; i++) {
    const one = askedAt(i);
    if (one.key == engine && isWaiting(one, now)) return true;
  }
  return false;
}

function isWaiting(one: Asked, now: u64): bool {
  return one.key != 0 && now - one.sentNs <= LOST_NS;
}

function isFromEngine(): bool {
  store<u64>(RESULT, 0);
  getHeader(CALL_RESPONSE_HEADERS, STATUS.at, STATUS.length, RESULT, RESULT + 4);
  return resultLength() == 3 && load<u8>(resultAt()) < 0x35;
}

function ask(one: Asked): void {
  one.sentNs = nowNs();
  const headers = one.question.base;
  const sent = httpCall(
    headers + one.headersLength,
    one.clusterLength,
    headers,
    one.headersLength,
    0,
    0,
    0,
    0,
    TIMEOUT_MS,
    TOKEN,
  );
  if (sent == OK) one.token = load<u32>(TOKEN);
  else one.key = 0;
}

/** Any replica that is ready and that nothing is held against; 0 if there is none. */
function usableReplica(engine: EngineState): usize {
  const count = engine.replicaCount;
  if (!count) return 0;
  const start = <u32>(random() % count);
  for (let i: u32 = 0; i < count; i++) {
    const at = load<u32>(engine.replicas + ((<usize>((start + i) % count)) << 2));
    const replica = changetype<ReplicaState>(<usize>at);
    if (replica.ready && replica.state == USABLE) return <usize>at;
  }
  return 0;
}

/** Writes the question; false when the engine is in no pool, or not to be asked. */
function compose(one: Asked, engine: EngineState, replica: ReplicaState): bool {
  const path = engine.snapshotRow + L.ENGINE_PROBE;
  const cluster = clusterOf(engine);
  if (!cluster || textLength(path) == 0) return false;
  const address = replica.snapshotRow + L.REPLICA_ADDRESS;
  clear();
  startPairs();
  addPairText(METHOD, GET);
  addPair(PATH, textAt(path), textLength(path));
  addPair(AUTHORITY, textAt(address), textLength(address));
  addPair(DESTINATION, textAt(address), textLength(address));
  const headers = endPairs();
  one.headersLength = lengthFrom(headers);
  one.clusterLength = textLength(cluster);
  const at = one.question.reserve(one.headersLength + one.clusterLength);
  memory.copy(at, headers, one.headersLength);
  memory.copy(at + one.headersLength, textAt(cluster), one.clusterLength);
  return true;
}

/** The cluster of a pool that the engine may serve, as a reference; 0 if there is none. */
function clusterOf(engine: EngineState): usize {
  let row = poolRows;
  let list = poolEngines;
  for (let i: u32 = 0; i < poolCount; i++) {
    const count = load<u32>(row, L.POOL_ENGINES_COUNT);
    for (let n: u32 = 0; n < count; n++) {
      if (engineAt(<usize>load<u32>(list + ((<usize>n) << 2))) == engine) return row + L.POOL_CLUSTER;
    }
    list += (<usize>count) << 2;
    row += L.POOL_SIZE;
  }
  return 0;
}
