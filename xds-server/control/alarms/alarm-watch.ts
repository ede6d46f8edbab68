import type { DatedCertificate } from '../../config/config.js';
import type { Fleet } from '../../fleet/fleet.js';
import type { PeerView } from '../../peers/peers.js';
import type { Plan } from '../../plan/plan.js';
import type { ReplicaReading } from '../../signals/pages/replica-reading.js';
import type { Signals, SignalsView } from '../../signals/signals.js';
import type { Holder } from '../../sync/snapshot-board.js';
import type { NodeView, Refusal } from '../../xds/index.js';
import {
  correctedEngines,
  differingPeers,
  doubtfulRoundTrips,
  downReplicas,
  drained,
  driftingProfiles,
  endingCertificates,
  failingEngines,
  lackingEnvoys,
  lostPools,
  missingSignals,
  penalisedEngines,
  refusedEnvoys,
  rejectingEngines,
  rejections,
  shedding,
  silentFilters,
  silentFrontends,
  silentPeers,
  stuckReplicas,
  undiscovered,
  unreadEnvoys,
} from './alarm-rules.js';
import type { Alarms } from './alarms.js';

/** Traffic, Envoys and peers are looked at this often only. */
const SLOW_INTERVAL_MS = 1_000;

/** What alarms are about. */
export interface Seen {
  readonly fleet: Fleet;
  readonly view: SignalsView;
  readonly signals: Pick<Signals, 'health' | 'orders' | 'traffic' | 'replicasInFlight'>;
  readonly certificates: readonly DatedCertificate[];
  /** Of metrics pages, by address. */
  readonly readings: ReadonlyMap<string, ReplicaReading>;
  /** Why replicas cannot be found, by engine. */
  readonly discoveryProblems: ReadonlyMap<string, string>;
  /** The plan in force. */
  readonly plan: Plan | null;
  readonly envoys: () => SeenEnvoys;
  readonly peers: () => readonly PeerView[];
  /** Why the plan of the control server that leads cannot be published here. */
  readonly unfitReason: string | null;
}

export interface SeenEnvoys {
  readonly nodes: readonly NodeView[];
  /** Those that call another control server, too. */
  readonly holders: readonly Pick<Holder, 'nodeId' | 'atMs'>[];
  readonly refusals: readonly Refusal[];
  /** Why reports are refused, by node. */
  readonly unread: ReadonlyMap<string, string>;
}

/** Raises alarms of what it is shown, and clears those that are over. */
export class AlarmWatch {
  readonly #alarms: Alarms;
  #slowAtMs = 0;

  constructor(alarms: Alarms) {
    this.#alarms = alarms;
  }

  look(seen: Seen, nowMs: number): void {
    this.#lookAtFleet(seen, nowMs);
    if (nowMs - this.#slowAtMs < SLOW_INTERVAL_MS) return;
    this.#slowAtMs = nowMs;
    this.#alarms.set('network', doubtfulRoundTrips(seen.view));
    const trafficOf = (engineId: string) => seen.signals.traffic.engine(engineId, nowMs);
    this.#alarms.set('engine-rejects', rejectingEngines(seen.fleet, trafficOf));
    this.#lookAtEnvoys(seen.envoys(), seen.fleet, nowMs);
    this.#lookAtPeers(seen.peers(), seen.unfitReason);
    this.#alarms.set('certificate', endingCertificates(seen.certificates, nowMs));
  }

  #lookAtFleet(
    { fleet, view, signals, readings, discoveryProblems, plan }: Omit<Seen, 'envoys' | 'peers'>,
    nowMs: number,
  ): void {
    const alarms = this.#alarms;
    const health = (address: string) => signals.health(address, nowMs);
    if (view.isBlind) {
      alarms.raise('blind', 'no engine answers and no Envoy reports; the plan in force stays as it is');
    } else alarms.clear('blind');
    alarms.set('pool-lost', lostPools(view, fleet));
    alarms.set('frontend-silent', silentFrontends(view));
    alarms.set('engine-failing', failingEngines(view));
    alarms.set('replica-down', downReplicas(fleet, health));
    alarms.set('replica-stuck', stuckReplicas(view, fleet));
    alarms.set('discovery', undiscovered(discoveryProblems));
    alarms.set('drained', drained(signals.orders));
    alarms.set(
      'penalty',
      penalisedEngines(view, fleet, () => signals.replicasInFlight(nowMs)),
    );
    alarms.set('capacity', correctedEngines(view));
    alarms.set('profile-drift', driftingProfiles(view, nowMs));
    alarms.set('shedding', shedding(plan, fleet));
    alarms.set('signal-missing', missingSignals(fleet, readings, health, nowMs));
  }

  #lookAtEnvoys({ nodes, holders, refusals, unread }: SeenEnvoys, { frontends }: Fleet, nowMs: number): void {
    const alarms = this.#alarms;
    alarms.set('envoy-rejects', rejections(nodes));
    alarms.set('envoy-refused', refusedEnvoys(refusals));
    alarms.set('envoy-lacks', lackingEnvoys(nodes));
    alarms.set('envoy-unread', unreadEnvoys(unread));
    alarms.set('envoy-silent', silentFilters(nodes, holders, unread, frontends, nowMs));
  }

  #lookAtPeers(peers: readonly PeerView[], unfitReason: string | null): void {
    this.#alarms.set('peer-silent', silentPeers(peers));
    this.#alarms.set('peer-differs', differingPeers(peers, unfitReason));
  }
}
