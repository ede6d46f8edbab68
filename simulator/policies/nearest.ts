import { choicesOf, inTurn, rowOf } from './choices.js';
import { mix } from './hashing.js';
import type { PolicyFactory } from './policy.js';

/**
 * The nearest engine that is ready: locality load balancing with failover, as meshes do it by default. Replicas at the
 * same distance share its conversations.
 */
export const nearest: PolicyFactory = ({ scenario, local }) => {
  const choices = choicesOf(scenario);
  return {
    id: 'nearest',
    decide(request) {
      const { frontend, conversation } = request;
      const rtt = scenario.rttMs[frontend]!;
      const byDistance = rowOf(choices, request)
        .map((engine) => ({ engine, ms: rtt[engine]!, score: mix(conversation.hash, engine) }))
        .sort((a, b) => a.ms - b.ms || b.score - a.score)
        .map(({ engine }) => engine);
      return inTurn(byDistance, local.ready[frontend]!);
    },
  };
};
