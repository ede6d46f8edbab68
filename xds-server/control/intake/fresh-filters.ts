import type { SnapshotBoard } from '../../sync/snapshot-board.js';
import { EXTENSION_TYPE, type NodeView } from '../../xds/index.js';

/** A filter that was given longer ago has its snapshot, or will have none. */
const FRESH_MS = 10_000;

/**
 * Whether an Envoy has just been given a filter and has not been seen to hold the newest snapshot since. A filter of
 * another version than the one before may be unable to read what that has left, and refuses requests until it has one.
 */
export function hasFreshFilter(
  nodes: readonly NodeView[],
  board: Pick<SnapshotBoard, 'current' | 'holders'>,
  nowMs: number,
): boolean {
  const holders = board.holders();
  return nodes.some(({ nodeId, frontendId, types }) => {
    const given = types[EXTENSION_TYPE]?.sent;
    const newest = board.current(frontendId)?.version;
    if (given == null || newest === undefined || nowMs - given.atMs > FRESH_MS) return false;
    return !holders.some(
      (holder) =>
        holder.nodeId === nodeId &&
        holder.frontendId === frontendId &&
        holder.version === newest &&
        holder.atMs >= given.atMs,
    );
  });
}
