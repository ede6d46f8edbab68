import type { PolicyFactory } from './policy.js';

/** The nearest engine that is ready: locality load balancing with failover, as meshes do it by default. */
export const nearest: PolicyFactory = ({ scenario, local }) => {
  const orders = scenario.rttMs.map((row) => row.map((_, index) => index).sort((a, b) => row[a]! - row[b]!));
  return {
    id: 'nearest',
    decide({ frontend }) {
      const order = orders[frontend]!;
      const ready = order.filter((engine) => local.ready[engine]);
      return (ready.length > 0 ? ready : order).slice(0, 2);
    },
  };
};
