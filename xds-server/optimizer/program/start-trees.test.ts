import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Problem } from '../problem/problem.js';
import { StartTrees } from './start-trees.js';

/** Every row with an arc to every column, with this flow. */
function dense(rows: number, columns: number, works: readonly number[]): Problem {
  const arcs = rows * columns;
  return {
    rows: Array.from({ length: rows }),
    columns: Array.from({ length: columns }),
    arcRow: Int32Array.from({ length: arcs }, (_, arc) => Math.floor(arc / columns)),
    arcColumn: Int32Array.from({ length: arcs }, (_, arc) => arc % columns),
    arcWork: Float64Array.from({ length: arcs }, (_, arc) => works[arc % works.length]!),
  } as unknown as Problem;
}

const fleet = fc.record({
  rows: fc.integer({ min: 1, max: 6 }),
  columns: fc.integer({ min: 1, max: 6 }),
  works: fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 }),
  flows: fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 36, maxLength: 36 }),
  room: fc.array(fc.integer({ min: -1, max: 1 }), { minLength: 6, maxLength: 6 }),
});

test('arcs of trees and roots are as many as there are rows and columns, and all columns with room are roots', () => {
  fc.assert(
    fc.property(fleet, ({ rows, columns, works, flows, room }) => {
      const trees = new StartTrees(
        dense(rows, columns, works),
        Float64Array.from(flows.slice(0, rows * columns)),
        Float64Array.from(room.slice(0, columns)),
      );
      const tied = trees.isTied.reduce((sum, each) => sum + each, 0);
      expect(new Set(trees.roots).size).toBe(trees.roots.length);
      expect(tied + trees.roots.length).toBe(rows + columns);
      for (let column = 0; column < columns; column++) {
        if (room[column]! > 0) expect(trees.roots).toContain(rows + column);
      }
      for (let arc = 0; arc < rows * columns; arc++)
        if (trees.isTied[arc]) expect(flows[arc]).toBeGreaterThan(0);
    }),
  );
});
