import type { Alarm } from '../../control/alarms/alarms.js';
import type { Demand, EngineState } from '../../fleet/fleet-state.js';
import type { PenaltyOrder } from '../../fleet/operations.js';
import type { Plan } from '../../plan/plan.js';
import type { CapacityView } from '../../signals/capacity/measured-capacity.js';
import type { EngineTraffic, FrontendTraffic } from '../../signals/usage/recent-traffic.js';
import { now } from '../../steady-clock.js';
import type { NodeView } from '../../xds/index.js';
import type { ShownServer } from '../shown-server.js';
import { snapshotOf } from './envoys-view.js';

/** What dashboard and status show, as it stands at one moment. */
export interface Overview {
  readonly atMs: number;
  /** When the control server started. */
  readonly startedAtMs: number;
  readonly plan: Plan | null;
  /** Address of the control server that makes the plans; null when this one does. */
  readonly plannedBy: string | null;
  /** Share of the keys of which decisions are followed. */
  readonly steered: number;
  readonly alarms: readonly Alarm[];
  readonly demands: readonly Demand[];
  readonly frontends: readonly { readonly id: string; readonly traffic: FrontendTraffic }[];
  readonly pools: readonly { readonly id: string; readonly engineIds: readonly string[] }[];
  readonly engines: readonly EngineView[];
  readonly envoys: readonly EnvoyView[];
}

export interface EngineView {
  readonly state: EngineState;
  /** Requests there by the reports of Envoys; null while nobody reports. */
  readonly inFlight: number | null;
  readonly traffic: EngineTraffic;
  /** Share of the capacity by its profile that it is planned with for what it was seen to get done. */
  readonly measuredShare: number;
  /** Left out of plans for a while, after failures that frontends saw. */
  readonly isLeftOut: boolean;
  /** Ids of pools of which all replicas seem lost, so that the last ones are kept in use. */
  readonly keptFor: readonly string[];
  /** Replicas that an operator took out of service by themselves. */
  readonly drainedReplicas: number;
  /** What an operator said of its penalty; null when nothing is in force. */
  readonly penaltyOrder: Pick<PenaltyOrder, 'kind' | 'untilMs'> | null;
  /** Ids of pools that plans leave it out of, as they have others, while it is kept in service for those that have nobody else. */
  readonly lastResortOf: readonly string[];
}

export interface EnvoyView {
  readonly nodeId: string;
  readonly frontendId: string;
  /** Empty while it has no xDS stream. */
  readonly version: string;
  readonly xds: 'all accepted' | 'behind' | 'rejects the newest' | 'no stream';
  /** Null while it fetches none. */
  readonly snapshot: { readonly isNewest: boolean; readonly lastCallAtMs: number } | null;
}

/** How things are now. */
export function overview(server: ShownServer): Overview {
  const atMs = now();
  const inFlight = server.signals.inFlight(atMs);
  const { state, vetoes, heldPools, capacities } = server.view;
  const measured = new Map(capacities.map((capacity) => [capacity.engineId, capacity]));
  const { drains, orders } = server.signals.orders;
  return {
    atMs,
    startedAtMs: server.startedAtMs,
    plan: server.plan,
    plannedBy: server.isPlanning ? null : (server.peers.leader ?? null),
    steered: server.config.steered,
    alarms: server.alarms.list,
    frontends: server.config.fleet.frontends.map(({ id }) => ({
      id,
      traffic: server.signals.traffic.frontend(id, atMs),
    })),
    pools: server.config.fleet.pools,
    demands: state.demands,
    engines: state.engines.map((engine) => ({
      state: engine,
      inFlight: inFlight?.get(engine.id) ?? null,
      traffic: server.signals.traffic.engine(engine.id, atMs),
      measuredShare: shareInForce(measured.get(engine.id)),
      isLeftOut: vetoes.has(engine.id),
      drainedReplicas: drains.filter(({ engineId, address }) => engineId === engine.id && address !== null)
        .length,
      penaltyOrder: orders.find(({ engineId, untilMs }) => engineId === engine.id && untilMs > atMs) ?? null,
      keptFor: state.fleet.pools.flatMap(({ id, engineIds }) =>
        heldPools.includes(id) && engineIds.includes(engine.id) ? [id] : [],
      ),
      lastResortOf: state.fleet.pools.flatMap(({ id, lastResortIds = [] }) =>
        lastResortIds.includes(engine.id) ? [id] : [],
      ),
    })),
    envoys: envoyOverview(server),
  };
}

function shareInForce(capacity: CapacityView | undefined): number {
  return capacity?.state === 'corrected' ? capacity.share : 1;
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
