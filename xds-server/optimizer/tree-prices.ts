import type { ArcFlows } from './arc-flows.js';
import type { Tree } from './forest.js';
import type { Problem } from './problem.js';

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
  readonly #problem: Problem;
  readonly #flows: ArcFlows;
  readonly #tree: Tree;
  readonly #base: Float64Array;
  readonly #gain: Float64Array;
  /** By column: the utilisation found last, where the next search starts. */
  readonly #rho: Float64Array;
  /** By entry of a column, at the present loads: worth of its work, and change of its load per change of that. */
  readonly #worth: Float64Array;
  readonly #pliancy: Float64Array;
  /** Sum and slope of the balance evaluated last. */
  #sum = 0;
  #slope = 0;
  #noise = 0;

  constructor(problem: Problem, flows: ArcFlows, tree: Tree) {
    this.#problem = problem;
    this.#flows = flows;
    this.#tree = tree;
    this.#base = new Float64Array(tree.nodes.length);
    this.#gain = new Float64Array(tree.nodes.length);
    this.#rho = new Float64Array(problem.columns.length);
    this.#worth = new Float64Array(tree.nodes.length);
    this.#pliancy = new Float64Array(tree.nodes.length);
  }

  /** Must be called when the tree holds other nodes or arcs than before. */
  prepare(): void {
    const { arcWork, rows } = this.#problem;
    const { size, nodes, arcs, parents } = this.#tree;
    this.#base[0] = 0;
    this.#gain[0] = 1;
    for (let at = 1; at < size; at++) {
      const arc = arcs[at]!;
      const parent = parents[at]!;
      const slope = this.#flows.slope(arc, this.#flows.sides[arc]!);
      const work = arcWork[arc]!;
      if (nodes[at]! < rows.length) {
        this.#base[at] = slope + work * this.#base[parent]!;
        this.#gain[at] = work * this.#gain[parent]!;
      } else {
        this.#base[at] = (this.#base[parent]! - slope) / work;
        this.#gain[at] = this.#gain[parent]! / work;
      }
    }
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
    const column = this.#tree.nodes[entry]! - this.#problem.rows.length;
    const { capacity, congestion } = this.#problem.columns[column]!;
    return (
      capacity * congestion.rhoAt(this.at(entry, rootPrice), this.#rho[column]!) - this.#flows.loads[column]!
    );
  }

  /**
   * The root price at which loads would fit together if each changed with its price as it does now: one Newton step from
   * the present loads. NaN where no column could change.
   */
  newtonPrice(): number {
    const { rows, columns } = this.#problem;
    const { size, nodes } = this.#tree;
    let sum = 0;
    let slope = 0;
    for (let at = 0; at < size; at++) {
      const column = nodes[at]! - rows.length;
      if (column < 0) continue;
      const { congestion, capacity } = columns[column]!;
      const gain = this.#gain[at]!;
      const rho = this.#flows.loads[column]! / capacity;
      const worth = congestion.worth(rho);
      const pliancy = capacity / congestion.worthSlope(rho);
      this.#worth[at] = worth;
      this.#pliancy[at] = pliancy;
      sum += gain * pliancy * (worth - this.#base[at]!);
      slope += gain * gain * pliancy;
    }
    this.#slope = slope;
    return sum / slope;
  }

  /** Change of the tree's load, in units of the root's, per change of the root price, as evaluated last. */
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
    const { rows, columns } = this.#problem;
    const { size, nodes } = this.#tree;
    let rate = -gain;
    for (let at = 0; at < size; at++) {
      const column = nodes[at]! - rows.length;
      if (column < 0) continue;
      const { congestion, capacity } = columns[column]!;
      const change = this.newtonChange(at, rootPrice);
      const load = this.#flows.loads[column]! + step * change;
      rate += change * (congestion.worth(load / capacity) - this.at(at, rootPrice));
    }
    return rate < 0;
  }

  /**
   * The root price at which the loads that all prices ask for add up to what the tree's rows bring, less an offset.
   * Newton steps inside a shrinking bracket.
   */
  rootPrice(offset = 0): number {
    const { rows, columns } = this.#problem;
    const { size, nodes } = this.#tree;
    const root = nodes[0]! - rows.length;
    this.#noise = 0;
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
      const { congestion, capacity: own, mix } = columns[column]!;
      const gain = this.#gain[at]!;
      low = Math.min(low, -this.#base[at]! / gain);
      high = Math.max(high, (congestion.maxWorth - this.#base[at]!) / gain);
      capacity += gain * own;
      const load = this.#flows.loads[column]!;
      room += gain * (congestion.max * own - load);
      const rho = load / own;
      const steepness = congestion.worthSlope(rho);
      this.#noise = Math.max(this.#noise, (ROUNDING * rho * steepness) / mix.requestsPerWorkSecond);
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
      if (Math.abs(this.#sum) <= tolerance) break;
      if (this.#sum > 0) high = price;
      else low = price;
      const newton = price - this.#sum / this.#slope;
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
    const { rows, columns } = this.#problem;
    const { size, nodes } = this.#tree;
    let sum = offset;
    let slope = 0;
    for (let at = 0; at < size; at++) {
      const column = nodes[at]! - rows.length;
      if (column < 0) continue;
      const { capacity, congestion } = columns[column]!;
      const gain = this.#gain[at]!;
      const rho = congestion.rhoAt(this.#base[at]! + gain * price, this.#rho[column]!);
      this.#rho[column] = rho;
      sum += gain * (capacity * rho - this.#flows.loads[column]!);
      if (rho > 0) slope += (gain * gain * capacity) / congestion.worthSlope(rho);
    }
    this.#sum = sum;
    this.#slope = slope;
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
