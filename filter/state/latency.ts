// Streamed answers of an engine by how fast they were: counters in buckets whose bounds double.

import * as L from '../../wire/layout';
import { EngineState } from './rows';

export function noteFirstToken(engine: EngineState, seconds: f64): void {
  increment(engine.bucketsAt, bucketOf(seconds, L.FIRST_TOKEN_LEAST_SECONDS, L.FIRST_TOKEN_BUCKETS));
}

export function notePace(engine: EngineState, secondsPerToken: f64): void {
  const first = engine.bucketsAt + ((<usize>L.FIRST_TOKEN_BUCKETS) << 3);
  increment(first, bucketOf(secondsPerToken, L.PACE_LEAST_SECONDS, L.PACE_BUCKETS));
}

function bucketOf(seconds: f64, least: f64, buckets: u32): u32 {
  let bucket: u32 = 0;
  for (let bound = least; bucket < buckets - 1 && seconds > bound; bound *= 2) bucket++;
  return bucket;
}

function increment(first: usize, bucket: u32): void {
  const at = first + ((<usize>bucket) << 3);
  store<u64>(at, load<u64>(at) + 1);
}
