import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BlockCache, type BlockTable } from './block-cache.js';

const CAPACITY = 12;

/** Prefixes of four conversations, so that tables share beginnings. */
const prefix = fc
  .record({ conversation: fc.integer({ min: 0, max: 3 }), length: fc.integer({ min: 0, max: 8 }) })
  .map(({ conversation, length }) => Array.from({ length }, (_, index) => conversation * 100 + index));

const action = fc.oneof(
  fc.record({ kind: fc.constant('acquire' as const), ids: prefix, own: fc.integer({ min: 0, max: 8 }) }),
  fc.record({ kind: fc.constant('extend' as const), pick: fc.nat(), blocks: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ kind: fc.constant('publish' as const), pick: fc.nat() }),
  fc.record({ kind: fc.constant('release' as const), pick: fc.nat() }),
);

describe('BlockCache', () => {
  it('never holds more than its capacity, counts what is held, and hits only what was published and not evicted', () => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
        const cache = new BlockCache(CAPACITY);
        const tables: BlockTable[] = [];
        const published = new Set<number>();
        for (const step of actions) {
          const table = 'pick' in step ? tables[step.pick % tables.length] : undefined;
          if (step.kind === 'acquire') {
            const hits = cache.hits(step.ids, step.ids.length);
            expect(step.ids.slice(0, hits).every((id) => published.has(id))).toBe(true);
            const acquired = cache.acquire(step.ids, hits, step.own);
            if (acquired) tables.push(acquired);
          } else if (table && step.kind === 'extend') {
            cache.extend(table, step.blocks);
          } else if (table && step.kind === 'publish') {
            const full = table.shared + table.own;
            cache.publish(table, full);
            for (const id of table.ids.slice(0, full)) published.add(id);
          } else if (table) {
            cache.release(table);
            tables.splice(tables.indexOf(table), 1);
          }
          const held = new Set(tables.flatMap(({ ids, shared }) => ids.slice(0, shared)));
          const own = tables.reduce((sum, { own }) => sum + own, 0);
          expect(cache.used).toBe(held.size + own);
          expect(cache.used + cache.idle).toBeLessThanOrEqual(CAPACITY);
          for (const { ids, shared } of tables) expect(cache.hits(ids, shared)).toBe(shared);
        }
      }),
    );
  });

  it('evicts the least recently used conversation first, and the end of it before its beginning', () => {
    const cache = new BlockCache(6);
    const fill = (ids: number[]) => {
      const table = cache.acquire(
        ids,
        cache.hits(ids, ids.length),
        ids.length - cache.hits(ids, ids.length),
      )!;
      cache.publish(table, ids.length);
      cache.release(table);
    };
    fill([10, 11, 12]);
    fill([20, 21, 22]);
    fill([10, 11, 12]);
    cache.release(cache.acquire([], 0, 2)!);
    expect(cache.hits([20, 21, 22], 3)).toBe(1);
    expect(cache.hits([10, 11, 12], 3)).toBe(3);
    cache.release(cache.acquire([], 0, 4)!);
    expect(cache.hits([20, 21, 22], 3)).toBe(0);
    expect(cache.hits([10, 11, 12], 3)).toBe(2);
  });

  it('refuses what does not fit and changes nothing', () => {
    const cache = new BlockCache(4);
    const table = cache.acquire([1, 2], 0, 2)!;
    cache.publish(table, 2);
    expect(cache.acquire([1, 2], 2, 3)).toBeUndefined();
    expect(cache.extend(table, 3)).toBe(false);
    expect([cache.used, table.shared, table.own]).toEqual([2, 2, 0]);
  });

  it('keeps one copy of a block that two sequences computed at the same time', () => {
    const cache = new BlockCache(4);
    const first = cache.acquire([1, 2], 0, 2)!;
    const second = cache.acquire([1, 2], 0, 2)!;
    cache.publish(first, 2);
    cache.publish(second, 2);
    expect(cache.used).toBe(2);
    cache.release(first);
    expect([cache.used, cache.hits([1, 2], 2)]).toEqual([2, 2]);
    cache.release(second);
    expect([cache.used, cache.idle]).toEqual([0, 2]);
  });
});
