import { type FormerOwner, HASH_SPACE, type Segment } from '../plan.js';
import { FormerOwners } from './former-owners.js';
import { Reshaping } from './reshape.js';
import { endOf } from './segments.js';
import { type Run, Tiling } from './tiling.js';

/** Runs of equal owner that a partition has at most, per eligible engine. */
export const MAX_RUNS_PER_ENGINE = 12;

/**
 * Runs that one engine has at most. Trading with each of n others at a border takes n/2 runs, so in large pools the
 * limit grows with the pool.
 */
export function maxRunsOfOneEngine(eligibleCount: number): number {
  return Math.max(14, Math.ceil(0.85 * eligibleCount));
}

/** Former owners that a partition remembers at most, per eligible engine. */
export const MAX_FORMER_PER_ENGINE = 8;

/** What the next partition of a row is made from. */
export interface PreviousPartition {
  /** Empty when there is none yet. */
  readonly segments: readonly Segment[];
  readonly former?: readonly FormerOwner[];
}

export interface Partition {
  readonly runs: readonly OwnedRun[];
  readonly former: readonly FormerOwner[];
}

/** A run of the hash space up to the next one's start, or the end. */
export interface OwnedRun {
  readonly start: number;
  readonly ownerId: string;
}

/**
 * Brings a partition to new lengths. The first one lays the engines side by side in the order of their ids, the same
 * for every frontend. Later ones move total variation, half the sum of |differences of length|, which is the least
 * possible. What moves is chosen in this order: parts of an engine that leaves go to their backups, where a guardrail
 * has already sent their conversations; engines that grow take back what they gave away last; what is left moves so
 * that few runs arise. Only when there are more runs than the limits allow, the smallest are exchanged, at twice their
 * size: about 0.1 % more moves in pools of 12 engines whose weights never stop changing, none in most fleets.
 *
 * `lengths` by engine id, integers that add up to 2^32; engines without one leave. When nobody is left (`lengths` is
 * empty) there are no runs, but everybody's parts are remembered.
 */
export function evolvePartition(
  previous: PreviousPartition,
  lengths: ReadonlyMap<string, number>,
  eligibleCount: number,
): Partition {
  if (lengths.size === 0) return allLeft(previous, eligibleCount);
  const ids = engineIds(previous, lengths);
  const indexes = new Map(ids.map((id, index) => [id, index]));
  const targets = ids.map((id) => lengths.get(id) ?? 0);
  const owners = previous.segments.map(({ start, ownerId }) => ({ start, owner: indexes.get(ownerId)! }));
  const former = new FormerOwners(
    (previous.former ?? []).map(({ start, end, engineId }) => ({
      start,
      end,
      owner: indexes.get(engineId)!,
    })),
  );

  const tiling = new Tiling(
    HASH_SPACE,
    owners.length > 0 || former.all().length > 0 ? owners : canonical(targets),
  );
  const reshaping = new Reshaping(tiling, targets, (start, end, from, to) =>
    former.transferred(start, end, from, to),
  );
  const lengthsBefore = tiling.lengths(ids.length);
  leaveToBackups(reshaping, previous.segments, indexes, targets);
  takeBack(reshaping, former, lengthsBefore);
  reshaping.finish();
  reshaping.trim(maxRunsOfOneEngine(eligibleCount), MAX_RUNS_PER_ENGINE * eligibleCount);

  return {
    runs: tiling.runs().map(({ start, owner }) => ({ start, ownerId: ids[owner]! })),
    former: former
      .remembered(MAX_FORMER_PER_ENGINE * eligibleCount, (owner) => targets[owner] === 0)
      .map(({ start, end, owner }) => ({ start, end, engineId: ids[owner]! })),
  };
}

function allLeft(previous: PreviousPartition, eligibleCount: number): Partition {
  const left = previous.segments.map(({ start, ownerId }, index) => ({
    start,
    end: endOf(previous.segments, index),
    engineId: ownerId,
  }));
  const former = [...left, ...(previous.former ?? [])];
  return { runs: [], former: former.slice(0, Math.max(left.length, MAX_FORMER_PER_ENGINE * eligibleCount)) };
}

function engineIds(previous: PreviousPartition, lengths: ReadonlyMap<string, number>): string[] {
  const ids = new Set(lengths.keys());
  for (const { ownerId, backupId } of previous.segments) {
    ids.add(ownerId);
    if (backupId !== null) ids.add(backupId);
  }
  for (const { engineId } of previous.former ?? []) ids.add(engineId);
  return [...ids].sort();
}

/** Owners side by side in their order. */
function canonical(targets: readonly number[]): Run[] {
  const runs: Run[] = [];
  let start = 0;
  targets.forEach((length, owner) => {
    if (length > 0) runs.push({ start, owner });
    start += length;
  });
  return runs;
}

function leaveToBackups(
  reshaping: Reshaping,
  segments: readonly Segment[],
  indexes: ReadonlyMap<string, number>,
  targets: readonly number[],
): void {
  segments.forEach(({ start, ownerId, backupId }, index) => {
    if (backupId === null || targets[indexes.get(ownerId)!]! > 0) return;
    reshaping.transferParts(start, endOf(segments, index), indexes.get(backupId)!, true);
  });
}

/**
 * An engine that returns takes back all it can, so that it finds the conversations that it had. One that only grows
 * does so where that adds no run: memories of many small changes would shred the partition.
 */
function takeBack(reshaping: Reshaping, former: FormerOwners, before: readonly number[]): void {
  for (const { start, end, owner } of former.all()) {
    reshaping.transferParts(start, end, owner, before[owner] === 0);
  }
}
