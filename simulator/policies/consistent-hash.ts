import { capacitiesOf, rowOf } from './choices.js';
import { normalised, ranked, usable } from './hashing.js';
import type { PolicyFactory } from './policy.js';

/** The conversation's hash decides, with fixed weights by nominal capacity: Envoy's ring hash or maglev as configured. */
export const consistentHash: PolicyFactory = ({ scenario, local }) => {
  const weights = capacitiesOf(scenario).map((rows) => rows.map(normalised));
  return {
    id: 'consistent-hash',
    decide: (request) =>
      ranked(request.conversation.hash, usable(rowOf(weights, request), local.ready[request.frontend]!)),
    weights: (frontend, pool) => weights[frontend]![pool],
  };
};
