// Envoy statistics of this VM. Requests count in memory; a tick passes the differences on, so that a request pays for
// no host call. Names are fixed: the number of series does not depend on traffic.

import { COUNTER, defineMetric, GAUGE, HISTOGRAM, incrementMetric, recordMetric } from '../abi/host';
import { RESULT } from '../abi/memory';
import { begin, lengthFrom, put, Text } from '../abi/text';
import { REASONS, reasonCode } from '../reasons';

// The first REASONS counters are requests by reason.
export const CLIENT_RETRIES: i32 = REASONS;
export const RETRIES_GRANTED: i32 = REASONS + 1;
export const RETRIES_DENIED: i32 = REASONS + 2;
export const RETRIES_USED: i32 = REASONS + 3;
export const ENGINE_EJECTIONS: i32 = REASONS + 4;
export const REPLICA_EJECTIONS: i32 = REASONS + 5;
export const SNAPSHOT_INSTALLS: i32 = REASONS + 6;
export const SNAPSHOT_REFUSALS: i32 = REASONS + 7;
export const SYNC_CALLS: i32 = REASONS + 8;
export const SYNC_FAILURES: i32 = REASONS + 9;
export const ANSWERS_STALLED: i32 = REASONS + 10;
export const ANSWERS_BROKEN: i32 = REASONS + 11;
export const LOAD_REPORTS_GARBLED: i32 = REASONS + 12;
const COUNTERS: i32 = REASONS + 13;

const names: StaticArray<Text> = [
  new Text('client_retries'),
  new Text('retries_granted'),
  new Text('retries_denied'),
  new Text('retries_used'),
  new Text('engine_ejections'),
  new Text('replica_ejections'),
  new Text('snapshot_installs'),
  new Text('snapshot_refusals'),
  new Text('sync_calls'),
  new Text('sync_failures'),
  new Text('answers_stalled'),
  new Text('answers_broken'),
  new Text('load_reports_garbled'),
];
const PREFIX = new Text('wardrop_');
const REQUESTS = new Text('requests_');
const SNAPSHOT_VERSION = new Text('snapshot_version');
const SNAPSHOT_AGE = new Text('snapshot_age_seconds');
const FIRST_TOKEN = new Text('first_token_ms');

const pending: StaticArray<u32> = new StaticArray<u32>(COUNTERS);
const ids: StaticArray<u32> = new StaticArray<u32>(COUNTERS);
let versionId: u32 = 0;
let ageId: u32 = 0;
let firstTokenId: u32 = 0;
let defined: bool = false;

export function defineCounters(): void {
  if (defined) return;
  defined = true;
  for (let i = 0; i < COUNTERS; i++) {
    ids[i] =
      i < REASONS ? define(COUNTER, REQUESTS, reasonCode(<u8>i)) : define(COUNTER, null, names[i - REASONS]);
  }
  versionId = define(GAUGE, null, SNAPSHOT_VERSION);
  ageId = define(GAUGE, null, SNAPSHOT_AGE);
  firstTokenId = define(HISTOGRAM, null, FIRST_TOKEN);
}

function define(type: i32, group: Text | null, name: Text): u32 {
  const start = begin();
  put(PREFIX);
  if (group) put(group);
  put(name);
  defineMetric(type, start, lengthFrom(start), RESULT);
  return load<u32>(RESULT);
}

// @ts-ignore: decorator
@inline
export function count(counter: i32, by: u32 = 1): void {
  unchecked((pending[counter] += by));
}

/** Passes on what was counted since the last time. */
export function flushCounters(): void {
  for (let i = 0; i < COUNTERS; i++) {
    if (!unchecked(pending[i])) continue;
    incrementMetric(unchecked(ids[i]), <i64>unchecked(pending[i]));
    unchecked((pending[i] = 0));
  }
}

export function recordSnapshot(version: u64, ageSeconds: u64): void {
  recordMetric(versionId, version);
  recordMetric(ageId, ageSeconds);
}

/** A streamed answer has begun; the one statistic that is passed on at once. */
export function recordFirstToken(ms: u64): void {
  recordMetric(firstTokenId, ms);
}
