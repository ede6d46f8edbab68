// The retry budget of a pool, shared by the VMs of an Envoy: a token bucket in shared data, the ledger. A first
// attempt earns `ratio` tokens; a granted retry reserves one until the response headers tell whether it was used.
//
// VMs work with tokens that they have taken out of the ledger, and pay in what they earned when they go there: every
// tick, and in between when a request finds nothing left in its VM. Each exchange is one compare-and-set, so no token is ever
// spent twice: retries used, and tokens in the ledger, in VMs and reserved, together never exceed the tokens that the
// bucket began with plus those earned. A VM that is gone takes its tokens with it.

import { wallMs } from '../abi/clock';
import { resultAt } from '../abi/memory';
import { putScope, readShared, writeIfUnchanged } from '../abi/shared';
import { begin, discard, lengthFrom, put, putHex, Text } from '../abi/text';
import { PoolState } from './rows';

/** Tokens that a bucket begins with, and may hold however little it earns. */
const FLOOR_TOKENS: f64 = 10;
/** Above the floor, the bucket holds what is earned in this time. */
const CAPACITY_SECONDS: f64 = 30;
/** Highest ratio while the control server has not been heard of. */
const STALE_RATIO: f64 = 0.05;
/** Time constant of the smoothed request rate: as long, so that traffic that has just begun finds a bucket of what it has earned. */
const RATE_SECONDS: f64 = CAPACITY_SECONDS;
/** What a VM keeps of the tokens it needed at most in a tick, from one tick to the next. */
const NEED_KEPT: f64 = 0.95;
/** Tries to exchange when other VMs get in the way. */
const TRIES: i32 = 3;

const LEDGER: usize = memory.data(24, 8);
const TOKENS: usize = 0; // f64
const RATE: usize = 8; // f64, first attempts per second at the time of the last exchange
const UPDATED: usize = 16; // u64, milliseconds
const LEDGER_SIZE: usize = 24;

const PREFIX = new Text('wardrop/retries/');

/** A first attempt earns its share. */
// @ts-ignore: decorator
@inline
export function earn(pool: PoolState): void {
  pool.arrivals++;
  pool.earned += pool.ratio;
}

/** Takes a token for a retry that the client made by itself; false when there is none. */
export function chargeClientRetry(pool: PoolState): bool {
  pool.needed += 1;
  if (pool.tokens < 1) visitLedger(pool);
  if (pool.tokens < 1) return false;
  pool.tokens -= 1;
  return true;
}

/** Reserves tokens for at most `wanted` retries; the second of a request only while half of the bucket is free. */
export function reserve(pool: PoolState, wanted: i32): i32 {
  if (wanted == 0) return 0;
  pool.needed += 1;
  if (pool.tokens < 1) visitLedger(pool);
  if (pool.tokens < 1) return 0;
  const granted = wanted > 1 && pool.tokens >= 2 && pool.plenty ? 2 : 1;
  pool.needed += granted - 1;
  pool.tokens -= granted;
  return granted;
}

/** Ends a reservation and gives back what was not used of it. */
// @ts-ignore: decorator
@inline
export function settle(pool: PoolState, granted: i32, used: i32): void {
  if (used < granted) pool.tokens += granted - used;
}

/** Puts the ratio in force and lets the VM go to the ledger again; to be called every tick. */
export function tickBudget(pool: PoolState, ratio: f64, stale: bool): void {
  pool.ratio = stale ? min(ratio, STALE_RATIO) : ratio;
  pool.need = max(pool.need * NEED_KEPT, <f64>pool.needed);
  pool.needed = 0;
  if (pool.need < 0.1) pool.need = 0;
  pool.exhausted = false;
  if (pool.arrivals > 0 || pool.tokens > 0 || pool.need > 0) visitLedger(pool);
}

/**
 * Pays in what was earned and takes out, or brings back, up to what the VM needs. A ledger that had nothing left is
 * left alone until the next tick.
 */
function visitLedger(pool: PoolState): void {
  if (pool.exhausted) return;
  const key = begin();
  put(PREFIX);
  putHex(pool.key);
  putScope();
  const keyLength = lengthFrom(key);
  for (let i = 0; i < TRIES; i++) if (exchange(pool, key, keyLength)) break;
  discard(key);
}

/** False when another VM got in between; nothing has changed then. */
function exchange(pool: PoolState, key: usize, keyLength: usize): bool {
  const now = wallMs();
  if (!readShared(key, keyLength, LEDGER_SIZE)) {
    // Made without taking anything out, so that it does no harm if two VMs make it at once.
    store<f64>(LEDGER, FLOOR_TOKENS, TOKENS);
    store<f64>(LEDGER, 0, RATE);
    store<u64>(LEDGER, now, UPDATED);
    writeIfUnchanged(key, keyLength, LEDGER, LEDGER_SIZE);
    return false;
  }
  const ledger = resultAt();
  const updated = load<u64>(ledger, UPDATED);
  const seconds = now > updated ? <f64>(now - updated) / 1000.0 : 0;
  const rate =
    load<f64>(ledger, RATE) * Math.exp(-seconds / RATE_SECONDS) + <f64>pool.arrivals / RATE_SECONDS;
  const capacity = FLOOR_TOKENS + CAPACITY_SECONDS * pool.ratio * rate;
  const tokens = min(load<f64>(ledger, TOKENS) + pool.earned, capacity);
  // Twice the need of a tick, so that the ledger is rarely asked in between.
  const need = max(pool.need, <f64>pool.needed);
  const held = <f64>pool.tokens;
  const wanted = (need > 0 ? 2 + 2 * <i32>need : 0) - pool.tokens;
  const taken = min(wanted, <i32>tokens);
  store<f64>(LEDGER, min(tokens - <f64>taken, capacity), TOKENS);
  store<f64>(LEDGER, rate, RATE);
  store<u64>(LEDGER, now, UPDATED);
  if (!writeIfUnchanged(key, keyLength, LEDGER, LEDGER_SIZE)) return false;
  pool.tokens += taken;
  pool.earned = 0;
  pool.arrivals = 0;
  pool.plenty = (tokens + held) * 2 >= capacity;
  pool.exhausted = taken < wanted;
  return true;
}
