import type { BackupShares } from '../optimizer/solution.js';
import type { OwnedRun } from './partition.js';
import type { Segment } from './plan.js';
import { quantise } from './quantise.js';
import { Reshaping } from './reshape.js';
import { endOf, partsOf } from './segments.js';
import { NOBODY, Tiling } from './tiling.js';

/** Backup engines with a smaller share of an owner's traffic are left out. */
export const MIN_BACKUP_SHARE = 1 / 32;
/** An owner's backups stay as they are while less than this share of its traffic would get another backup. */
export const BACKUP_DEAD_BAND = 0.1;
/** Segments of one owner, as far as its runs leave room; an owner's space is cut into at least `MIN_BACKUP_PARTS`. */
export const MAX_SEGMENTS_PER_OWNER = 16;
export const MIN_BACKUP_PARTS = 4;

/**
 * Cuts the runs of a partition into segments with a backup each, so that each owner's length is split over backup
 * engines in proportion to `shares`. What had a backup before keeps it as far as the shares allow, because a backup
 * is a move to be; new parts take the engine next door, so that a later hand-over joins its runs.
 *
 * `previous` are the segments in force, `usable` tells which engines could take over now.
 */
export function assignBackups(
  runs: readonly OwnedRun[],
  previous: readonly Segment[],
  shares: readonly BackupShares[],
  usable: (engineId: string) => boolean,
): Segment[] {
  const sharesOf = new Map(shares.map((entry) => [entry.ownerId, entry.shares]));
  const spaces = ownerSpaces(runs);
  const segments: Segment[] = [];
  for (const [ownerId, space] of spaces) {
    const wanted = new Map<string, number>();
    for (const { engineId, weight } of sharesOf.get(ownerId) ?? []) {
      if (engineId !== ownerId && weight > 0) wanted.set(engineId, weight);
    }
    segments.push(...split(ownerId, space, wanted, previous, usable));
  }
  return segments.sort((a, b) => a.start - b.start);
}

/** A run of one owner, and where it lies on the line that joins all runs of that owner. */
interface Stretch {
  readonly start: number;
  readonly end: number;
  readonly at: number;
  readonly leftId: string | undefined;
  readonly rightId: string | undefined;
}

function ownerSpaces(runs: readonly OwnedRun[]): Map<string, Stretch[]> {
  const spaces = new Map<string, Stretch[]>();
  runs.forEach(({ start, ownerId }, index) => {
    const space = spaces.get(ownerId) ?? [];
    spaces.set(ownerId, space);
    const before = space.at(-1);
    space.push({
      start,
      end: endOf(runs, index),
      at: before === undefined ? 0 : before.at + before.end - before.start,
      leftId: runs[index - 1]?.ownerId,
      rightId: runs[index + 1]?.ownerId,
    });
  });
  return spaces;
}

function split(
  ownerId: string,
  space: readonly Stretch[],
  wanted: ReadonlyMap<string, number>,
  previous: readonly Segment[],
  usable: (engineId: string) => boolean,
): Segment[] {
  if (wanted.size === 0) return space.map(({ start }) => ({ start, ownerId, backupId: null }));
  const last = space.at(-1)!;
  const length = last.at + last.end - last.start;
  const inherited = inheritedBackups(ownerId, space, previous);
  const maxParts = Math.max(MIN_BACKUP_PARTS, MAX_SEGMENTS_PER_OWNER + 1 - space.length);

  const ids = [...new Set([...wanted.keys(), ...inherited.map(({ backupId }) => backupId ?? '')])]
    .filter((id) => id !== '')
    .sort();
  const indexes = new Map(ids.map((id, index) => [id, index]));
  const before = new Tiling(
    length,
    inherited.map(({ start, backupId }) => ({
      start,
      owner: backupId === null ? NOBODY : indexes.get(backupId)!,
    })),
  );
  const targets = targetLengths(ids, wanted, before, maxParts, usable);

  let parts = before;
  const reshaping = new Reshaping(parts, targets);
  preferNeighbours(reshaping, space, indexes);
  reshaping.finish();
  if (parts.runCount > maxParts) {
    parts = new Tiling(length);
    new Reshaping(parts, targets).finish();
  }
  return segmentsOf(ownerId, space, parts, ids);
}

/** Backups that the parts of an owner's line had, null where there was none or where it owns the part itself now. */
function inheritedBackups(
  ownerId: string,
  space: readonly Stretch[],
  previous: readonly Segment[],
): { start: number; backupId: string | null }[] {
  return space.flatMap((stretch) =>
    partsOf(previous, stretch.start, stretch.end).map(({ start, segment }) => ({
      start: stretch.at + start - stretch.start,
      backupId: segment.backupId === ownerId ? null : segment.backupId,
    })),
  );
}

/** Lengths by backup: those wanted, or those in force when they are near enough and all still usable. */
function targetLengths(
  ids: readonly string[],
  wanted: ReadonlyMap<string, number>,
  before: Tiling,
  maxParts: number,
  usable: (engineId: string) => boolean,
): number[] {
  const wantedLengths = quantise(largest(ids, wanted, maxParts), before.length);
  const lengths = before.lengths(ids.length);
  const assigned = lengths.reduce((sum, length) => sum + length, 0);
  if (assigned === 0 || lengths.some((length, index) => length > 0 && !usable(ids[index]!))) {
    return wantedLengths;
  }
  const kept = quantise(lengths, before.length);
  const differing =
    kept.reduce((sum, length, index) => sum + Math.abs(length - wantedLengths[index]!), 0) / 2;
  return differing < BACKUP_DEAD_BAND * before.length ? kept : wantedLengths;
}

/** The largest `count` wanted shares by id index, 0 for the others and for negligible ones. */
function largest(ids: readonly string[], wanted: ReadonlyMap<string, number>, count: number): number[] {
  const sum = [...wanted.values()].reduce((partial, share) => partial + share, 0);
  const ranked = [...wanted].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
  const kept = new Map(
    ranked.filter(([, share], rank) => rank === 0 || (rank < count && share >= MIN_BACKUP_SHARE * sum)),
  );
  return ids.map((id) => kept.get(id) ?? 0);
}

/** Gives parts without a backup at the ends of runs to the engines on the other side of these ends. */
function preferNeighbours(
  reshaping: Reshaping,
  space: readonly Stretch[],
  indexes: ReadonlyMap<string, number>,
): void {
  const { tiling } = reshaping;
  for (const { start, end, at, leftId, rightId } of space) {
    const atEnd = at + end - start;
    const left = leftId === undefined ? undefined : indexes.get(leftId);
    const first = tiling.runAt(at);
    if (left !== undefined && tiling.ownerOf(first) === NOBODY) {
      const amount = Math.min(reshaping.needOf(left), Math.min(atEnd, tiling.endOf(first)) - at);
      reshaping.transferParts(at, at + amount, left, true);
    }
    const right = rightId === undefined ? undefined : indexes.get(rightId);
    const last = tiling.runAt(atEnd - 1);
    if (right !== undefined && tiling.ownerOf(last) === NOBODY) {
      const amount = Math.min(reshaping.needOf(right), atEnd - Math.max(at, tiling.startOf(last)));
      reshaping.transferParts(atEnd - amount, atEnd, right, true);
    }
  }
}

function segmentsOf(
  ownerId: string,
  space: readonly Stretch[],
  parts: Tiling,
  ids: readonly string[],
): Segment[] {
  const segments: Segment[] = [];
  for (const { start, end, at } of space) {
    const atEnd = at + end - start;
    for (let run = parts.runAt(at); run < parts.runCount && parts.startOf(run) < atEnd; run++) {
      const backupId = ids[parts.ownerOf(run)!]!;
      segments.push({ start: start + Math.max(0, parts.startOf(run) - at), ownerId, backupId });
    }
  }
  return segments;
}
