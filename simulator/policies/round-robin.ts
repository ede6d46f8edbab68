import type { PolicyFactory } from './policy.js';

/** Each frontend takes the ready engines in turn: the default of most proxies. */
export const roundRobin: PolicyFactory = ({ scenario, local }) => {
  const turns = scenario.frontends.map((_, frontend) => frontend);
  const { length } = scenario.engines;
  return {
    id: 'round-robin',
    decide({ frontend }) {
      for (let tries = 0; tries < length; tries++) {
        const engine = turns[frontend]!++ % length;
        if (local.ready[frontend]![engine]) return [engine, (engine + 1) % length];
      }
      return [turns[frontend]! % length];
    },
  };
};
