// The retry budget of a pool: a token bucket. Every first attempt earns `ratio` tokens, every granted retry reserves
// one until the response headers tell whether it was used.

import { PoolState } from './rows';

/** Tokens that a pool has when it is new and may keep however little it earns. */
const FLOOR_TOKENS: f64 = 10;
/** The bucket holds what is earned in this time. */
const CAPACITY_SECONDS: f64 = 30;
/** Highest ratio while the control server has not been heard of. */
const STALE_RATIO: f64 = 0.05;
/** Time constant of the smoothed request rate. */
const RATE_SECONDS: f64 = 10;

/** Prepares the bucket of a pool that the VM meets for the first time. */
export function fillBudget(pool: PoolState): void {
  pool.capacity = FLOOR_TOKENS;
  pool.tokens = FLOOR_TOKENS;
}

/** A first attempt earns its share. */
// @ts-ignore: decorator
@inline
export function earn(pool: PoolState): void {
  pool.arrivals++;
  add(pool, pool.ratio);
}

/** Takes a token for a retry that the client made by itself, if there is one. */
export function chargeClientRetry(pool: PoolState): void {
  pool.tokens = max(pool.tokens - 1, 0);
}

/** Reserves tokens for at most `wanted` retries; the second of a request only while half of the bucket is free. */
// @ts-ignore: decorator
@inline
export function reserve(pool: PoolState, wanted: u32): u32 {
  if (wanted == 0 || pool.tokens < 1) return 0;
  const granted: u32 = wanted > 1 && pool.tokens >= 2 && pool.tokens * 2 >= pool.capacity ? 2 : 1;
  pool.tokens -= <f64>granted;
  pool.reserved += granted;
  return granted;
}

/** Ends a reservation and gives back what was not used of it. */
// @ts-ignore: decorator
@inline
export function settle(pool: PoolState, granted: u32, used: u32): void {
  pool.reserved -= granted;
  add(pool, <f64>(granted - min(used, granted)));
}

/** Reserved tokens are still in the bucket as far as its capacity is concerned. */
// @ts-ignore: decorator
@inline
function add(pool: PoolState, tokens: f64): void {
  pool.tokens = max(min(pool.tokens + tokens, pool.capacity - <f64>pool.reserved), 0);
}

/** Follows the request rate and the ratio in force; to be called every tick. */
export function tickBudget(pool: PoolState, ratio: f64, stale: bool, elapsedSeconds: f64): void {
  if (elapsedSeconds > 0) {
    const share = min(elapsedSeconds / RATE_SECONDS, 1);
    pool.requestsPerSecond += (<f64>pool.arrivals / elapsedSeconds - pool.requestsPerSecond) * share;
    pool.arrivals = 0;
  }
  pool.ratio = stale ? min(ratio, STALE_RATIO) : ratio;
  pool.capacity = FLOOR_TOKENS + CAPACITY_SECONDS * pool.ratio * pool.requestsPerSecond;
  add(pool, 0);
}
