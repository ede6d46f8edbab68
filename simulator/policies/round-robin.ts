import { envoysOf } from '../scenario.js';
import { choicesOf, inTurn, rowOf } from './choices.js';
import type { PolicyFactory } from './policy.js';

/** Each Envoy takes the ready engines of a pool in turn: the default of most proxies. */
export const roundRobin: PolicyFactory = ({ scenario, local }) => {
  const choices = choicesOf(scenario);
  const turns = envoysOf(scenario).map((_, envoy) => scenario.pools.map(() => envoy));
  return {
    id: 'round-robin',
    decide(request) {
      const { frontend, envoy, pool } = request;
      const engines = rowOf(choices, request);
      const at = (turn: number) => engines[turn % engines.length]!;
      for (let tries = 0; tries < engines.length; tries++) {
        const turn = turns[envoy]![pool]!++;
        if (!local.ready[frontend]![at(turn)]) continue;
        const next = engines.map((_, index) => at(turn + index));
        return inTurn(next, local.ready[frontend]!);
      }
      return [at(turns[envoy]![pool]!)];
    },
  };
};
