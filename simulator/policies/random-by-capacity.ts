import { Random } from '../random.js';
import { capacitiesOf, rowOf } from './choices.js';
import { ranked, usable } from './hashing.js';
import type { PolicyFactory } from './policy.js';

/** A random engine in proportion to nominal capacity. */
export const randomByCapacity: PolicyFactory = ({ scenario, seed, local }) => {
  const random = new Random(seed, 'random-by-capacity');
  const weights = capacitiesOf(scenario);
  return {
    id: 'random',
    decide: (request) =>
      ranked(random.bits(), usable(rowOf(weights, request), local.ready[request.frontend]!)),
  };
};
