import type { PolicyFactory } from './policy.js';

/**
 * Each frontend by itself takes the engine that was fastest for it: least round trip plus reported time to the
 * answer. Latency-based routing as in DNS and gateways; on stale reports everybody joins the same queue (Mitzenmacher,
 * "How useful is old information?", TPDS 2000).
 */
export const localBest: PolicyFactory = ({ scenario, local }) => {
  const nearestOf = scenario.rttMs.map((row) => row.indexOf(Math.min(...row)));
  let best = nearestOf;
  const engineSeconds = scenario.engines.map(() => 0);
  return {
    id: 'local-best',
    update({ engines }) {
      engines.forEach((engine, index) => {
        const { outputTokens } = scenario.frontends[0]!.source.expected;
        const seconds = engine.ttftSeconds + (outputTokens - 1) * engine.tbotSeconds;
        // An engine that nobody used is taken for empty, and its queue for what a report of it says.
        engineSeconds[index] = Number.isNaN(seconds)
          ? engine.waiting / scenario.engines[index]!.nominalRps
          : seconds;
      });
      best = scenario.rttMs.map((row) => {
        let chosen = -1;
        for (let engine = 0; engine < row.length; engine++) {
          if (!engines[engine]!.ready) continue;
          const cost = row[engine]! / 1000 + engineSeconds[engine]!;
          if (chosen < 0 || cost < row[chosen]! / 1000 + engineSeconds[chosen]!) chosen = engine;
        }
        return Math.max(0, chosen);
      });
    },
    decide({ frontend }) {
      const first = best[frontend]!;
      const other =
        nearestOf[frontend] === first ? (first + 1) % scenario.engines.length : nearestOf[frontend]!;
      return local.ready[frontend]![first] ? [first, other] : [other, first];
    },
  };
};
