import fc from 'fast-check';
import type { OptimizerInput } from '../solution.js';
import { randomInput } from './random.js';

/** Loads with which nothing is at a hard limit. */
export const load = fc.double({ min: 0.3, max: 0.9, noNaN: true });
export const anyLoad = fc.double({ min: 0.3, max: 1.3, noNaN: true });

/** A fleet that is solved in milliseconds. */
export function smallInput(seed: number, at: number): OptimizerInput {
  return randomInput(seed, { frontends: 3, engines: 6, pools: 2, eligibility: 0.7, load: at });
}
