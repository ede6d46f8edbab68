import type { PeerView } from '../../peers/peers.js';
import { now } from '../../steady-clock.js';
import type { ShownServer } from '../shown-server.js';

/** The part of a control server among several, and what it knows of the others. */
export interface PeersView {
  readonly atMs: number;
  /** Names this process. */
  readonly instance: string;
  /** `alone`: another one leads, but its plan does not fit here. `waits`: nobody leads yet. */
  readonly role: 'leads' | 'follows' | 'alone' | 'waits';
  /** Grows with every take-over. */
  readonly term: number;
  /** Where the plans come from; null: they are made here, or nobody leads. */
  readonly follows: string | null;
  /** Why they cannot be published here. */
  readonly unfitReason: string | null;
  readonly planSequence: number | null;
  readonly peers: readonly PeerView[];
}

export function peersView(server: ShownServer): PeersView {
  const { unfitReason, peers, plan } = server;
  const { instance, term } = peers.claim;
  return {
    atMs: now(),
    instance,
    role: roleOf(server),
    term,
    follows: peers.leader ?? null,
    unfitReason,
    planSequence: plan?.sequence ?? null,
    peers: server.peerViews(),
  };
}

function roleOf({ peers, isPlanning }: ShownServer): PeersView['role'] {
  if (peers.claim.leads) return 'leads';
  if (isPlanning) return 'alone';
  return peers.leader === undefined ? 'waits' : 'follows';
}
