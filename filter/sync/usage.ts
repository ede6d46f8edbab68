// Usage reports: every VM puts its counters into a slot of shared data, the lease holder sends all slots together.

import * as L from '../../wire/layout';
import { nowNs } from '../abi/clock';
import { Region, resetArena, resultAt, resultLength } from '../abi/memory';
import { Key } from '../abi/shared';
import {
  busyReplicas,
  EngineState,
  engines,
  FlowState,
  flows,
  PoolState,
  pools,
  ReplicaState,
  replicas,
} from '../state/rows';
import {
  firstTold,
  noteLoadsTold,
  ReplicaLoads,
  replicaLoads,
  replicaLoadsCount,
} from '../state/replica-loads';
import { freshTurnLevel, turnsIn } from '../state/turns';
import { Row } from '../state/table';
import { ageOf } from './age';
import { MOST_TOLD, writeDisplaced } from './displaced-log';
import { formatKey } from './format-key';

/** More VMs than this do not report; an Envoy has one for each worker and one more. */
export const SLOTS: i32 = 128;
/** A slot is a time stamp and a block of the report. */
const STAMP: usize = 8;
/** Slots not written for this long may be taken over. */
const ABANDONED_MS: u64 = 60_000;

/** The block of this VM, then in its place the report of all. */
const report = new Region();
let slots: Array<Key> = [];
/** The slot of this VM, -1 while it has none. */
export let slot: i32 = -1;
let sequence: u64 = 0;
/** Where the next row goes. */
let end: usize = 0;

export function prepareSlots(): void {
  slots = [];
  for (let i = 0; i < SLOTS; i++) slots.push(formatKey('usage', i));
  slot = -1;
}

/** Writes this VM's counters into its slot. */
export function publishUsage(incarnation: u64, now: u64): void {
  const length = writeBlock(incarnation, now);
  if (slot >= 0 && !isMine(slot, incarnation)) slot = -1;
  if (slot < 0) slot = freeSlot(now);
  if (slot >= 0 && !unchecked(slots[slot]).writeIfUnchanged(report.base, length)) slot = -1;
  resetArena();
}

/** Composes the report of all VMs that wrote within `freshMs`; its length is returned, `reportAt` tells where it is. */
export function composeReport(now: u64, freshMs: u64): usize {
  let total: usize = L.REPORT_HEADER_SIZE;
  let vms: u32 = 0;
  report.reserve(total);
  for (let i = 0; i < SLOTS; i++) {
    resetArena();
    if (!unchecked(slots[i]).read(STAMP + L.VM_HEADER_SIZE)) break;
    if (ageOf(stamp(), now) > freshMs) continue;
    const length = resultLength() - STAMP;
    report.extend(total + length, total);
    memory.copy(report.base + total, resultAt() + STAMP, length);
    total += length;
    vms++;
  }
  resetArena();
  store<u32>(report.base, L.REPORT_MAGIC);
  store<u32>(report.base, L.REPORT_FORMAT, 4);
  store<u32>(report.base, vms, L.REPORT_VMS);
  store<u32>(report.base, 0, L.REPORT_DISPLACED);
  report.extend(total + MOST_TOLD, total);
  const displaced = writeDisplaced(report.base + total);
  store<u32>(report.base, displaced, L.REPORT_DISPLACED);
  return total + ((<usize>displaced) << 3);
}

export function reportAt(): usize {
  return report.base;
}

function isMine(index: i32, incarnation: u64): bool {
  return (
    unchecked(slots[index]).read(STAMP + L.VM_HEADER_SIZE) &&
    load<u64>(resultAt(), STAMP + L.VM_INCARNATION) == incarnation
  );
}

/** A slot never used, or left by a VM that is gone; the slot read last, so that it can be taken. */
function freeSlot(now: u64): i32 {
  for (let i = 0; i < SLOTS; i++) {
    resetArena();
    if (!unchecked(slots[i]).read(STAMP + L.VM_HEADER_SIZE) || ageOf(stamp(), now) > ABANDONED_MS) return i;
  }
  return -1;
}

/** When the slot just read was written. */
function stamp(): u64 {
  return load<u64>(resultAt());
}

function writeBlock(incarnation: u64, now: u64): usize {
  const most =
    STAMP +
    L.VM_HEADER_SIZE +
    <usize>pools.count * L.POOL_USAGE_SIZE +
    <usize>flows.count * L.ENGINE_USAGE_SIZE +
    <usize>engines.count * (L.LATENCY_USAGE_SIZE + L.NETWORK_USAGE_SIZE) +
    <usize>(L.WATCHED_CONVERSATIONS * L.TURN_USAGE_SIZE) +
    <usize>busyReplicas * L.REPLICA_USAGE_SIZE +
    <usize>min(replicaLoadsCount, <u32>L.MOST_LOADS_TOLD) * L.LOAD_USAGE_SIZE;
  const start = report.reserve(most);
  const block = start + STAMP;
  store<u64>(start, now);
  store<u64>(block, incarnation, L.VM_INCARNATION);
  store<u64>(block, ++sequence, L.VM_SEQUENCE);
  store<u32>(block, freshTurnLevel(nowNs()), L.VM_TURN_LEVEL);
  end = block + L.VM_HEADER_SIZE;
  store<u32>(block, writePools(), L.VM_POOLS);
  store<u32>(block, writeFlows(), L.VM_ENGINES);
  store<u32>(block, writeLatencies(), L.VM_LATENCIES);
  store<u32>(block, writeReplicas(), L.VM_REPLICAS);
  store<u32>(block, writeLoads(), L.VM_LOADS);
  store<u32>(block, writeNetworks(), L.VM_NETWORKS);
  store<u32>(block, writeTurns(), L.VM_TURNS);
  return end - start;
}

// Each writes the rows that have counted anything, and returns how many. Counters lie in a row of state as they do in
// a row of the report.

function writePools(): u32 {
  let rows: u32 = 0;
  for (let row = pools.first; row; row = changetype<Row>(row).next) {
    const pool = changetype<PoolState>(row);
    if (!(pool.offered | pool.clientRetries)) continue;
    store<u64>(end, pool.pool, L.POOL_USAGE_POOL);
    store<i64>(end, pool.priority, L.POOL_USAGE_PRIORITY);
    const counters = row + offsetof<PoolState>('offered');
    memory.copy(end + L.POOL_USAGE_OFFERED, counters, L.POOL_USAGE_SIZE - L.POOL_USAGE_OFFERED);
    end += L.POOL_USAGE_SIZE;
    rows++;
  }
  return rows;
}

function writeFlows(): u32 {
  let rows: u32 = 0;
  for (let row = flows.first; row; row = changetype<Row>(row).next) {
    const flow = changetype<FlowState>(row);
    if (!(flow.planned | flow.diverted | flow.failures | flow.status2xx | flow.status4xx | flow.status5xx))
      continue;
    store<u64>(end, flow.pool.key, L.ENGINE_USAGE_POOL);
    store<u64>(end, flow.engine.key, L.ENGINE_USAGE_ENGINE);
    const counters = row + offsetof<FlowState>('planned');
    memory.copy(end + L.ENGINE_USAGE_PLANNED, counters, L.ENGINE_USAGE_SIZE - L.ENGINE_USAGE_PLANNED);
    end += L.ENGINE_USAGE_SIZE;
    rows++;
  }
  return rows;
}

function writeLatencies(): u32 {
  let rows: u32 = 0;
  for (let row = engines.first; row; row = changetype<Row>(row).next) {
    const engine = changetype<EngineState>(row);
    if (!engine.streams) continue;
    store<u64>(end, engine.key, L.LATENCY_USAGE_ENGINE);
    const size = L.LATENCY_USAGE_SIZE - L.LATENCY_USAGE_FIRST_TOKEN;
    memory.copy(end + L.LATENCY_USAGE_FIRST_TOKEN, engine.bucketsAt, size);
    end += L.LATENCY_USAGE_SIZE;
    rows++;
  }
  return rows;
}

/** Of a replica at rest there is nothing to tell. */
function writeReplicas(): u32 {
  let rows: u32 = 0;
  for (let row = replicas.first; row && rows < busyReplicas; row = changetype<Row>(row).next) {
    const replica = changetype<ReplicaState>(row);
    if (replica.sent == replica.ended) continue;
    store<u64>(end, replica.engine, L.REPLICA_USAGE_ENGINE);
    store<u64>(end, replica.address, L.REPLICA_USAGE_REPLICA);
    store<u64>(end, replica.sent, L.REPLICA_USAGE_SENT);
    store<u64>(end, replica.ended, L.REPLICA_USAGE_ENDED);
    end += L.REPLICA_USAGE_SIZE;
    rows++;
  }
  return rows;
}

function writeLoads(): u32 {
  const rows = min(replicaLoadsCount, <u32>L.MOST_LOADS_TOLD);
  let at = firstTold;
  for (let row: u32 = 0; row < rows; row++) {
    if (!at) at = replicaLoads;
    const loads = changetype<ReplicaLoads>(at);
    const replica = changetype<ReplicaState>(loads.replica);
    store<u64>(end, replica.engine, L.LOAD_USAGE_ENGINE);
    store<u64>(end, replica.address, L.LOAD_USAGE_REPLICA);
    store<u64>(end, loads.reports, L.LOAD_USAGE_REPORTS);
    store<u64>(end, loads.garbled, L.LOAD_USAGE_GARBLED);
    for (let kind: usize = 0; kind < <usize>L.LOADS; kind++) {
      store<f64>(end + (kind << 3), loads.sum(kind), L.LOAD_USAGE_SUMS);
      store<u64>(end + (kind << 3), loads.readings(kind), L.LOAD_USAGE_COUNTS);
    }
    end += L.LOAD_USAGE_SIZE;
    at = loads.next;
  }
  noteLoadsTold(at);
  return rows;
}

function writeNetworks(): u32 {
  let rows: u32 = 0;
  for (let row = engines.first; row; row = changetype<Row>(row).next) {
    const engine = changetype<EngineState>(row);
    if (!engine.roundTripCount) continue;
    store<u64>(end, engine.key, L.NETWORK_USAGE_ENGINE);
    store<u64>(end, engine.roundTripCount, L.NETWORK_USAGE_COUNT);
    store<f64>(end, engine.roundTripSum, L.NETWORK_USAGE_SUM);
    end += L.NETWORK_USAGE_SIZE;
    rows++;
  }
  return rows;
}

function writeTurns(): u32 {
  let rows: u32 = 0;
  for (let place: usize = 0; place < <usize>L.WATCHED_CONVERSATIONS; place++) {
    const turns = turnsIn(place);
    if (!turns.turns) continue;
    store<u64>(end, turns.pool, L.TURN_USAGE_POOL);
    store<u64>(end, turns.key, L.TURN_USAGE_KEY);
    store<u64>(end, turns.turns, L.TURN_USAGE_TURNS);
    end += L.TURN_USAGE_SIZE;
    rows++;
  }
  return rows;
}
