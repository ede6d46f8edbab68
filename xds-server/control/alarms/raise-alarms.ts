import type { Fleet } from '../../fleet/fleet.js';
import type { PeerView } from '../../peers/peers.js';
import type { Plan } from '../../plan/plan.js';
import type { ReplicaReading } from '../../signals/pages/replica-reading.js';
import type { Signals, SignalsView } from '../../signals/signals.js';
import type { Holder } from '../../sync/snapshot-board.js';
import type { NodeView } from '../../xds/index.js';
import {
  correctedEngines,
  differingPeers,
  doubtfulRoundTrips,
  downReplicas,
  drained,
  driftingProfiles,
  failingEngines,
  lackingEnvoys,
  lostPools,
  missingSignals,
  penalisedEngines,
  rejections,
  shedding,
  silentFilters,
  silentFrontends,
  silentPeers,
  undiscovered,
  unreadEnvoys,
} from './alarm-rules.js';
import type { Alarms } from './alarms.js';

/** What there is to know about engines and demand. */
export interface SeenFleet {
  readonly fleet: Fleet;
  readonly view: SignalsView;
  readonly signals: Pick<Signals, 'health' | 'orders'>;
  /** Of metrics pages, by address. */
  readonly readings: ReadonlyMap<string, ReplicaReading>;
  /** Why replicas cannot be found, by engine. */
  readonly discoveryProblems: ReadonlyMap<string, string>;
  /** The plan in force. */
  readonly plan: Plan | null;
}

/** What there is to know about Envoys. */
export interface SeenEnvoys {
  readonly nodes: readonly NodeView[];
  /** Those that call another control server, too. */
  readonly holders: readonly Pick<Holder, 'nodeId' | 'atMs'>[];
  /** Why reports are refused, by node. */
  readonly unread: ReadonlyMap<string, string>;
}

export function raiseFleetAlarms(alarms: Alarms, seen: SeenFleet, nowMs: number): void {
  const { fleet, view, signals, readings, discoveryProblems, plan } = seen;
  const health = (address: string) => signals.health(address, nowMs);
  if (view.isBlind) {
    alarms.raise('blind', 'no engine answers and no Envoy reports; the plan in force stays as it is');
  } else alarms.clear('blind');
  alarms.set('pool-lost', lostPools(view, fleet));
  alarms.set('frontend-silent', silentFrontends(view));
  alarms.set('engine-failing', failingEngines(view));
  alarms.set('replica-down', downReplicas(fleet, health));
  alarms.set('discovery', undiscovered(discoveryProblems));
  alarms.set('drained', drained(signals.orders));
  alarms.set('penalty', penalisedEngines(view));
  alarms.set('capacity', correctedEngines(view));
  alarms.set('profile-drift', driftingProfiles(view, nowMs));
  alarms.set('shedding', shedding(plan));
  alarms.set('signal-missing', missingSignals(fleet, readings, health, nowMs));
}

/** Of what takes longer to look through, or matters less at once. */
export function raiseSlowAlarms(alarms: Alarms, view: SignalsView, envoys: SeenEnvoys, nowMs: number): void {
  const { nodes, holders, unread } = envoys;
  alarms.set('network', doubtfulRoundTrips(view));
  alarms.set('envoy-rejects', rejections(nodes));
  alarms.set('envoy-lacks', lackingEnvoys(nodes));
  alarms.set('envoy-unread', unreadEnvoys(unread));
  alarms.set('envoy-silent', silentFilters(nodes, holders, unread, nowMs));
}

/** `unfitReason`: why the plan of the one that leads cannot be published here. */
export function raisePeerAlarms(
  alarms: Alarms,
  peers: readonly PeerView[],
  unfitReason: string | null,
): void {
  alarms.set('peer-silent', silentPeers(peers));
  alarms.set('peer-differs', differingPeers(peers, unfitReason));
}
