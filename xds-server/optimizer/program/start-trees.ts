import { Forest, Tree } from '../polish/forest.js';
import type { Problem } from '../problem/problem.js';

/**
 * The basis of flows: arcs that tie rows and full columns together as trees. A tree with a column that has room hangs from
 * that, any other from one of its nodes, where something else than an arc has to make up for what is missing.
 */
export class StartTrees {
  /** Marks the arcs of trees. */
  readonly isTied: Uint8Array;
  /** Nodes from which trees hang, rows first, then columns; that of the largest tree is first. */
  readonly roots: readonly number[];
  readonly #rows: number;
  readonly #room: Float64Array;
  readonly #forest: Forest;

  /**
   * Of the arcs with flow, those that carry most work come first: they are likeliest to have flow when some of it moves.
   * @param flows requests per second by arc
   * @param room by column: above 0 where it is not full
   */
  constructor(
    { rows, columns, arcRow, arcColumn, arcWork }: Problem,
    flows: Float64Array,
    room: Float64Array,
  ) {
    this.#rows = rows.length;
    this.#room = room;
    this.#forest = new Forest(rows.length, columns.length, arcRow, arcColumn);
    this.#forest.clear();
    this.#tieColumnsWithRoom();
    this.isTied = new Uint8Array(flows.length);
    const arcs: number[] = [];
    for (let arc = 0; arc < flows.length; arc++) if (flows[arc]! > 0) arcs.push(arc);
    arcs.sort((a, b) => arcWork[b]! * flows[b]! - arcWork[a]! * flows[a]! || a - b);
    for (const arc of arcs) if (this.#forest.join(arc)) this.isTied[arc] = 1;
    this.roots = this.#findRoots(new Tree(rows.length + columns.length));
  }

  /** Whether a tree hangs from a column with room. */
  hasRoom(root: number): boolean {
    return root >= this.#rows && this.#room[root - this.#rows]! > 0;
  }

  /** So that no tree gets two of them. */
  #tieColumnsWithRoom(): void {
    let first = -1;
    for (let node = this.#rows; node < this.#rows + this.#room.length; node++) {
      if (!this.hasRoom(node)) continue;
      if (first < 0) first = node;
      else this.#forest.tie(first, node);
    }
  }

  #findRoots(tree: Tree): number[] {
    const isSeen = new Uint8Array(tree.nodes.length);
    const found: { readonly root: number; readonly size: number }[] = [];
    for (let node = 0; node < isSeen.length; node++) {
      if (isSeen[node]) continue;
      this.#forest.collect(node, tree);
      let root = tree.nodes[0]!;
      for (let at = 0; at < tree.size; at++) {
        isSeen[tree.nodes[at]!] = 1;
        if (this.hasRoom(tree.nodes[at]!)) root = tree.nodes[at]!;
      }
      found.push({ root, size: tree.size });
    }
    return found.sort((a, b) => b.size - a.size || a.root - b.root).map(({ root }) => root);
  }
}
