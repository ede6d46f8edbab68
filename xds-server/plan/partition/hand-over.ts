import { HASH_SPACE, type PlanRow } from '../plan.js';
import { assignBackups } from './backups.js';
import { evolvePartition } from './partition.js';
import { quantise } from './quantise.js';
import { endOf } from './segments.js';

/**
 * A row without the engines that cannot serve it: each of their segments goes to its backup, or, where that cannot
 * serve either, is spread over the remaining engines of the row in proportion to their weights, or evenly over
 * `candidates` when the row has none left. When nobody at all can serve, the row stays as it is, because it then
 * makes no difference and the engines may come back.
 *
 * `candidates` are the engines of the row's pool, `canServe` tells which of them are alive.
 */
export function handOver(
  row: PlanRow,
  candidates: readonly string[],
  canServe: (engineId: string) => boolean,
): PlanRow {
  if (row.weights.every(({ engineId }) => canServe(engineId))) return row;
  const lengths = survivingLengths(row, candidates, canServe);
  if (lengths.size === 0) return row;
  const { runs, former } = evolvePartition(row, lengths, candidates.length);
  const weights = [...lengths].map(([engineId, length]) => ({ engineId, weight: length / HASH_SPACE }));
  const shares = weights.map(({ engineId }) => ({
    ownerId: engineId,
    shares: weights.filter((other) => other.engineId !== engineId),
  }));
  return { ...row, weights, segments: assignBackups(runs, row.segments, shares, canServe), former };
}

function survivingLengths(
  row: PlanRow,
  candidates: readonly string[],
  canServe: (engineId: string) => boolean,
): Map<string, number> {
  const lengths = new Map<string, number>();
  const add = (id: string, length: number) => lengths.set(id, (lengths.get(id) ?? 0) + length);
  let orphaned = 0;
  row.segments.forEach(({ start, ownerId, backupId }, index) => {
    const length = endOf(row.segments, index) - start;
    if (canServe(ownerId)) add(ownerId, length);
    else if (backupId !== null && canServe(backupId)) add(backupId, length);
    else orphaned += length;
  });
  if (lengths.size === 0) for (const id of candidates) if (canServe(id)) lengths.set(id, 1);
  if (lengths.size === 0) return lengths;
  // A candidate's 1 is only a proportion: the orphans are the whole space then.
  const survivors = [...lengths].sort(([a], [b]) => (a < b ? -1 : 1));
  const whole = orphaned === HASH_SPACE;
  const extra = quantise(
    survivors.map(([, length]) => length),
    orphaned,
  );
  return new Map(survivors.map(([id, length], index) => [id, (whole ? 0 : length) + extra[index]!]));
}
