import type { ShownServer } from './shown-server.js';

/** This control server's part, and what it knows of the others. */
export function peersView(server: ShownServer): object {
  const { isPlanning, unfitReason, peers, plan } = server;
  const { instance, term, leads } = peers.claim;
  return {
    atMs: Date.now(),
    instance,
    /** `alone`: another one leads, but its plan does not fit here. `waits`: nobody leads yet. */
    role: leads ? 'leads' : isPlanning ? 'alone' : peers.leader === undefined ? 'waits' : 'follows',
    term,
    follows: peers.leader ?? null,
    unfitReason,
    planSequence: plan?.sequence ?? null,
    peers: server.peerViews(),
  };
}
