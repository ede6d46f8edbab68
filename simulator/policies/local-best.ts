import type { Scenario } from '../scenario.js';
import { choicesOf, inTurn, rowOf } from './choices.js';
import type { PolicyFactory } from './policy.js';

/**
 * Each frontend by itself takes the engine that was fastest for it: least round trip plus reported time to the
 * answer. Latency-based routing as in DNS and gateways; on stale reports everybody joins the same queue (Mitzenmacher,
 * "How useful is old information?", TPDS 2000).
 */
export const localBest: PolicyFactory = ({ scenario, local }) => {
  const choices = choicesOf(scenario);
  const nearestOf = choices.map((rows, frontend) =>
    rows.map((engines) => leastBy(engines, (engine) => scenario.rttMs[frontend]![engine]!)),
  );
  const answers = scenario.pools.map((_, pool) => answerTokensOf(scenario, pool));
  let best = nearestOf;
  return {
    id: 'local-best',
    update({ engines }) {
      const seconds = (engine: number, pool: number) => {
        const { ttftSeconds, tbotSeconds, waiting } = engines[engine]!;
        const measured = ttftSeconds + (answers[pool]! - 1) * tbotSeconds;
        // An engine that nobody used is taken for empty, and its queue for what a report of it says.
        return Number.isNaN(measured) ? waiting / scenario.engines[engine]!.nominalRps : measured;
      };
      best = choices.map((rows, frontend) =>
        rows.map((all, pool) => {
          const ready = all.filter((engine) => engines[engine]!.ready);
          const cost = (engine: number) => scenario.rttMs[frontend]![engine]! / 1000 + seconds(engine, pool);
          return ready.length === 0 ? all[0]! : leastBy(ready, cost);
        }),
      );
    },
    decide(request) {
      const engines = [rowOf(best, request), rowOf(nearestOf, request), ...rowOf(choices, request)];
      return inTurn(engines, local.ready[request.frontend]!);
    },
  };
};

/** The first of the least. */
function leastBy(engines: readonly number[], cost: (engine: number) => number): number {
  return engines.reduce((best, engine) => (cost(engine) < cost(best) ? engine : best));
}

/** Of the first demand for the pool. */
function answerTokensOf({ frontends, classes }: Scenario, pool: number): number {
  const demand = frontends
    .flatMap(({ demands }) => demands)
    .find(({ classShares }) => classes.some((each, index) => each.pool === pool && classShares[index]! > 0));
  return demand?.source.expected.outputTokens ?? 1;
}
