// The snapshot in force. Requests read it through the addresses below; `adopt` replaces all of them at once.

import * as L from '../../wire/layout';
import { Region } from '../abi/memory';
import { classKey, hash64, overflowMark } from '../hash';
import { comeUp, isUnproven } from '../state/guarded';
import { testAgain } from '../state/refusers';
import {
  EngineState,
  engines,
  FlowState,
  flows,
  PoolState,
  pairKey,
  pools,
  ReplicaState,
  replicas,
  sweepAll,
} from '../state/rows';
import { Row } from '../state/table';
import { Binder } from './binder';
import { indexIn } from './validate';

/** Address of the snapshot; 0 before the first. */
export let snapshot: usize = 0;
export let version: u64 = 0;
export let planId: u64 = 0;
/** Seed of every key hash. */
export let saltHash: u64 = 0;
/** Keys whose steer point lies below this are steered, the others only decided on. */
export let steeredBelow: u64 = 0;

export let models: usize = 0;
export let modelCount: u32 = 0;
export let modelNeeds: usize = 0;
export let modelPools: usize = 0;
export let needs: usize = 0;
export let needCount: u32 = 0;
export let poolRows: usize = 0;
export let poolCount: u32 = 0;

export let classRows: usize = 0;
export let classCount: u32 = 0;
export let rules: usize = 0;
export let ruleCount: u32 = 0;
export let nearest: usize = 0;
export let nearestCount: u32 = 0;
/** Whether any engine has a limit to its requests in flight. */
export let hasLimits: bool = false;
/** Whether what the other VMs of this Envoy have in flight counts for any engine. */
export let countsOthers: bool = false;

/** Pointers to class states, in the order of CLASSES. */
let classStates: usize = 0;
/** Numbers of the pools' engines. */
export let poolEngines: usize = 0;
/** Pointers to flow states, in the same order. */
export let poolFlows: usize = 0;

/** The segments with pointers to flows in the place of engine numbers; 0 is no backup. */
export let boundSegments: usize = 0;
export const BOUND_START: usize = 0;
export const BOUND_OWNER: usize = 4;
export const BOUND_BACKUP: usize = 8;
export const BOUND_SIZE: usize = 12;

/** Replicas that were away for less share the load as before. */
const FLAP_MS: u64 = 5_000;

let bindings: Region = new Region();
let spareBindings: Region = new Region();
let engineStates: usize = 0;
export let engineCount: u32 = 0;
let replicaStates: usize = 0;
let replicaCount: u32 = 0;
let flowCount: u32 = 0;
/** Number of the install that put the snapshot in force. */
export let install: u32 = 0;

const classBinder = new Binder(pools);
const engineBinder = new Binder(engines);
const replicaBinder = new Binder(replicas);
const flowBinder = new Binder(flows);

/** Puts a checked snapshot in force. The bytes must stay where they are until the next one is adopted. */
export function adopt(at: usize, now: u64): void {
  install++;
  classBinder.begin(classStates, classCount, install);
  engineBinder.begin(engineStates, engineCount, install);
  replicaBinder.begin(replicaStates, replicaCount, install);
  flowBinder.begin(poolFlows, flowCount, install);

  snapshot = at;
  version = load<u64>(at, L.HEADER_VERSION);
  planId = load<u64>(at, L.HEADER_PLAN_ID);
  saltHash = hash64(textAt(at + L.HEADER_SALT), textLength(at + L.HEADER_SALT), 0);
  steeredBelow = pointsOf(load<f64>(at, L.HEADER_STEERED));
  models = section(L.HEADER_MODELS);
  modelCount = rows(L.HEADER_MODELS);
  modelNeeds = section(L.HEADER_MODEL_NEEDS);
  modelPools = section(L.HEADER_MODEL_POOLS);
  needs = section(L.HEADER_NEEDS);
  needCount = rows(L.HEADER_NEEDS);
  poolRows = section(L.HEADER_POOLS);
  poolCount = rows(L.HEADER_POOLS);
  classRows = section(L.HEADER_CLASSES);
  classCount = rows(L.HEADER_CLASSES);
  rules = section(L.HEADER_CLASS_RULES);
  ruleCount = rows(L.HEADER_CLASS_RULES);
  nearest = section(L.HEADER_NEAREST);
  nearestCount = rows(L.HEADER_NEAREST);
  engineCount = rows(L.HEADER_ENGINES);
  replicaCount = rows(L.HEADER_REPLICAS);
  poolEngines = section(L.HEADER_POOL_ENGINES);
  flowCount = rows(L.HEADER_POOL_ENGINES);
  const segmentCount = <usize>rows(L.HEADER_SEGMENTS);

  const pointers = <usize>classCount + <usize>engineCount + <usize>replicaCount + <usize>flowCount;
  classStates = spareBindings.reserve((pointers << 2) + segmentCount * BOUND_SIZE);
  engineStates = classStates + ((<usize>classCount) << 2);
  replicaStates = engineStates + ((<usize>engineCount) << 2);
  poolFlows = replicaStates + ((<usize>replicaCount) << 2);
  boundSegments = poolFlows + ((<usize>flowCount) << 2);
  const used = spareBindings;
  spareBindings = bindings;
  bindings = used;

  bindEngines(now);
  bindPools();
  forgetAbsent();
  sweepAll(install, now);
}

function bindEngines(now: u64): void {
  let row = section(L.HEADER_ENGINES);
  let replica = section(L.HEADER_REPLICAS);
  let place: usize = 0;
  hasLimits = false;
  countsOthers = false;
  for (let i: usize = 0; i < <usize>engineCount; i++) {
    const hash = load<u64>(row, L.ENGINE_HASH);
    const engine = changetype<EngineState>(engineBinder.bind(i, hash));
    store<u32>(engineStates + (i << 2), <u32>changetype<usize>(engine));
    engine.snapshotRow = row;
    engine.replicas = replicaStates + (place << 2);
    engine.replicaCount = load<u32>(row, L.ENGINE_REPLICAS_COUNT);
    engine.setId(textAt(row + L.ENGINE_ID), textLength(row + L.ENGINE_ID));
    engine.overflowBelow = pointsOf(load<f64>(row, L.ENGINE_OVERFLOW));
    engine.mark = overflowMark(hash);
    let readyCount: u32 = 0;
    let unproven: u32 = 0;
    for (let n = engine.replicaCount; n > 0; n--) {
      const key = pairKey(hash, load<u64>(replica, L.REPLICA_SEED));
      const state = changetype<ReplicaState>(replicaBinder.bind(place, key));
      store<u32>(replicaStates + (place << 2), <u32>changetype<usize>(state));
      const ready = (load<u32>(replica, L.REPLICA_FLAGS) & L.REPLICA_READY) != 0;
      // The control server has just seen it well: no need to wait for the back-off. A VM that begins knows nobody, and
      // takes all for proven.
      if (ready && !state.ready && install > 1) {
        comeUp(state, now);
        testAgain(state);
      }
      state.ready = ready;
      state.snapshotRow = replica;
      state.engine = hash;
      state.address = load<u64>(replica, L.REPLICA_SEED);
      if (ready) {
        readyCount++;
        if (isUnproven(state)) unproven++;
      }
      replica += L.REPLICA_SIZE;
      place++;
    }
    noteSharers(engine, readyCount, unproven, now);
    const limit = load<f64>(row, L.ENGINE_REPLICA_LIMIT);
    hasLimits = hasLimits || limit != Infinity;
    engine.busyAbove = load<f64>(row, L.ENGINE_BUSY);
    countsOthers = countsOthers || hasLimits || engine.busyAbove != Infinity;
    // Where nobody looks ready, readiness may be ignored, and the limit with it.
    engine.mostInFlight = readyCount > 0 ? limit * <f64>readyCount : Infinity;
    row += L.ENGINE_SIZE;
  }
}

/** Takes replicas that are lost for longer than readiness flaps out of those that share an engine's load. */
function noteSharers(engine: EngineState, ready: u32, unproven: u32, now: u64): void {
  if (engine.readyCount >= engine.sharers) engine.sharedMs = now;
  else if (now - engine.sharedMs > FLAP_MS) engine.sharers = engine.readyCount;
  if (unproven == 0) engine.sharers = max(engine.sharers, ready);
  engine.readyCount = ready;
}

function bindPools(): void {
  let row = poolRows;
  let segment = section(L.HEADER_SEGMENTS);
  let bound = boundSegments;
  let place: usize = 0;
  for (let i: usize = 0; i < <usize>poolCount; i++) {
    bindClasses(row);
    const pool = classState(load<u32>(row, L.POOL_CLASSES_START));
    const count = load<u32>(row, L.POOL_ENGINES_COUNT);
    const list = poolEngines + (place << 2);
    const first = poolFlows + (place << 2);
    for (let n: u32 = 0; n < count; n++) {
      const engine = engineAt(<usize>load<u32>(poolEngines + (place << 2)));
      const flow = changetype<FlowState>(flowBinder.bind(place, pairKey(pool.key, engine.key)));
      if (!changetype<usize>(flow.pool)) {
        flow.pool = pool;
        flow.engine = engine;
        pool.pins++;
        engine.pins++;
      }
      flow.share = 0;
      store<u32>(poolFlows + (place << 2), <u32>changetype<usize>(flow));
      place++;
    }
    for (let n = load<u32>(row, L.POOL_SEGMENTS_COUNT); n > 0; n--) {
      const start = load<u32>(segment, L.SEGMENT_START);
      const owner = flowOf(load<u32>(segment, L.SEGMENT_OWNER), list, count, first);
      // The last one ends where the circle does, at 2^32.
      const next: u32 = n > 1 ? load<u32>(segment, L.SEGMENT_SIZE + L.SEGMENT_START) : 0;
      if (owner) changetype<FlowState>(<usize>owner).share += shareOf(start, next);
      store<u32>(bound, start, BOUND_START);
      store<u32>(bound, owner, BOUND_OWNER);
      store<u32>(bound, flowOf(load<u32>(segment, L.SEGMENT_BACKUP), list, count, first), BOUND_BACKUP);
      segment += L.SEGMENT_SIZE;
      bound += BOUND_SIZE;
    }
    row += L.POOL_SIZE;
  }
}

function bindClasses(pool: usize): void {
  const first = <usize>load<u32>(pool, L.POOL_CLASSES_START);
  for (let i: usize = first; i < first + <usize>load<u32>(pool, L.POOL_CLASSES_COUNT); i++) {
    const priority = load<i32>(classRows + i * L.CLASS_SIZE, L.CLASS_PRIORITY);
    const state = changetype<PoolState>(
      classBinder.bind(i, classKey(load<u64>(pool, L.POOL_HASH), priority)),
    );
    store<u32>(classStates + (i << 2), <u32>changetype<usize>(state));
    state.pool = load<u64>(pool, L.POOL_HASH);
    state.priority = priority;
    state.home = classState(<u32>first);
  }
}

/** State of the engine with this number. */
// @ts-ignore: decorator
@inline
export function engineAt(number: usize): EngineState {
  return changetype<EngineState>(<usize>load<u32>(engineStates + (number << 2)));
}

/** State of the class with this number. */
// @ts-ignore: decorator
@inline
export function classState(number: u32): PoolState {
  return changetype<PoolState>(<usize>load<u32>(classStates + ((<usize>number) << 2)));
}

/** The flow to an engine of the pool whose eligible engines are `list` and whose flows begin at `first`. */
function flowOf(engine: u32, list: usize, count: u32, first: usize): u32 {
  const index = indexIn(list, count, engine);
  return index < 0 ? 0 : load<u32>(first + ((<usize>index) << 2));
}

/** Engines and replicas that the snapshot no longer names have no rows in it. */
function forgetAbsent(): void {
  for (let at = engines.first; at; at = changetype<Row>(at).next) {
    const engine = changetype<EngineState>(at);
    if (engine.seen == install) continue;
    engine.snapshotRow = 0;
    engine.replicaCount = 0;
    engine.overflowBelow = 0;
  }
  for (let at = replicas.first; at; at = changetype<Row>(at).next) {
    const replica = changetype<ReplicaState>(at);
    if (replica.seen == install) continue;
    replica.snapshotRow = 0;
    replica.ready = false;
  }
}

/** Drops the snapshot, as after a change of frontend. */
export function drop(): void {
  snapshot = 0;
  version = 0;
  poolCount = 0;
  classCount = 0;
  modelCount = 0;
  needCount = 0;
  ruleCount = 0;
  nearestCount = 0;
  engineCount = 0;
  hasLimits = false;
  countsOthers = false;
}

/** Share of the hash space from a point to another, or of all of it where they are the same. */
function shareOf(start: u32, end: u32): f64 {
  return start == end ? 1 : <f64>(end - start) / 4294967296.0;
}

/** A share of the hash space in points, of which there are 2^32. */
function pointsOf(share: f64): u64 {
  return <u64>(share * 4294967296.0);
}

// @ts-ignore: decorator
@inline
function section(header: usize): usize {
  return snapshot + <usize>load<u32>(snapshot + header);
}

// @ts-ignore: decorator
@inline
function rows(header: usize): u32 {
  return load<u32>(snapshot + header, 4);
}

/** Address of the text that a reference of the current snapshot points to. */
// @ts-ignore: decorator
@inline
export function textAt(reference: usize): usize {
  return snapshot + <usize>load<u32>(reference);
}

// @ts-ignore: decorator
@inline
export function textLength(reference: usize): usize {
  return <usize>load<u32>(reference, 4);
}
