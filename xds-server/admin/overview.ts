import type { NodeView } from '../xds/index.js';
import type { EnvoyView, Overview } from './dashboard.js';
import { snapshotOf } from './envoys-view.js';
import type { ShownServer } from './shown-server.js';

/** What dashboard and status show. */
export function overview(server: ShownServer): Overview {
  const atMs = Date.now();
  const inFlight = server.signals.inFlight(atMs);
  const { state, vetoes } = server.view;
  return {
    atMs,
    startedAtMs: server.startedAtMs,
    plan: server.plan,
    plannedBy: server.isPlanning ? null : (server.peers.leader ?? null),
    alarms: server.alarms.list,
    frontends: server.config.fleet.frontends,
    pools: server.config.fleet.pools,
    demands: state.demands,
    engines: state.engines.map((engine) => ({
      state: engine,
      inFlight: inFlight?.get(engine.id) ?? null,
      isLeftOut: vetoes.has(engine.id),
    })),
    envoys: envoyOverview(server),
  };
}

function envoyOverview(server: ShownServer): EnvoyView[] {
  const holders = server.board.holders();
  const nodes = server.nodes();
  const isSame = (one: { nodeId: string; frontendId: string }, other: typeof one) =>
    one.nodeId === other.nodeId && one.frontendId === other.frontendId;
  const snapshot = (id: { nodeId: string; frontendId: string }) => {
    const holder = holders.find((it) => isSame(it, id));
    return holder === undefined ? null : snapshotOf(server, holder);
  };
  return [
    ...nodes.map((node) => ({
      nodeId: node.nodeId,
      frontendId: node.frontendId,
      version: node.userAgentVersion,
      xds: acceptance(node),
      snapshot: snapshot(node),
    })),
    ...holders
      .filter((holder) => !nodes.some((node) => isSame(node, holder)))
      .map((holder) => ({
        nodeId: holder.nodeId,
        frontendId: holder.frontendId,
        version: '',
        xds: 'no stream' as const,
        snapshot: snapshotOf(server, holder),
      })),
  ];
}

function acceptance({ types }: NodeView): EnvoyView['xds'] {
  const statuses = Object.values(types).map(({ status }) => status);
  if (statuses.includes('rejected')) return 'rejects the newest';
  return statuses.includes('stale') ? 'behind' : 'all accepted';
}
