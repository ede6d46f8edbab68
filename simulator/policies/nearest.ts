import { pickTwo } from './hashing.js';
import type { PolicyFactory } from './policy.js';

/**
 * The nearest engine that is ready: locality load balancing with failover, as meshes do it by default. Replicas at the
 * same distance share its conversations.
 */
export const nearest: PolicyFactory = ({ scenario, local }) => ({
  id: 'nearest',
  decide({ frontend, conversation }) {
    const rtt = scenario.rttMs[frontend]!;
    const isReady = local.ready[frontend]!.some(Boolean) ? local.ready[frontend]! : rtt.map(() => true);
    const may = rtt.map((_, engine) => isReady[engine]! && (conversation.eligible?.[engine] ?? true));
    const first = nearestOf(rtt, may, conversation.hash);
    const second = nearestOf(
      rtt,
      may.map((value, engine) => value && engine !== first),
      conversation.hash,
    );
    return [first, second].filter((engine) => engine >= 0);
  },
});

function nearestOf(rtt: readonly number[], may: readonly boolean[], hash: number): number {
  const least = Math.min(...rtt.filter((_, engine) => may[engine]));
  const [first = -1] = pickTwo(
    hash,
    rtt.map((ms, engine) => (may[engine] && ms === least ? 1 : 0)),
  );
  return first;
}
