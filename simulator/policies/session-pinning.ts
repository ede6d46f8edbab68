import { Random } from '../random.js';
import { TwoChoices } from './least-request.js';
import type { PolicyFactory } from './policy.js';

/**
 * A table of conversations: the first turn goes by power of two choices, later ones to the same engine as long as it
 * is ready. The most hits a router without knowledge of block caches can get (Envoy's stateful session filter).
 */
export const sessionPinning: PolicyFactory = ({ scenario, seed, local }) => {
  const random = new Random(seed, 'session-pinning');
  const choice = new TwoChoices(
    scenario.engines.map(({ nominalRps }) => nominalRps),
    local,
    random,
  );
  return {
    id: 'session-pinning',
    decide({ frontend, conversation }) {
      const { lastEngine } = conversation;
      const fresh = choice.pick(frontend);
      return lastEngine >= 0 && local.ready[frontend]![lastEngine] ? [lastEngine, ...fresh] : fresh;
    },
  };
};
