import type { ArcProblem } from '../problem/flow-problem.js';
import type { ArcFlows } from './arc-flows.js';
import type { Forest } from './forest.js';
import type { NodePrices } from './node-prices.js';

/** Changes of flow around a cycle of a tree and one arc outside it. */
export interface Cycle {
  readonly arcs: Int32Array;
  readonly changes: Float64Array;
  /** Change of the load of the first arc's column. */
  readonly work: number;
  /** Change of the objective. */
  readonly rate: number;
}

/** Cycles of a tree and one arc outside it, around which flow can shift without a change of any load but one. */
export class Cycles {
  readonly #flowProblem: ArcProblem;
  readonly #arcs: ArcFlows;
  readonly #forest: Forest;
  readonly #prices: NodePrices;
  /** Room for the cycle at hand. */
  readonly #cycle: { readonly arcs: Int32Array; readonly changes: Float64Array };

  constructor(flowProblem: ArcProblem, arcs: ArcFlows, forest: Forest, prices: NodePrices) {
    const { rows, columns } = flowProblem.problem;
    const most = rows.length + columns.length + 1;
    this.#flowProblem = flowProblem;
    this.#arcs = arcs;
    this.#forest = forest;
    this.#prices = prices;
    this.#cycle = { arcs: new Int32Array(most), changes: new Float64Array(most) };
  }

  /**
   * The cycle that an arc makes with the way between its ends that the forest found last, from the row on, in the direction
   * in which the objective falls: one request per second on or off its first arc, and on the others, from its row on, what
   * makes up for that at every row and column but the first arc's column, whose price changes least with its load.
   * @param pathSize arcs of that way
   */
  cycleOf(arc: number, pathSize: number): Cycle {
    const { arcWork } = this.#flowProblem.problem;
    const { arcs, changes } = this.#cycle;
    const { pathArcs } = this.#forest;
    const size = pathSize + 1;
    const first = this.#flattestOf(arc, pathSize);
    let change = 1;
    let rate = 0;
    for (let at = 0; at < size; at++) {
      const next = (first + at) % size;
      const current = next === 0 ? arc : pathArcs[next - 1]!;
      if (at > 0) change = at % 2 === 1 ? -change : (-change * arcWork[arcs[at - 1]!]!) / arcWork[current]!;
      arcs[at] = current;
      changes[at] = change;
      rate += change * this.#prices.cost(current, this.#arcs.sides[current]!);
    }
    const work = arcWork[arcs[0]!]! + change * arcWork[arcs[size - 1]!]!;
    const isFalling = rate <= 0;
    if (!isFalling) for (let at = 0; at < size; at++) changes[at]! *= -1;
    return {
      arcs: arcs.subarray(0, size),
      changes,
      work: isFalling ? work : -work,
      rate: isFalling ? rate : -rate,
    };
  }

  /**
   * How many arcs after the first one, of such a cycle, the one follows before which the column lies whose price changes
   * least with its load.
   */
  #flattestOf(arc: number, pathSize: number): number {
    const { columns, arcColumn } = this.#flowProblem.problem;
    const { pathArcs } = this.#forest;
    let flattest = 0;
    let least = Infinity;
    for (let at = 0; at <= pathSize; at += 2) {
      const column = arcColumn[at === 0 ? arc : pathArcs[at - 1]!]!;
      const { capacity, congestion } = columns[column]!;
      const slope = congestion.worthSlope(this.#arcs.loads[column]! / capacity) / capacity;
      if (slope >= least) continue;
      least = slope;
      flattest = at;
    }
    return flattest;
  }

  /** How far a cycle can be turned until something blocks. */
  reachOf({ arcs, changes }: Cycle): number {
    let reach = Infinity;
    for (let at = 0; at < arcs.length; at++) {
      const arc = arcs[at]!;
      reach = Math.min(reach, this.#arcs.reach(arc, this.#arcs.sides[arc]!, changes[at]!));
    }
    return reach;
  }

  /** The rate of a cycle once it has been turned this far, which changes the load of one column. */
  rateAfter({ arcs, work, rate }: Cycle, step: number): number {
    const column = this.#flowProblem.problem.arcColumn[arcs[0]!]!;
    const { capacity, congestion } = this.#flowProblem.problem.columns[column]!;
    const load = this.#arcs.loads[column]!;
    return (
      rate + work * (congestion.worth((load + step * work) / capacity) - congestion.worth(load / capacity))
    );
  }

  /**
   * Turns a cycle this far, and notes what work is worth then at the one column whose load has changed. Returns an arc that
   * blocks, the one outside the tree if no other does.
   */
  turn({ arcs, changes }: Cycle, step: number, outside: number): number {
    const { sides, flows } = this.#arcs;
    const { columns, arcColumn } = this.#flowProblem.problem;
    let blocking = outside;
    for (let at = 0; at < arcs.length; at++) {
      const arc = arcs[at]!;
      const change = changes[at]!;
      const low = this.#arcs.low(arc, sides[arc]!);
      const high = this.#arcs.high(arc, sides[arc]!);
      const isAtEnd = this.#arcs.reach(arc, sides[arc]!, change) <= step;
      const end = change < 0 ? low : high;
      if (isAtEnd) blocking = arc;
      this.#arcs.set(arc, isAtEnd ? end : Math.min(Math.max(flows[arc]! + step * change, low), high));
    }
    const column = arcColumn[arcs[0]!]!;
    const { capacity, congestion } = columns[column]!;
    this.#prices.price[this.#prices.columnNode(arcs[0]!)] = congestion.worth(
      this.#arcs.loads[column]! / capacity,
    );
    return blocking;
  }
}
