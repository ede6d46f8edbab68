import { normalised, pickTwo, usable } from './hashing.js';
import type { PolicyFactory } from './policy.js';

/** The conversation's hash decides, with fixed weights by nominal capacity: Envoy's ring hash or maglev as configured. */
export const consistentHash: PolicyFactory = ({ scenario, local }) => {
  const weights = normalised(scenario.engines.map(({ nominalRps }) => nominalRps));
  return {
    id: 'consistent-hash',
    decide: ({ frontend, conversation }) =>
      pickTwo(conversation.hash, usable(weights, local.ready[frontend]!)),
    weights: () => weights,
  };
};
