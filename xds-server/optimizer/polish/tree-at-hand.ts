import type { ArcProblem } from '../problem/flow-problem.js';
import { type ArcFlows, BELOW, FIXED } from './arc-flows.js';
import { type Forest, Tree } from './forest.js';
import type { NodePrices } from './node-prices.js';
import { TreePrices } from './tree-prices.js';

/** A shift of flow on an arc outside the tree, which the tree has to make up for. */
interface Shift {
  readonly arc: number;
  readonly amount: number;
}

/** One tree of the forest, its prices, and how its flows move. */
export class TreeAtHand {
  readonly tree: Tree;
  readonly prices: TreePrices;
  readonly #flowProblem: ArcProblem;
  readonly #rows: number;
  readonly #arcs: ArcFlows;
  readonly #forest: Forest;
  readonly #nodePrices: NodePrices;
  /** By node: the pass in which its tree reached its optimum. */
  readonly #settledIn: Int32Array;
  /** By entry of the tree: load or flow that is still missing; wanted change of the arc to the parent. */
  readonly #missing: Float64Array;
  readonly #change: Float64Array;
  /** By entry of the tree: the range of the arc to the parent, and how often the wanted change fits in it. */
  readonly #low: Float64Array;
  readonly #high: Float64Array;
  readonly #room: Float64Array;
  #pass = 0;

  constructor(flowProblem: ArcProblem, arcs: ArcFlows, forest: Forest, nodePrices: NodePrices) {
    const { problem } = flowProblem;
    const nodes = problem.rows.length + problem.columns.length;
    this.#flowProblem = flowProblem;
    this.#rows = problem.rows.length;
    this.#arcs = arcs;
    this.#forest = forest;
    this.#nodePrices = nodePrices;
    this.tree = new Tree(nodes);
    this.prices = new TreePrices(problem, arcs, this.tree);
    this.#settledIn = new Int32Array(nodes);
    this.#missing = new Float64Array(nodes);
    this.#change = new Float64Array(nodes);
    this.#low = new Float64Array(nodes);
    this.#high = new Float64Array(nodes);
    this.#room = new Float64Array(nodes);
  }

  /** No tree counts as settled in a pass that starts. */
  startPass(pass: number): void {
    this.#pass = pass;
  }

  /** Whether the tree around a node has come to its optimum in this pass. */
  isSettled(node: number): boolean {
    return this.#settledIn[node] === this.#pass;
  }

  unsettle(node: number): void {
    this.#settledIn[node] = 0;
  }

  /** Whether both ends of an arc lie in it. */
  holds(arc: number): boolean {
    return (
      this.tree.entryOf(this.#nodePrices.rowNode(arc)) >= 0 &&
      this.tree.entryOf(this.#nodePrices.columnNode(arc)) >= 0
    );
  }

  /** Makes the tree around a node the tree at hand, without looking at its prices. */
  collect(node: number): void {
    this.#forest.collect(node, this.tree);
  }

  /** Makes the tree around a node the tree at hand. */
  take(node: number): void {
    this.collect(node);
    this.prices.prepare();
  }

  /** Loads that a root price asks for are what the tree's columns miss. */
  wantLoadsAt(rootPrice: number): void {
    const { size, nodes } = this.tree;
    const rows = this.#rows;
    for (let at = 0; at < size; at++) {
      this.#missing[at] = nodes[at]! < rows ? 0 : this.prices.excess(at, rootPrice);
    }
  }

  /** The loads after a whole Newton step are. */
  wantNewtonStepTo(rootPrice: number): void {
    const { size, nodes } = this.tree;
    const rows = this.#rows;
    for (let at = 0; at < size; at++) {
      this.#missing[at] = nodes[at]! < rows ? 0 : this.prices.newtonChange(at, rootPrice);
    }
  }

  /** Nothing is but what shifts leave. */
  wantSameLoads(): void {
    this.#missing.fill(0, 0, this.tree.size);
  }

  /** Makes the wanted changes and shifts `most` times, or as often as nothing blocks; cuts and returns what blocks. */
  move(shifts: readonly Shift[], most: number): number[] {
    return this.moveBy(this.plan(shifts, most), shifts, most);
  }

  /**
   * Finds the changes of flow on the tree's arcs, leaves first, that give each node what it misses once the shifts are
   * made, and how often, at most `most` times, they can be made until something blocks.
   */
  plan(shifts: readonly Shift[], most: number): number {
    const { problem, lower, kink, upper } = this.#flowProblem;
    const { arcWork } = problem;
    const { size, nodes, arcs, parents } = this.tree;
    const { flows, sides, tolerance } = this.#arcs;
    const rows = this.#rows;
    const missing = this.#missing;
    const changes = this.#change;
    const lows = this.#low;
    const highs = this.#high;
    const rooms = this.#room;
    for (const { arc, amount } of shifts) {
      missing[this.tree.entryOf(this.#nodePrices.rowNode(arc))]! -= amount;
      missing[this.tree.entryOf(this.#nodePrices.columnNode(arc))]! -= arcWork[arc]! * amount;
    }
    let step = most;
    for (let at = size - 1; at > 0; at--) {
      const arc = arcs[at]!;
      const work = arcWork[arc]!;
      const isRow = nodes[at]! < rows;
      const change = isRow ? missing[at]! : missing[at]! / work;
      missing[parents[at]!]! -= isRow ? work * change : change;
      const isBelow = sides[arc] === BELOW;
      const low = isBelow ? lower[arc]! : kink[arc]!;
      const high = isBelow ? kink[arc]! : upper[arc]!;
      const target = flows[arc]! + most * change;
      let room = most;
      if (change !== 0 && !(target >= low - tolerance && target <= high + tolerance)) {
        room = Math.min(most, Math.max(0, ((change > 0 ? high : low) - flows[arc]!) / change));
      }
      changes[at] = change;
      lows[at] = low;
      highs[at] = high;
      rooms[at] = room;
      if (room < step) step = room;
    }
    return step;
  }

  /** Goes as far as `plan` said. */
  moveBy(step: number, shifts: readonly Shift[], most: number): number[] {
    const { size, nodes, arcs } = this.tree;
    const { flows, sides } = this.#arcs;
    const cut: number[] = [];
    for (const { arc, amount } of shifts) this.#arcs.set(arc, flows[arc]! + step * amount);
    for (let at = 1; at < size; at++) {
      const arc = arcs[at]!;
      const change = this.#change[at]!;
      const low = this.#low[at]!;
      const high = this.#high[at]!;
      if (step < most && this.#room[at]! <= step) {
        this.#arcs.set(arc, change < 0 ? low : high);
        sides[arc] = FIXED;
        this.#forest.cut(arc);
        cut.push(arc);
      } else {
        this.#arcs.set(arc, Math.min(Math.max(flows[arc]! + step * change, low), high));
      }
    }
    if (cut.length > 0) for (let at = 0; at < size; at++) this.#settledIn[nodes[at]!] = 0;
    return cut;
  }

  /** Notes the prices of a tree that is at its optimum. */
  note(rootPrice: number): void {
    const { size, nodes } = this.tree;
    for (let at = 0; at < size; at++) {
      this.#nodePrices.price[nodes[at]!] = this.prices.at(at, rootPrice);
      this.#nodePrices.noise[nodes[at]!] = this.prices.noise;
      this.#settledIn[nodes[at]!] = this.#pass;
    }
  }
}
