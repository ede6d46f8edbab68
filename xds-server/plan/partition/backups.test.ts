import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { BackupShares } from '../../optimizer/solution.js';
import { HASH_SPACE, type Segment } from '../plan.js';
import { assignBackups, BACKUP_DEAD_BAND, MAX_SEGMENTS_PER_OWNER, MIN_BACKUP_PARTS } from './backups.js';
import type { OwnedRun } from './partition.js';
import { endOf, runsOf } from './segments.js';

const engineIds = ['e0', 'e1', 'e2', 'e3', 'e4', 'e5'];
const everybody = () => true;

const runs = fc
  .tuple(
    fc.uniqueArray(fc.integer({ min: 1, max: 4095 }), { maxLength: 30 }),
    fc.array(fc.constantFrom(...engineIds), { minLength: 31, maxLength: 31 }),
  )
  .map(([cuts, owners]): OwnedRun[] =>
    [0, ...cuts.sort((a, b) => a - b)]
      .map((cut, index) => ({ start: cut * (HASH_SPACE / 4096), ownerId: owners[index]! }))
      .filter(({ ownerId }, index, list) => ownerId !== list[index - 1]?.ownerId),
  );

/** Shares of at least a tenth of the largest for two to four others of every engine. */
const shares = fc
  .array(fc.array(fc.integer({ min: 10, max: 100 }), { minLength: 4, maxLength: 4 }), {
    minLength: engineIds.length,
    maxLength: engineIds.length,
  })
  .map((list) =>
    engineIds.map((ownerId, owner): BackupShares => {
      const sum = list[owner]!.reduce((total, weight) => total + weight, 0);
      return {
        ownerId,
        shares: list[owner]!.map((weight, step) => ({
          engineId: engineIds[(owner + step + 1) % engineIds.length]!,
          weight: weight / sum,
        })),
      };
    }),
  );

/** Points by owner and backup. */
function lengths(segments: readonly Segment[]): Map<string, Map<string, number>> {
  const result = new Map<string, Map<string, number>>();
  segments.forEach(({ start, ownerId, backupId }, index) => {
    const ofOwner = result.get(ownerId) ?? new Map<string, number>();
    result.set(ownerId, ofOwner);
    const key = String(backupId);
    ofOwner.set(key, (ofOwner.get(key) ?? 0) + endOf(segments, index) - start);
  });
  return result;
}

function expectShares(segments: readonly Segment[], wanted: readonly BackupShares[]): void {
  for (const [ownerId, byBackup] of lengths(segments)) {
    const total = [...byBackup.values()].reduce((sum, length) => sum + length, 0);
    for (const { engineId, weight } of wanted.find((entry) => entry.ownerId === ownerId)!.shares) {
      expect(Math.abs((byBackup.get(engineId) ?? 0) - weight * total)).toBeLessThan(2);
    }
  }
}

describe('assignBackups', () => {
  it('changes no owner, joins equal neighbours and never makes an engine its own backup', () => {
    fc.assert(
      fc.property(runs, shares, shares, (before, first, second) => {
        const previous = assignBackups(before, [], first, everybody);
        const segments = assignBackups(before, previous, second, everybody);
        expect(runsOf(segments)).toEqual(before);
        segments.forEach(({ ownerId, backupId }, index) => {
          const next = segments[index + 1];
          expect(ownerId).not.toBe(backupId);
          expect(next?.ownerId === ownerId && next.backupId === backupId).toBe(false);
        });
      }),
    );
  });

  it('splits the length of every owner by the shares', () => {
    fc.assert(
      fc.property(runs, shares, (list, wanted) => {
        expectShares(assignBackups(list, [], wanted, everybody), wanted);
      }),
    );
  });

  it('follows shares that leave the dead band, and keeps the backups in force while they do not', () => {
    fc.assert(
      fc.property(runs, shares, shares, (list, first, second) => {
        const previous = assignBackups(list, [], first, everybody);
        expect(assignBackups(list, previous, first, everybody)).toEqual(previous);
        const segments = assignBackups(list, previous, second, everybody);
        const [before, after] = [lengths(previous), lengths(segments)];
        for (const [ownerId, byBackup] of after) {
          const wanted = new Map(
            second
              .find((entry) => entry.ownerId === ownerId)!
              .shares.map(({ engineId, weight }) => [engineId, weight]),
          );
          const total = [...byBackup.values()].reduce((sum, length) => sum + length, 0);
          const off = engineIds.reduce(
            (sum, id) => sum + Math.abs((byBackup.get(id) ?? 0) / total - (wanted.get(id) ?? 0)),
            0,
          );
          expect(off / 2).toBeLessThan(BACKUP_DEAD_BAND + 1e-6);
          if (off / 2 > 1e-6) expect(byBackup).toEqual(before.get(ownerId));
        }
      }),
    );
  });

  it('replaces a backup that cannot serve, whatever the dead band', () => {
    const list = [
      { start: 0, ownerId: 'e0' },
      { start: HASH_SPACE / 2, ownerId: 'e1' },
    ];
    const wanted = (e1: number) => [
      {
        ownerId: 'e0',
        shares: [
          { engineId: 'e1', weight: e1 },
          { engineId: 'e2', weight: 1 - e1 },
        ].filter(({ weight }) => weight > 0),
      },
    ];
    const previous = assignBackups(list, [], wanted(BACKUP_DEAD_BAND / 2), everybody);
    expect(lengths(previous).get('e0')!.has('e1')).toBe(true);
    const kept = assignBackups(list, previous, wanted(0), everybody);
    expect(lengths(kept).get('e0')!.has('e1')).toBe(true);
    const replaced = assignBackups(list, previous, wanted(0), (id) => id !== 'e1');
    expect(lengths(replaced).get('e0')!.has('e1')).toBe(false);
  });

  it('gives an owner without shares no backup', () => {
    const list = [
      { start: 0, ownerId: 'e0' },
      { start: 10, ownerId: 'e1' },
    ];
    expect(assignBackups(list, [], [{ ownerId: 'e1', shares: [] }], everybody)).toEqual([
      { start: 0, ownerId: 'e0', backupId: null },
      { start: 10, ownerId: 'e1', backupId: null },
    ]);
  });

  it('puts the engine next door where a hand-over joins runs', () => {
    const even = [
      { engineId: 'e0', weight: 0.5 },
      { engineId: 'e2', weight: 0.5 },
    ];
    for (const [left, right] of [
      ['e0', 'e2'],
      ['e2', 'e0'],
    ] as const) {
      const list = [left, 'e1', right].map((ownerId, index) => ({ start: index * 2 ** 30, ownerId }));
      expect(assignBackups(list, [], [{ ownerId: 'e1', shares: even }], everybody)).toEqual([
        { start: 0, ownerId: left, backupId: null },
        { start: 2 ** 30, ownerId: 'e1', backupId: left },
        { start: 1.5 * 2 ** 30, ownerId: 'e1', backupId: right },
        { start: 2 ** 31, ownerId: right, backupId: null },
      ]);
    }
  });

  it('leaves out backups with less of an owner than an engine must have to be taken in', () => {
    const list = [
      { start: 0, ownerId: 'e0' },
      { start: HASH_SPACE / 2, ownerId: 'e1' },
    ];
    const backupsWith = (e2: number) => {
      const few = [
        { engineId: 'e1', weight: 1 - e2 },
        { engineId: 'e2', weight: e2 },
      ];
      const segments = assignBackups(list, [], [{ ownerId: 'e0', shares: few }], everybody);
      return [...lengths(segments).get('e0')!.keys()].sort();
    };
    expect(backupsWith(0.0049)).toEqual(['e1']);
    expect(backupsWith(0.0051)).toEqual(['e1', 'e2']);
  });

  it('bounds the segments of an owner', () => {
    fc.assert(
      fc.property(runs, fc.array(shares, { minLength: 1, maxLength: 8 }), (list, plans) => {
        let segments: Segment[] = [];
        for (const wanted of plans) segments = assignBackups(list, segments, wanted, everybody);
        for (const ownerId of engineIds) {
          const runCount = list.filter((run) => run.ownerId === ownerId).length;
          const count = segments.filter((segment) => segment.ownerId === ownerId).length;
          expect(count).toBeLessThanOrEqual(
            Math.max(MAX_SEGMENTS_PER_OWNER, runCount + MIN_BACKUP_PARTS - 1),
          );
        }
      }),
    );
  });
});
