/**
 * Trees over rows and columns, joined by arcs. Nodes are numbered rows first, then columns.
 * Arcs can be cut at any time; replanting forgets them.
 */
export class Forest {
  readonly #rows: number;
  readonly #arcRow: Int32Array;
  readonly #arcColumn: Int32Array;
  readonly #leader: Int32Array;
  /** First entry of each node's list of arcs, and the next entry of each list; entry 2a is arc a at its row. */
  readonly #first: Int32Array;
  readonly #next: Int32Array;
  /** By entry: the node at the other end of its arc. */
  readonly #end: Int32Array;
  readonly #joined: Uint8Array;
  readonly #near: Search;
  readonly #far: Search;
  /** The way found last. */
  readonly pathArcs: Int32Array;

  constructor(rows: number, columns: number, arcRow: Int32Array, arcColumn: Int32Array) {
    this.#rows = rows;
    this.#arcRow = arcRow;
    this.#arcColumn = arcColumn;
    this.#leader = new Int32Array(rows + columns);
    this.#first = new Int32Array(rows + columns);
    this.#next = new Int32Array(2 * arcRow.length);
    this.#end = new Int32Array(2 * arcRow.length);
    this.#joined = new Uint8Array(arcRow.length);
    this.#near = new Search(rows + columns);
    this.#far = new Search(rows + columns);
    this.pathArcs = new Int32Array(rows + columns);
  }

  clear(): void {
    for (let node = 0; node < this.#leader.length; node++) this.#leader[node] = node;
    this.#first.fill(-1);
    this.#joined.fill(0);
  }

  /** Joins the trees at the arc's ends; false when they are one tree already. */
  join(arc: number): boolean {
    const a = this.#leaderOf(this.#arcRow[arc]!);
    const b = this.#leaderOf(this.#rows + this.#arcColumn[arc]!);
    if (a === b) return false;
    this.#leader[a] = b;
    this.insert(arc);
    return true;
  }

  /** Lets two nodes count as of one tree, without an arc between them. */
  tie(a: number, b: number): void {
    this.#leader[this.#leaderOf(a)] = this.#leaderOf(b);
  }

  /** Adds an arc whose ends are known to lie in different trees, because another arc between them was cut. */
  insert(arc: number): void {
    const row = this.#arcRow[arc]!;
    const column = this.#rows + this.#arcColumn[arc]!;
    this.#joined[arc] = 1;
    this.#end[2 * arc] = column;
    this.#end[2 * arc + 1] = row;
    this.#next[2 * arc] = this.#first[row]!;
    this.#first[row] = 2 * arc;
    this.#next[2 * arc + 1] = this.#first[column]!;
    this.#first[column] = 2 * arc + 1;
  }

  cut(arc: number): void {
    this.#joined[arc] = 0;
  }

  /**
   * Lists the tree around a node, breadth first from one of its columns (or from a lonely row). A solve lists a few hundred
   * thousand nodes, so all that the loop touches is at hand.
   */
  collect(node: number, tree: Tree): void {
    const { nodes, arcs, parents, entries } = tree;
    const first = this.#first;
    const next = this.#next;
    const end = this.#end;
    const joined = this.#joined;
    const root = this.#columnNear(node);
    nodes[0] = root;
    arcs[0] = -1;
    parents[0] = -1;
    entries[root] = 0;
    let size = 1;
    for (let at = 0; at < size; at++) {
      const toParent = arcs[at]!;
      for (let entry = first[nodes[at]!]!; entry >= 0; entry = next[entry]!) {
        const arc = entry >> 1;
        if (!joined[arc] || arc === toParent) continue;
        const child = end[entry]!;
        nodes[size] = child;
        arcs[size] = arc;
        parents[size] = at;
        entries[child] = size;
        size++;
      }
    }
    tree.size = size;
  }

  /**
   * Finds the way from one node to a different one. How many arcs it has, which are then the first of `pathArcs`, in order;
   * -1 when the nodes lie in different trees.
   */
  path(from: number, to: number): number {
    this.#near.start(from);
    this.#far.start(to);
    for (;;) {
      const isNear = this.#near.size <= this.#far.size;
      const side = isNear ? this.#near : this.#far;
      const other = isNear ? this.#far : this.#near;
      const node = side.next();
      if (node < 0) return -1;
      for (let entry = this.#first[node]!; entry >= 0; entry = this.#next[entry]!) {
        const arc = entry >> 1;
        if (!this.#joined[arc]) continue;
        const end = this.#end[entry]!;
        if (side.holds(end)) continue;
        side.add(end, node, arc);
        if (other.holds(end)) return this.#notePath(end);
      }
    }
  }

  /** Notes the way by a node that both searches have found. */
  #notePath(meeting: number): number {
    const near = this.#near.distanceOf(meeting);
    this.#near.noteArcsTo(meeting, this.pathArcs, near - 1, -1);
    this.#far.noteArcsTo(meeting, this.pathArcs, near, 1);
    return near + this.#far.distanceOf(meeting);
  }

  #columnNear(node: number): number {
    if (node >= this.#rows) return node;
    for (let entry = this.#first[node]!; entry >= 0; entry = this.#next[entry]!) {
      if (this.#joined[entry >> 1]) return this.#end[entry]!;
    }
    return node;
  }

  #leaderOf(node: number): number {
    let leader = node;
    while (this.#leader[leader] !== leader) leader = this.#leader[leader]!;
    for (let at = node; at !== leader; ) {
      const next = this.#leader[at]!;
      this.#leader[at] = leader;
      at = next;
    }
    return leader;
  }
}

/** Nodes found around a start, breadth first. */
class Search {
  size = 0;
  #next = 0;
  #round = 0;
  readonly #nodes: Int32Array;
  readonly #foundIn: Int32Array;
  readonly #parent: Int32Array;
  readonly #arc: Int32Array;

  constructor(nodes: number) {
    this.#nodes = new Int32Array(nodes);
    this.#foundIn = new Int32Array(nodes);
    this.#parent = new Int32Array(nodes);
    this.#arc = new Int32Array(nodes);
  }

  start(node: number): void {
    this.size = 0;
    this.#next = 0;
    this.#round++;
    this.add(node, -1, -1);
  }

  add(node: number, parent: number, arc: number): void {
    this.#foundIn[node] = this.#round;
    this.#parent[node] = parent;
    this.#arc[node] = arc;
    this.#nodes[this.size] = node;
    this.size++;
  }

  /** The next node around which to look, -1 when there is none left. */
  next(): number {
    return this.#next < this.size ? this.#nodes[this.#next++]! : -1;
  }

  holds(node: number): boolean {
    return this.#foundIn[node] === this.#round;
  }

  /** Number of arcs from a node back to the start. */
  distanceOf(node: number): number {
    let distance = 0;
    for (let at = node; this.#parent[at]! >= 0; at = this.#parent[at]!) distance++;
    return distance;
  }

  /** Notes the arcs from a node back to the start, from a place in a list on, forwards or backwards. */
  noteArcsTo(node: number, list: Int32Array, first: number, direction: 1 | -1): void {
    let place = first;
    for (let at = node; this.#parent[at]! >= 0; at = this.#parent[at]!) {
      list[place] = this.#arc[at]!;
      place += direction;
    }
  }
}

/** One tree, parents before children. Entry 0 is the root; every other entry has an arc to its parent's entry. */
export class Tree {
  size = 0;
  readonly nodes: Int32Array;
  readonly arcs: Int32Array;
  readonly parents: Int32Array;
  /** By node: its entry, if the tree holds it; what it was in another tree, if not. */
  readonly entries: Int32Array;

  constructor(nodes: number) {
    this.nodes = new Int32Array(nodes);
    this.arcs = new Int32Array(nodes);
    this.parents = new Int32Array(nodes);
    this.entries = new Int32Array(nodes);
  }

  /** Entry of a node, -1 when the tree does not hold it. */
  entryOf(node: number): number {
    const entry = this.entries[node]!;
    return entry < this.size && this.nodes[entry] === node ? entry : -1;
  }
}
