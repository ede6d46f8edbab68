import type { Congestion } from '../problem/congestion.js';
import type { ArcProblem } from '../problem/flow-problem.js';
import { type ArcFlows, BELOW } from './arc-flows.js';
import type { Tree } from './forest.js';

/** Loads fit together when they miss by no more than this share of the tree's capacity. */
const LOAD_TOLERANCE = 1e-14;
const MOST_STEPS = 100;
/** Relative error of a load that rounding makes. */
const ROUNDING = 2 * Number.EPSILON;
/** Newton steps that may each leave more than half of the bracket before it is halved instead. */
const PATIENCE = 4;

/**
 * Prices along a tree. A free arc makes its row pay the same as everywhere else, `row = slope + work * column`, so every
 * price is an affine function of the root's: `base + gain * root`. The gains are also the factors with which loads enter
 * the balance of the whole tree, in units of the root's.
 */
export class TreePrices {
  readonly #problem: ArcProblem['problem'];
  readonly #flows: ArcFlows;
  readonly #tree: Tree;
  readonly #rows: number;
  /** By column. */
  readonly #capacity: Float64Array;
  readonly #congestion: readonly Congestion[];
  /** By column: replica-seconds of a request of its mix, and that times the relative error of a load. */
  readonly #requestSeconds: Float64Array;
  readonly #roundingSeconds: Float64Array;
  readonly #base: Float64Array;
  readonly #gain: Float64Array;
  /** By column: the utilisation found last, where the next search starts. */
  readonly #rho: Float64Array;
  /** By entry of a column, at the present loads: worth of its work, and change of its load per change of that. */
  readonly #worth: Float64Array;
  readonly #pliancy: Float64Array;
  /** Worth and its slope at one utilisation. */
  readonly #noted = new Float64Array(2);
  /** Sum and slope of the balance at the present loads. */
  #sum = 0;
  #slope = 0;
  /** Sum and slope of the balance evaluated last. */
  #excess = 0;
  #excessSlope = 0;
  #noise = 0;

  constructor(problem: ArcProblem['problem'], flows: ArcFlows, tree: Tree) {
    this.#problem = problem;
    this.#flows = flows;
    this.#tree = tree;
    this.#rows = problem.rows.length;
    this.#capacity = new Float64Array(problem.columns.length);
    this.#requestSeconds = new Float64Array(problem.columns.length);
    this.#roundingSeconds = new Float64Array(problem.columns.length);
    const congestions: Congestion[] = [];
    for (let column = 0; column < problem.columns.length; column++) {
      const { capacity, congestion, mix } = problem.columns[column]!;
      congestions.push(congestion);
      this.#capacity[column] = capacity;
      this.#requestSeconds[column] = 1 / mix.requestsPerWorkSecond;
      this.#roundingSeconds[column] = ROUNDING * this.#requestSeconds[column]!;
    }
    this.#congestion = congestions;
    this.#base = new Float64Array(tree.nodes.length);
    this.#gain = new Float64Array(tree.nodes.length);
    this.#rho = new Float64Array(problem.columns.length);
    this.#worth = new Float64Array(tree.nodes.length);
    this.#pliancy = new Float64Array(tree.nodes.length);
  }

  /** Must be called when the tree holds other nodes or arcs than before, or loads have changed. */
  prepare(): void {
    const { arcCost, arcWork } = this.#problem;
    const { size, nodes, arcs, parents } = this.#tree;
    const { loads, sides, moveSeconds } = this.#flows;
    const base = this.#base;
    const gain = this.#gain;
    const worths = this.#worth;
    const pliancies = this.#pliancy;
    const noted = this.#noted;
    const rows = this.#rows;
    base[0] = 0;
    gain[0] = 1;
    let sum = 0;
    let slope = 0;
    let noise = 0;
    for (let at = 0; at < size; at++) {
      const column = nodes[at]! - rows;
      if (at > 0) {
        const arc = arcs[at]!;
        const parent = parents[at]!;
        const row = column < 0 ? nodes[at]! : nodes[parent]!;
        const cost = sides[arc] === BELOW ? arcCost[arc]! - moveSeconds[row]! : arcCost[arc]!;
        const work = arcWork[arc]!;
        base[at] = column < 0 ? cost + work * base[parent]! : (base[parent]! - cost) / work;
        gain[at] = column < 0 ? work * gain[parent]! : gain[parent]! / work;
      }
      if (column < 0) continue;
      const congestion = this.#congestion[column]!;
      const capacity = this.#capacity[column]!;
      const rho = loads[column]! / capacity;
      noted[0] = rho;
      congestion.noteWorth(noted);
      const worth = noted[0]!;
      const steepness = noted[1]!;
      const pliancy = capacity / steepness;
      worths[at] = worth;
      pliancies[at] = pliancy;
      sum += gain[at]! * pliancy * (worth - base[at]!);
      slope += gain[at]! * gain[at]! * pliancy;
      const rounding = rho * steepness * this.#roundingSeconds[column]!;
      if (rounding > noise) noise = rounding;
    }
    this.#sum = sum;
    this.#slope = slope;
    this.#noise = noise;
  }

  /** Price of the node at an entry: marginal cost of a row, worth of a column's work. */
  at(entry: number, rootPrice: number): number {
    return this.#base[entry]! + this.#gain[entry]! * rootPrice;
  }

  /**
   * Seconds per request by which the prices found last may be off because loads are rounded: as good as nothing but at
   * full engines, where the worth of capacity rises steeply.
   */
  get noise(): number {
    return this.#noise;
  }

  gain(entry: number): number {
    return this.#gain[entry]!;
  }

  /** By how much the load that a root price asks of a column exceeds the present one. */
  excess(entry: number, rootPrice: number): number {
    const column = this.#tree.nodes[entry]! - this.#rows;
    const rho = this.#congestion[column]!.rhoAt(this.at(entry, rootPrice), this.#rho[column]!);
    return this.#capacity[column]! * rho - this.#flows.loads[column]!;
  }

  /**
   * The root price at which loads would fit together if each changed with its price as it does now: one Newton step from
   * the present loads. NaN where no column could change.
   */
  get newtonPrice(): number {
    return this.#sum / this.#slope;
  }

  /** Change of the tree's load, in units of the root's, per change of the root price, at the present loads. */
  get slope(): number {
    return this.#slope;
  }

  /** Change of the load at a column's entry that goes with `newtonPrice`. */
  newtonChange(entry: number, rootPrice: number): number {
    return this.#pliancy[entry]! * (this.at(entry, rootPrice) - this.#worth[entry]!);
  }

  /**
   * Whether the objective still falls after this part of a Newton step, which it does all the way then.
   * @param gain what a shift outside the tree that is part of the step gains at these prices
   */
  fallsAfter(step: number, rootPrice: number, gain = 0): boolean {
    const { size, nodes } = this.#tree;
    const { loads } = this.#flows;
    const rows = this.#rows;
    let rate = -gain;
    for (let at = 0; at < size; at++) {
      const column = nodes[at]! - rows;
      if (column < 0) continue;
      const price = this.at(at, rootPrice);
      const change = this.#pliancy[at]! * (price - this.#worth[at]!);
      const load = loads[column]! + step * change;
      rate += change * (this.#congestion[column]!.worth(load / this.#capacity[column]!) - price);
    }
    return rate < 0;
  }

  /** Seconds per request by which prices still differ from what work is worth after a whole Newton step. */
  missAfter(rootPrice: number): number {
    const { size, nodes } = this.#tree;
    const { loads } = this.#flows;
    const rows = this.#rows;
    let most = 0;
    for (let at = 0; at < size; at++) {
      const column = nodes[at]! - rows;
      if (column < 0) continue;
      const price = this.at(at, rootPrice);
      const load = loads[column]! + this.#pliancy[at]! * (price - this.#worth[at]!);
      const worth = this.#congestion[column]!.worth(load / this.#capacity[column]!);
      const miss = Math.abs(worth - price) * this.#requestSeconds[column]!;
      if (miss > most) most = miss;
    }
    return most;
  }

  /**
   * The root price at which the loads that all prices ask for add up to what the tree's rows bring, less an offset.
   * Newton steps inside a shrinking bracket.
   */
  rootPrice(offset = 0): number {
    const { rows, columns } = this.#problem;
    const { size, nodes } = this.#tree;
    const root = nodes[0]! - rows.length;
    if (root < 0) return 0;
    if (size === 1)
      return columns[root]!.congestion.worth(this.#flows.loads[root]! / columns[root]!.capacity);
    let low = Infinity;
    let high = -Infinity;
    let capacity = 0;
    let room = offset;
    let sum = 0;
    let slope = 0;
    for (let at = 0; at < size; at++) {
      const column = nodes[at]! - rows.length;
      if (column < 0) continue;
      const { congestion, capacity: own } = columns[column]!;
      const gain = this.#gain[at]!;
      low = Math.min(low, -this.#base[at]! / gain);
      high = Math.max(high, (congestion.maxWorth - this.#base[at]!) / gain);
      capacity += gain * own;
      const load = this.#flows.loads[column]!;
      room += gain * (congestion.max * own - load);
      const rho = load / own;
      const steepness = congestion.worthSlope(rho);
      const weight = (gain * own) / steepness;
      sum += weight * (congestion.worth(rho) - this.#base[at]!);
      slope += weight * gain;
      this.#rho[column] = rho;
    }
    if (room <= 0) {
      const overloaded = this.#overloadPrice(high, offset);
      if (overloaded >= high) return overloaded;
    }
    const tolerance = LOAD_TOLERANCE * capacity;
    let price = Math.min(Math.max(sum / slope, low), high);
    let width = high - low;
    for (let step = 0; step < MOST_STEPS; step++) {
      this.#evaluate(price, offset);
      if (Math.abs(this.#excess) <= tolerance) break;
      if (this.#excess > 0) high = price;
      else low = price;
      const newton = price - this.#excess / this.#excessSlope;
      const isSlow = step > PATIENCE && high - low > 0.5 * width;
      width = high - low;
      const next = newton > low && newton < high && !isSlow ? newton : 0.5 * (low + high);
      if (next === price) break;
      price = next;
    }
    return price;
  }

  /** Sums up by how much the loads that a root price asks for exceed the present ones. */
  #evaluate(price: number, offset: number): void {
    const { size, nodes } = this.#tree;
    const { loads } = this.#flows;
    const rows = this.#rows;
    let sum = offset;
    let slope = 0;
    for (let at = 0; at < size; at++) {
      const column = nodes[at]! - rows;
      if (column < 0) continue;
      const congestion = this.#congestion[column]!;
      const capacity = this.#capacity[column]!;
      const gain = this.#gain[at]!;
      const rho = congestion.rhoAt(this.#base[at]! + gain * price, this.#rho[column]!);
      this.#rho[column] = rho;
      sum += gain * (capacity * rho - loads[column]!);
      if (rho > 0) slope += (gain * gain * capacity) / congestion.worthSlope(rho);
    }
    this.#excess = sum;
    this.#excessSlope = slope;
  }

  /**
   * The root price if no column is below its hard limit, as from the price `from` on, where the balance is a straight
   * line. A result below `from` means that some column is.
   */
  #overloadPrice(from: number, offset: number): number {
    const { rows, columns } = this.#problem;
    const { size, nodes } = this.#tree;
    let sum = offset;
    let slope = 0;
    for (let at = 0; at < size; at++) {
      const column = nodes[at]! - rows.length;
      if (column < 0) continue;
      const { capacity, congestion } = columns[column]!;
      const gain = this.#gain[at]!;
      sum +=
        gain * (capacity * congestion.rhoAt(this.#base[at]! + gain * from, 0) - this.#flows.loads[column]!);
      slope += (gain * gain * capacity) / congestion.overloadSlope;
    }
    return from - sum / slope;
  }
}
