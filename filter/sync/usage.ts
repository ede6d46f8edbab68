// Usage reports: every VM puts its counters into a slot of shared data, the lease holder sends all slots together.

import * as L from '../../wire/layout';
import { Region, resetArena, resultAt, resultLength } from '../abi/memory';
import { Key } from '../abi/shared';
import { FlowState, flows, PoolState, pools } from '../state/rows';
import { Row } from '../state/table';

/** More VMs than this do not report; an Envoy has one for each worker and one more. */
const SLOTS: i32 = 128;
/** A slot is a time stamp and a block of the report. */
const STAMP: usize = 8;
/** Slots not written for this long may be taken over. */
const ABANDONED_MS: u64 = 60_000;

const own = new Region();
const merged = new Region();
let slots: Array<Key> = [];
let slot: i32 = -1;

export function prepareSlots(): void {
  slots = [];
  for (let i = 0; i < SLOTS; i++) slots.push(new Key('usage', i));
  slot = -1;
}

/** Writes this VM's counters into its slot. */
export function publishUsage(incarnation: u64, now: u64): void {
  const length = writeBlock(incarnation, now);
  if (slot >= 0 && !isMine(slot, incarnation)) slot = -1;
  if (slot < 0) slot = freeSlot(now);
  if (slot >= 0 && !unchecked(slots[slot]).writeIfUnchanged(own.base, length)) slot = -1;
  resetArena();
}

/** Composes the report of all VMs that wrote within `freshMs`; its length is returned, `reportAt` tells where it is. */
export function composeReport(now: u64, freshMs: u64): usize {
  let end: usize = L.REPORT_HEADER_SIZE;
  let vms: u32 = 0;
  merged.reserve(end);
  for (let i = 0; i < SLOTS; i++) {
    resetArena();
    if (!unchecked(slots[i]).read(STAMP + L.VM_HEADER_SIZE)) break;
    if (age(now) > freshMs) continue;
    const length = resultLength() - STAMP;
    merged.extend(end + length, end);
    memory.copy(merged.base + end, resultAt() + STAMP, length);
    end += length;
    vms++;
  }
  resetArena();
  store<u32>(merged.base, L.REPORT_MAGIC);
  store<u32>(merged.base, L.REPORT_FORMAT, 4);
  store<u32>(merged.base, vms, L.REPORT_VMS);
  store<u32>(merged.base, 0, L.REPORT_VMS + 4);
  return end;
}

export function reportAt(): usize {
  return merged.base;
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
    if (!unchecked(slots[i]).read(STAMP + L.VM_HEADER_SIZE) || age(now) > ABANDONED_MS) return i;
  }
  return -1;
}

/** Milliseconds since the slot just read was written; a stamp from the future is as old as can be. */
function age(now: u64): u64 {
  return now - load<u64>(resultAt());
}

function writeBlock(incarnation: u64, now: u64): usize {
  const most =
    STAMP +
    L.VM_HEADER_SIZE +
    <usize>pools.count * L.POOL_USAGE_SIZE +
    <usize>flows.count * L.ENGINE_USAGE_SIZE;
  const start = own.reserve(most);
  const block = start + STAMP;
  let at = block + L.VM_HEADER_SIZE;
  let poolRows: u32 = 0;
  let flowRows: u32 = 0;
  for (let row = pools.first; row; row = changetype<Row>(row).next) {
    const pool = changetype<PoolState>(row);
    if (!(pool.offered | pool.clientRetries)) continue;
    store<u64>(at, pool.key, L.POOL_USAGE_POOL);
    store<u64>(at, pool.offered, L.POOL_USAGE_OFFERED);
    store<u64>(at, pool.clientRetries, L.POOL_USAGE_CLIENT_RETRIES);
    store<u64>(at, pool.shed, L.POOL_USAGE_SHED);
    store<u64>(at, pool.unavailable, L.POOL_USAGE_UNAVAILABLE);
    store<u64>(at, pool.withoutKey, L.POOL_USAGE_WITHOUT_KEY);
    at += L.POOL_USAGE_SIZE;
    poolRows++;
  }
  for (let row = flows.first; row; row = changetype<Row>(row).next) {
    const flow = changetype<FlowState>(row);
    if (!(flow.planned | flow.diverted | flow.failures | flow.status2xx | flow.status4xx | flow.status5xx))
      continue;
    store<u64>(at, flow.pool.key, L.ENGINE_USAGE_POOL);
    store<u64>(at, flow.engine.key, L.ENGINE_USAGE_ENGINE);
    store<u64>(at, flow.planned, L.ENGINE_USAGE_PLANNED);
    store<u64>(at, flow.diverted, L.ENGINE_USAGE_DIVERTED);
    store<u64>(at, flow.ended, L.ENGINE_USAGE_ENDED);
    store<u64>(at, flow.failures, L.ENGINE_USAGE_FAILURES);
    store<u64>(at, flow.status2xx, L.ENGINE_USAGE_STATUS_2XX);
    store<u64>(at, flow.status4xx, L.ENGINE_USAGE_STATUS_4XX);
    store<u64>(at, flow.status5xx, L.ENGINE_USAGE_STATUS_5XX);
    store<u64>(at, flow.noResponse, L.ENGINE_USAGE_NO_RESPONSE);
    store<u64>(at, flow.retries, L.ENGINE_USAGE_RETRIES);
    store<f64>(at, flow.firstByteSum, L.ENGINE_USAGE_FIRST_BYTE_SUM);
    store<u64>(at, flow.firstByteCount, L.ENGINE_USAGE_FIRST_BYTE_COUNT);
    at += L.ENGINE_USAGE_SIZE;
    flowRows++;
  }
  store<u64>(start, now);
  store<u64>(block, incarnation, L.VM_INCARNATION);
  store<u32>(block, poolRows, L.VM_POOLS);
  store<u32>(block, flowRows, L.VM_ENGINES);
  return at - start;
}
