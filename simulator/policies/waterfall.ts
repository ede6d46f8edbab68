import { pickTwo, usable } from './hashing.js';
import type { PolicyFactory } from './policy.js';

/** Part of the nominal capacity that is filled before demand spills over. */
const FULL = 0.9;
/** Smoothing of reported demand. */
const SMOOTHING = 0.2;

/**
 * Waterfall by region: demand fills the nearest engine up to its capacity and spills over to the next (Google's
 * Traffic Director; the baseline of SLATE, HotNets 2024). Here with the conversation's hash within the shares, which
 * the originals do not have: without it the comparison would be about caches.
 */
export const waterfall: PolicyFactory = ({ scenario, local, control }) => {
  const pairs = scenario.rttMs
    .flatMap((row, frontend) => row.map((rtt, engine) => ({ frontend, engine, rtt })))
    .sort((a, b) => a.rtt - b.rtt);
  const smoothed = [...scenario.expectedRps];
  let weights = fill();

  function fill(): number[][] {
    const left = scenario.engines.map(({ nominalRps }, engine) =>
      control.ready[engine] ? FULL * nominalRps : 0,
    );
    const rest = [...smoothed];
    const flows = scenario.frontends.map(() => scenario.engines.map(() => 0));
    for (const { frontend, engine } of pairs) {
      const flow = Math.min(rest[frontend]!, left[engine]!);
      flows[frontend]![engine]! += flow;
      rest[frontend]! -= flow;
      left[engine]! -= flow;
    }
    const total = scenario.engines.reduce((sum, { nominalRps }) => sum + nominalRps, 0);
    return flows.map((row, frontend) =>
      row.map((flow, engine) => {
        const spread = (rest[frontend]! * scenario.engines[engine]!.nominalRps) / total;
        return (flow + spread) / Math.max(1e-9, smoothed[frontend]!);
      }),
    );
  }

  return {
    id: 'waterfall',
    update({ demandRps }) {
      demandRps.forEach((rate, frontend) => {
        smoothed[frontend]! += SMOOTHING * (rate - smoothed[frontend]!);
      });
      weights = fill();
    },
    decide: ({ frontend, conversation }) =>
      pickTwo(conversation.hash, usable(weights[frontend]!, local.ready[frontend]!)),
    weights: (frontend) => weights[frontend],
  };
};
