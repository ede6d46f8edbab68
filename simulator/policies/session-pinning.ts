import { Random } from '../random.js';
import { TwoChoices } from './least-request.js';
import type { Policy, PolicyContext, PolicyFactory, RoutedRequest } from './policy.js';
import { SessionTable } from './session-table.js';

/**
 * A table of conversations in each Envoy: the first turn goes by power of two choices, later ones to the same engine as
 * long as it is ready. The most hits a router without knowledge of block caches can get, where it sees every turn: a
 * turn that comes through another Envoy of the frontend is chosen for anew there.
 */
export const sessionPinning: PolicyFactory = (context) => {
  const table = new SessionTable(context.scenario);
  return {
    ...pinned('session-pinning', context, (request) => table.last(request).engine),
    ended(request, engine, _now, outcome) {
      if (outcome === 'answered') table.note(request, engine);
    },
  };
};

/**
 * The same with clients that carry the engine back in a cookie or header (Envoy's stateful session filter), so that
 * any Envoy knows it. Clients of the OpenAI API do not.
 */
export const sessionCookie: PolicyFactory = (context) =>
  pinned('session-cookie', context, ({ conversation }) => conversation.lastEngine);

function pinned(
  id: string,
  { scenario, seed, local }: PolicyContext,
  lastEngine: (request: RoutedRequest) => number,
): Policy {
  const choice = new TwoChoices(scenario, local, new Random(seed, 'session-pinning'));
  return {
    id,
    decide(request) {
      const last = lastEngine(request);
      return choice.pick(request, last >= 0 ? [last] : []);
    },
  };
}
