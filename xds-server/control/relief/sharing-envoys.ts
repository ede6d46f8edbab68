import type { Peers } from '../../peers/peers.js';
import type { SnapshotBoard } from '../../sync/snapshot-board.js';

/** An Envoy that has not called for this long does not share limits with the others. */
const GONE_MS = 10_000;

/** How many Envoys share limits, by the id of their frontend, those that call another control server included. */
export function sharingEnvoys(
  board: Pick<SnapshotBoard, 'envoysSince'>,
  peers: Pick<Peers, 'envoys'>,
  nowMs: number,
): ReadonlyMap<string, number> {
  const counts = new Map(board.envoysSince(nowMs - GONE_MS));
  for (const { frontendId } of peers.envoys(nowMs)) {
    counts.set(frontendId, (counts.get(frontendId) ?? 0) + 1);
  }
  return counts;
}
