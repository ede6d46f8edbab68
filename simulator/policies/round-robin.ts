import { envoysOf } from '../scenario.js';
import type { PolicyFactory } from './policy.js';

/** Each Envoy takes the ready engines in turn: the default of most proxies. */
export const roundRobin: PolicyFactory = ({ scenario, local }) => {
  const turns = envoysOf(scenario).map((_, envoy) => envoy);
  const { length } = scenario.engines;
  return {
    id: 'round-robin',
    decide({ frontend, envoy }) {
      for (let tries = 0; tries < length; tries++) {
        const engine = turns[envoy]!++ % length;
        if (local.ready[frontend]![engine]) return [engine, (engine + 1) % length];
      }
      return [turns[envoy]! % length];
    },
  };
};
