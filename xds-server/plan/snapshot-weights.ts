import type { SnapshotEngine, SnapshotPool } from '../../wire/snapshot-view.js';
import { endOf } from './partition/segments.js';
import { HASH_SPACE, type Weight } from './plan.js';

/** What each engine owns of the hash space, by the partition in a snapshot. */
export function snapshotWeights(
  { segments }: Pick<SnapshotPool, 'segments'>,
  engines: readonly Pick<SnapshotEngine, 'id'>[],
): readonly Weight[] {
  const owned = new Map<string, number>();
  for (const [index, { start, owner }] of segments.entries()) {
    const { id } = engines[owner]!;
    owned.set(id, (owned.get(id) ?? 0) + (endOf(segments, index) - start) / HASH_SPACE);
  }
  return [...owned].map(([engineId, weight]) => ({ engineId, weight }));
}
