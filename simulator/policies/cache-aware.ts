import { choicesOf, inTurn, readyOf, rowOf } from './choices.js';
import type { PolicyFactory } from './policy.js';
import { SessionTable } from './session-table.js';

/** Defaults of SGLang's router: match from which the cache decides, and the imbalance from which load does. */
const CACHE_THRESHOLD = 0.5;
const BALANCE_ABSOLUTE = 32;
const BALANCE_RELATIVE = 1.1;

/**
 * Cache-aware with thresholds, after SGLang's router (`cache_aware`): when its own requests in flight are unbalanced,
 * the shortest queue; else the engine whose prefix tree matches more than half of the prompt; else the shortest queue, too
 * (its older versions took the smallest tree). A conversation matches where its last turn was served; each Envoy knows what it sent.
 */
export const cacheAware: PolicyFactory = ({ scenario, local }) => {
  const choices = choicesOf(scenario);
  const table = new SessionTable(scenario);
  return {
    id: 'cache-aware',
    decide(request) {
      const { frontend, envoy, promptTokens } = request;
      const { engine: lastEngine, tokens: lastTokens } = table.last(request);
      const inFlight = local.inFlight[envoy]!;
      const engines = rowOf(choices, request);
      const ready = readyOf(engines, local.ready[frontend]!);
      if (ready.length === 0) return [lastEngine >= 0 ? lastEngine : engines[0]!];
      const byLoad = [...ready].sort((a, b) => inFlight[a]! - inFlight[b]!);
      const least = inFlight[byLoad[0]!]!;
      const most = inFlight[byLoad.at(-1)!]!;
      const isUnbalanced = most - least > BALANCE_ABSOLUTE && most > BALANCE_RELATIVE * least;
      const matches =
        lastEngine >= 0 && local.ready[frontend]![lastEngine] && lastTokens / promptTokens > CACHE_THRESHOLD;
      const first = matches && !isUnbalanced ? lastEngine : byLoad[0]!;
      return inTurn([first, ...byLoad, ...engines], local.ready[frontend]!);
    },
    ended(request, engine, _now, outcome) {
      if (outcome === 'answered') table.note(request, engine);
    },
  };
};
