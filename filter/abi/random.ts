import { mix64 } from '../hash';
import { randomBytes } from './host';

const SEED: usize = memory.data(16, 8);
let state: u64 = 0;
/** A random number that is the VM's own and stays. */
export let vmTurn: u32 = 0;

/** Seeds the generator from the host and returns a number that no other VM has. */
export function seedRandom(): u64 {
  randomBytes(SEED, 16);
  state = load<u64>(SEED);
  vmTurn = load<u32>(SEED, 12);
  return load<u64>(SEED, 8) | 1;
}

/** Uniform over all 64-bit numbers (SplitMix64 with the finalizer of MurmurHash3). */
export function random(): u64 {
  state += 0x9e3779b97f4a7c15;
  return mix64(state);
}
