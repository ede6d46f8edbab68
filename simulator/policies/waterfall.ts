import { expectedRpsOf } from '../scenario.js';
import { choicesOf, rowOf } from './choices.js';
import { pickTwo, usable } from './hashing.js';
import type { PolicyFactory } from './policy.js';

/** Part of the nominal capacity that is filled before demand spills over. */
const FULL = 0.9;
/** Smoothing of reported demand. */
const SMOOTHING = 0.2;
/** Where nothing was asked for yet, there are weights all the same. */
const LEAST_RPS = 1e-9;

/**
 * Waterfall by region: demand fills the nearest engine up to its capacity and spills over to the next (Google's
 * Traffic Director; the baseline of SLATE, HotNets 2024). Here with the conversation's hash within the shares, which
 * the originals do not have: without it the comparison would be about caches. At the same distance, who has fewer choices
 * is served first.
 */
export const waterfall: PolicyFactory = ({ scenario, local, control }) => {
  const choices = choicesOf(scenario);
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
    const left = scenario.engines.map(({ nominalRps }, engine) =>
      control.ready[engine] ? FULL * nominalRps : 0,
    );
    const demand = smoothed.map((rates) => rates.map((rate) => Math.max(LEAST_RPS, rate)));
    const rest = demand.map((rates) => [...rates]);
    const flows = choices.map((rows) => rows.map(() => scenario.engines.map(() => 0)));
    for (const { frontend, pool, replicas } of ways) {
      const room = replicas.reduce((sum, engine) => sum + left[engine]!, 0);
      const filled = room === 0 ? 0 : Math.min(1, rest[frontend]![pool]! / room);
      for (const engine of replicas) {
        const flow = filled * left[engine]!;
        flows[frontend]![pool]![engine]! += flow;
        rest[frontend]![pool]! -= flow;
        left[engine]! -= flow;
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
    decide: (request) =>
      pickTwo(request.conversation.hash, usable(rowOf(weights, request), local.ready[request.frontend]!)),
    weights: (frontend, pool) => weights[frontend]![pool],
  };
};
