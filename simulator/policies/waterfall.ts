import { expectedRpsOf, workOf } from '../scenario.js';
import { choicesOf, inTurn, rowOf } from './choices.js';
import { ranked, usable } from './hashing.js';
import type { PolicyFactory } from './policy.js';

/** Part of the capacity that is filled before demand spills over. */
const FULL = 0.9;
/** Smoothing of reported demand. */
const SMOOTHING = 0.2;
/** Where nothing was asked for yet, there are weights all the same. */
const LEAST_RPS = 1e-9;

/**
 * Waterfall by region: demand fills the nearest engine up to its capacity and spills over to the next (Google's
 * Traffic Director; the baseline of SLATE, HotNets 2024). Here with the conversation's hash within the shares, which
 * the originals do not have: without it the comparison would be about caches. At the same distance, who has fewer choices
 * is served first. Where engines fail that have a share, the nearest of the others follow, as Envoy's priorities have it.
 */
export const waterfall: PolicyFactory = ({ scenario, local, control }) => {
  const choices = choicesOf(scenario);
  const work = workOf(scenario);
  const byDistance = choices.map((rows, frontend) => {
    const rtt = scenario.rttMs[frontend]!;
    return rows.map((engines) => [...engines].sort((a, b) => rtt[a]! - rtt[b]!));
  });
  /** Replicas are filled together. */
  const replicasOf = (engine: number) =>
    scenario.engines.flatMap(({ engineId }, other) =>
      engineId === scenario.engines[engine]!.engineId ? [other] : [],
    );
  const ways = choices
    .flatMap((rows, frontend) =>
      rows.flatMap((engines, pool) =>
        engines
          .filter((engine) => replicasOf(engine)[0] === engine)
          .map((engine) => {
            const rtt = scenario.rttMs[frontend]![engine]!;
            return { frontend, pool, replicas: replicasOf(engine), rtt, choices: engines.length };
          }),
      ),
    )
    .sort((a, b) => a.rtt - b.rtt || a.choices - b.choices);
  const smoothed = expectedRpsOf(scenario);
  let weights = fill();

  function fill(): number[][][] {
    /** Replica-seconds per second. */
    const left = scenario.engines.map((_, engine) => (control.ready[engine] ? FULL : 0));
    const demand = smoothed.map((rates) => rates.map((rate) => Math.max(LEAST_RPS, rate)));
    const rest = demand.map((rates) => [...rates]);
    const flows = choices.map((rows) => rows.map(() => scenario.engines.map(() => 0)));
    for (const { frontend, pool, replicas } of ways) {
      const { believedSlowness = 1 } = scenario.engines[replicas[0]!]!;
      const secondsEach = believedSlowness * work[frontend]![pool]![replicas[0]!]!;
      const room = replicas.reduce((sum, engine) => sum + left[engine]!, 0) / secondsEach;
      const filled = room > 0 ? Math.min(1, rest[frontend]![pool]! / room) : 0;
      for (const engine of replicas) {
        const flow = (filled * left[engine]!) / secondsEach;
        flows[frontend]![pool]![engine]! += flow;
        rest[frontend]![pool]! -= flow;
        left[engine]! -= filled * left[engine]!;
      }
    }
    return choices.map((rows, frontend) =>
      rows.map((engines, pool) => {
        const total = engines.reduce((sum, engine) => sum + scenario.engines[engine]!.nominalRps, 0);
        const row = flows[frontend]![pool]!;
        for (const engine of engines) {
          row[engine]! += (rest[frontend]![pool]! * scenario.engines[engine]!.nominalRps) / total;
        }
        return row.map((flow) => flow / demand[frontend]![pool]!);
      }),
    );
  }

  return {
    id: 'waterfall',
    update({ demandRps }) {
      demandRps.forEach((rates, frontend) => {
        rates.forEach((rate, pool) => {
          smoothed[frontend]![pool]! += SMOOTHING * (rate - smoothed[frontend]![pool]!);
        });
      });
      weights = fill();
    },
    decide(request) {
      const ready = local.ready[request.frontend]!;
      const sharing = ranked(request.conversation.hash, usable(rowOf(weights, request), ready));
      return inTurn([...sharing, ...rowOf(byDistance, request)], ready);
    },
    weights: (frontend, pool) => weights[frontend]![pool],
  };
};
