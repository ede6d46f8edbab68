import { now } from '../../steady-clock.js';
import { ageSeconds } from '../age.js';
import type { ShownServer } from '../shown-server.js';

/**
 * Connected Envoys: what they accepted and rejected, and the snapshot they hold; of a node that is named, every single
 * resource, too.
 */
export function envoysView(server: ShownServer, nodeId?: string): object {
  const nowMs = now();
  const isShown = (holder: { readonly nodeId: string }) => nodeId === undefined || holder.nodeId === nodeId;
  const holders = server.board.holders().filter(isShown);
  const nodes = server.nodes().filter(isShown);
  const resources = nodeId === undefined ? {} : server.resourcesOf(nodeId);
  return {
    atMs: nowMs,
    envoys: nodes.map((node) => {
      const holder = holders.find(
        ({ nodeId, frontendId }) => nodeId === node.nodeId && frontendId === node.frontendId,
      );
      const types = Object.entries(node.types).map(([typeUrl, type]) => [
        typeUrl,
        {
          ...type,
          sent: withAge(type.sent, nowMs),
          acknowledged: withAge(type.acknowledged, nowMs),
          rejection: withAge(type.rejection, nowMs),
          ...(resources[typeUrl] !== undefined && { resources: resources[typeUrl] }),
        },
      ]);
      return {
        ...node,
        types: Object.fromEntries(types),
        snapshot: holder === undefined ? null : snapshotOf(server, holder),
      };
    }),
    /** Envoys that fetch snapshots but have no xDS stream now. */
    withoutStream: holders
      .filter(({ nodeId }) => !nodes.some((node) => node.nodeId === nodeId))
      .map((holder) => ({
        nodeId: holder.nodeId,
        frontendId: holder.frontendId,
        snapshot: snapshotOf(server, holder),
      })),
  };
}

function withAge<T extends { readonly atMs: number }>(mark: T | null, nowMs: number) {
  return mark === null ? null : { ...mark, ageSeconds: ageSeconds(mark.atMs, nowMs) };
}

/** The snapshot that an Envoy said it holds. */
export function snapshotOf(
  server: ShownServer,
  { frontendId, version, atMs }: { frontendId: string; version: number; atMs: number },
) {
  return { version, isNewest: server.board.current(frontendId)?.version === version, lastCallAtMs: atMs };
}
