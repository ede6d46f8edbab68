import { choicesOf, inTurn, rowOf } from './choices.js';
import { mix } from './hashing.js';
import type { PolicyFactory } from './policy.js';

/** Load may exceed the mean by this factor (KubeAI's and HAProxy's usual 125 %). */
const BOUND = 1.25;

/**
 * Consistent hashing with bounded loads (Mirrokni, Thorup and Zadimoghaddam 2018), as KubeAI and HAProxy do it: the
 * first engine in the conversation's own order that is not above 1.25 times its capacity's share of what this
 * Envoy has in flight.
 */
export const boundedLoadHash: PolicyFactory = ({ scenario, local }) => {
  const choices = choicesOf(scenario);
  const capacities = scenario.engines.map(({ nominalRps }) => nominalRps);
  return {
    id: 'bounded-load',
    decide(request) {
      const { frontend, envoy, conversation } = request;
      const inFlight = local.inFlight[envoy]!;
      const scores = capacities.map((weight, engine) =>
        local.ready[frontend]![engine]
          ? -weight / Math.log((mix(conversation.hash, engine) + 0.5) / 2 ** 32)
          : 0,
      );
      const order = [...rowOf(choices, request)].sort((a, b) => scores[b]! - scores[a]!);
      let flying = 1;
      let capacity = 0;
      for (const engine of order) {
        if (scores[engine]! === 0) continue;
        flying += inFlight[engine]!;
        capacity += capacities[engine]!;
      }
      const fits = order.find(
        (engine) =>
          scores[engine]! > 0 &&
          inFlight[engine]! + 1 <= Math.ceil((BOUND * flying * capacities[engine]!) / capacity),
      );
      return inTurn(fits === undefined ? order : [fits, ...order], local.ready[frontend]!);
    },
  };
};
