import { sum } from '../../collections.js';
import type { BackupShares, EngineWeight } from '../../optimizer/solution.js';
import type { Segment } from '../plan.js';
import type { OwnedRun } from './partition.js';
import { quantise } from './quantise.js';
import { Reshaping } from './reshape.js';
import { endOf, partsOf } from './segments.js';
import { NOBODY, Tiling } from './tiling.js';

/** Backup engines with a smaller share of an owner's traffic are left out: no row takes an engine in for less. */
const MIN_BACKUP_SHARE = 0.005;
/**
 * An owner's backups stay as they are while less than this share of its traffic would get another backup. So much may
 * move a second time when the owner is lost.
 */
export const BACKUP_DEAD_BAND = 0.02;
/** Segments of one owner, and of a partition per owner, as far as their runs leave room. */
export const MAX_SEGMENTS_PER_OWNER = 16;
/** An owner's space may be split over so many backups, however many runs it has. */
export const MIN_BACKUP_PARTS = 3;

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
  const meanRuns = Math.ceil(runs.length / spaces.size);
  return [...spaces]
    .flatMap(([ownerId, space]) => {
      const wanted = (sharesOf.get(ownerId) ?? []).filter(
        ({ engineId, weight }) => engineId !== ownerId && weight > 0,
      );
      const inherited = inheritedBackups(ownerId, space, previous);
      const room = MAX_SEGMENTS_PER_OWNER + 1 - Math.max(space.length, meanRuns);
      return split(ownerId, space, wanted, inherited, Math.max(MIN_BACKUP_PARTS, room), usable);
    })
    .sort((a, b) => a.start - b.start);
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

/** The segments of one owner. */
function split(
  ownerId: string,
  space: readonly Stretch[],
  wanted: readonly EngineWeight[],
  inherited: readonly InheritedBackup[],
  maxParts: number,
  usable: (engineId: string) => boolean,
): Segment[] {
  if (wanted.length === 0) return space.map(({ start }) => ({ start, ownerId, backupId: null }));
  const ids = [
    ...new Set([
      ...wanted.map(({ engineId }) => engineId),
      ...inherited.flatMap(({ backupId }) => backupId ?? []),
    ]),
  ].sort();
  const indexes = new Map(ids.map((id, index) => [id, index]));
  const last = space.at(-1)!;
  const parts = new Tiling(
    last.at + last.end - last.start,
    inherited.map(({ at, backupId }) => ({
      start: at,
      owner: backupId === null ? NOBODY : indexes.get(backupId)!,
    })),
  );
  const targets = targetLengths(ids, wanted, parts, maxParts, usable);
  const reshaping = new Reshaping(parts, targets);
  preferNeighbours(reshaping, space, indexes);
  reshaping.finish();
  reshaping.trim(maxParts, maxParts);
  if (parts.runCount > maxParts) {
    parts.paint(0, parts.length, NOBODY);
    new Reshaping(parts, targets).finish();
  }
  return segmentsOf(ownerId, space, parts, ids);
}

interface InheritedBackup {
  /** Where the part begins on the owner's line. */
  readonly at: number;
  /** Null where there was none, or where it owns the part itself now. */
  readonly backupId: string | null;
}

function inheritedBackups(
  ownerId: string,
  space: readonly Stretch[],
  previous: readonly Segment[],
): InheritedBackup[] {
  return space.flatMap((stretch) =>
    partsOf(previous, stretch.start, stretch.end).map(({ start, segment }) => ({
      at: stretch.at + start - stretch.start,
      backupId: segment.backupId === ownerId ? null : segment.backupId,
    })),
  );
}

/** Lengths by backup: those wanted, or those in force when they are near enough and all still usable. */
function targetLengths(
  ids: readonly string[],
  wanted: readonly EngineWeight[],
  before: Tiling,
  maxParts: number,
  usable: (engineId: string) => boolean,
): number[] {
  const wantedLengths = quantise(largest(ids, wanted, maxParts), before.length);
  const lengths = before.lengths(ids.length);
  const assigned = sum(lengths);
  const inForce = ids.filter((_, index) => lengths[index]! > 0);
  if (assigned === 0 || inForce.length > maxParts || !inForce.every(usable)) return wantedLengths;
  const kept = quantise(lengths, before.length);
  const differing =
    kept.reduce((sum, length, index) => sum + Math.abs(length - wantedLengths[index]!), 0) / 2;
  return differing < BACKUP_DEAD_BAND * before.length ? kept : wantedLengths;
}

/** The largest `count` wanted shares by index into `ids`, 0 for the others and for negligible ones. */
function largest(ids: readonly string[], wanted: readonly EngineWeight[], count: number): number[] {
  const least = MIN_BACKUP_SHARE * wanted.reduce((sum, { weight }) => sum + weight, 0);
  const kept = [...wanted]
    .sort((a, b) => b.weight - a.weight || (a.engineId < b.engineId ? -1 : 1))
    .filter(({ weight }, rank) => rank === 0 || (rank < count && weight >= least));
  const weights = new Map(kept.map(({ engineId, weight }) => [engineId, weight]));
  return ids.map((id) => weights.get(id) ?? 0);
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
