import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Forest, Tree } from './forest.js';

const ROWS = 7;
const COLUMNS = 6;

/** All arcs between rows and columns. */
const arcRow = Int32Array.from({ length: ROWS * COLUMNS }, (_, arc) => Math.floor(arc / COLUMNS));
const arcColumn = Int32Array.from({ length: ROWS * COLUMNS }, (_, arc) => arc % COLUMNS);
const ends = (arc: number): [number, number] => [arcRow[arc]!, ROWS + arcColumn[arc]!];

test('the path between two nodes leads over joined arcs from one to the other, and there is one in each tree', () => {
  const arcs = fc.uniqueArray(fc.nat(ROWS * COLUMNS - 1), { maxLength: 20 });
  const node = fc.nat(ROWS + COLUMNS - 1);
  const others = fc.integer({ min: 1, max: ROWS + COLUMNS - 1 });
  fc.assert(
    fc.property(
      arcs,
      fc.array(fc.nat(19), { maxLength: 4 }),
      node,
      others,
      (joining, cutting, from, away) => {
        const to = (from + away) % (ROWS + COLUMNS);
        const forest = new Forest(ROWS, COLUMNS, arcRow, arcColumn);
        forest.clear();
        const joined = new Set(joining.filter((arc) => forest.join(arc)));
        for (const at of cutting) {
          const arc = [...joined][at];
          if (arc === undefined) continue;
          forest.cut(arc);
          joined.delete(arc);
        }
        const tree = new Tree(ROWS + COLUMNS);
        forest.collect(from, tree);
        const size = forest.path(from, to);
        expect(size >= 0).toBe(tree.entryOf(to) >= 0);
        let at = from;
        for (const arc of forest.pathArcs.subarray(0, Math.max(0, size))) {
          expect(joined.delete(arc)).toBe(true);
          const [row, column] = ends(arc);
          expect([row, column]).toContain(at);
          at = at === row ? column : row;
        }
        if (size >= 0) expect(at).toBe(to);
      },
    ),
  );
});
