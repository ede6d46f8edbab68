import { choicesOf, readyOf, rowOf } from './choices.js';
import { rendezvous } from './hashing.js';
import type { PolicyFactory } from './policy.js';

/**
 * The nearest engine that is ready: locality load balancing with failover, as meshes do it by default. Replicas at the
 * same distance share its conversations.
 */
export const nearest: PolicyFactory = ({ scenario, local }) => {
  const choices = choicesOf(scenario);
  return {
    id: 'nearest',
    decide(request) {
      const { frontend, conversation } = request;
      const rtt = scenario.rttMs[frontend]!;
      const engines = rowOf(choices, request);
      const ready = readyOf(engines, local.ready[frontend]!);
      const may = ready.length > 0 ? ready : engines;
      const first = nearestOf(rtt, may, conversation.hash);
      const rest = may.filter((engine) => engine !== first);
      return rest.length === 0 ? [first] : [first, nearestOf(rtt, rest, conversation.hash)];
    },
  };
};

/** One of these. */
function nearestOf(rtt: readonly number[], engines: readonly number[], hash: number): number {
  const least = Math.min(...engines.map((engine) => rtt[engine]!));
  return rendezvous(
    hash,
    rtt.map((ms, engine) => (ms === least && engines.includes(engine) ? 1 : 0)),
  );
}
