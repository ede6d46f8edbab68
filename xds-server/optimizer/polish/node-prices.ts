import type { ArcProblem, ArcRow } from '../problem/flow-problem.js';
import { type ArcFlows, FIXED } from './arc-flows.js';

/** Marginal costs of a row's engines may differ by this many seconds at the end, and by this share of them. */
const COST_TOLERANCE = 1e-7;
const COST_PRECISION = 1e-9;

/** Prices of rows and columns, as noted last, and what arcs cost by them. Nodes are numbered rows first, then columns. */
export class NodePrices {
  /** By node: marginal cost of a row, worth of a column's work. */
  readonly price: Float64Array;
  /** By node: how far rounding may put its price off, in seconds per request. */
  readonly noise: Float64Array;
  readonly #problem: ArcProblem['problem'];
  readonly #arcs: ArcFlows;
  readonly #rows: number;

  constructor(problem: ArcProblem['problem'], arcs: ArcFlows) {
    const nodes = problem.rows.length + problem.columns.length;
    this.#problem = problem;
    this.#arcs = arcs;
    this.#rows = problem.rows.length;
    this.price = new Float64Array(nodes);
    this.noise = new Float64Array(nodes);
  }

  rowNode(arc: number): number {
    return this.#problem.arcRow[arc]!;
  }

  columnNode(arc: number): number {
    return this.#rows + this.#problem.arcColumn[arc]!;
  }

  /** Marginal cost of an arc on one side of its kink, by the prices noted last. */
  cost(arc: number, side: number): number {
    return this.#arcs.slope(arc, side) + this.#problem.arcWork[arc]! * this.price[this.columnNode(arc)]!;
  }

  /** Whether an arc's marginal cost still differs from its row's, by the prices noted last. */
  gains(arc: number, side: number): boolean {
    const cost = this.cost(arc, side);
    const row = this.rowNode(arc);
    return Math.abs(cost - this.price[row]!) > turnTolerance(cost) + this.noise[row]!;
  }

  /** Differences from a row's cost that are no reason to go on shifting. */
  rowTolerance(row: number): number {
    return turnTolerance(this.price[row]!) + this.noise[row]!;
  }

  /** By row: what it pays at most per request on the margin, -Infinity without flow. */
  rowCosts(): Float64Array {
    const { rows } = this.#problem;
    const costs = new Float64Array(rows.length);
    for (let row = 0; row < rows.length; row++) costs[row] = this.#dearest(rows[row]!);
    return costs;
  }

  #dearest({ firstArc, endArc }: ArcRow): number {
    let dearest = -Infinity;
    for (let arc = firstArc; arc < endArc; arc++) dearest = Math.max(dearest, this.#costDown(arc));
    return dearest;
  }

  /** Marginal saving of less flow on an arc; -Infinity at its lower bound. */
  #costDown(arc: number): number {
    const side = this.#arcs.sideDown(arc);
    return side === FIXED ? -Infinity : this.cost(arc, side);
  }
}

/** Differences of cost around this value that are no reason to shift flow. */
export function costTolerance(cost: number): number {
  return COST_TOLERANCE + COST_PRECISION * Math.abs(cost);
}

/** The same for an arc that was let in because it gains more than that: close to it, rounding must not turn it away. */
export function turnTolerance(cost: number): number {
  return 0.1 * costTolerance(cost);
}
