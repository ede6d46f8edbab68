import { Random } from '../random.js';
import { pickTwo, usable } from './hashing.js';
import type { PolicyFactory } from './policy.js';

/** A random engine in proportion to nominal capacity. */
export const randomByCapacity: PolicyFactory = ({ scenario, seed, local }) => {
  const random = new Random(seed, 'random-by-capacity');
  const weights = scenario.engines.map(({ nominalRps }) => nominalRps);
  return {
    id: 'random',
    decide: ({ frontend }) => pickTwo(random.bits(), usable(weights, local.ready[frontend]!)),
  };
};
