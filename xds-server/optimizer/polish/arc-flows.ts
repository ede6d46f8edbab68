import { type ArcProblem, loadsOf } from '../problem/flow-problem.js';

/** Flows closer to a bound than this share of the largest row are at it. */
const FLOW_TOLERANCE = 1e-12;

/** The flow of an arc stands still ... */
export const FIXED = 0;
/** ... or moves freely above the flow in force ... */
const ABOVE = 1;
/** ... or below it, where one more request saves a move. */
export const BELOW = 2;

/** Flows on arcs and the loads that they make, with the ranges in which they may move. */
export class ArcFlows {
  readonly flows: Float64Array;
  /** By arc: `FIXED`, `ABOVE` or `BELOW`. */
  readonly sides: Uint8Array;
  /** Replica-seconds per second by column. */
  readonly loads: Float64Array;
  /** Flows closer than this to an end of their range are there. */
  readonly tolerance: number;
  readonly #flowProblem: ArcProblem;
  readonly #listed: Int32Array;
  /** By row: what moving a request costs. */
  readonly moveSeconds: Float64Array;

  /** Arcs marked in `free` may move from the start. */
  constructor(flowProblem: ArcProblem, start: Float64Array, free: Uint8Array) {
    const { served, kink, upper } = flowProblem;
    this.#flowProblem = flowProblem;
    this.#listed = new Int32Array(start.length);
    this.moveSeconds = new Float64Array(served.length);
    let most = 0;
    for (let row = 0; row < served.length; row++) {
      this.moveSeconds[row] = flowProblem.problem.rows[row]!.moveSeconds;
      most = Math.max(most, served[row]!);
    }
    this.tolerance = FLOW_TOLERANCE * most;
    this.flows = start.slice();
    this.loads = loadsOf(flowProblem, start);
    this.sides = new Uint8Array(start.length).fill(FIXED);
    for (let arc = 0; arc < start.length; arc++) {
      if (free[arc]) {
        this.sides[arc] = start[arc]! < kink[arc]! || upper[arc]! === kink[arc]! ? BELOW : ABOVE;
      }
    }
  }

  set(arc: number, flow: number): void {
    const { arcColumn, arcWork } = this.#flowProblem.problem;
    this.loads[arcColumn[arc]!]! += arcWork[arc]! * (flow - this.flows[arc]!);
    this.flows[arc] = flow;
  }

  /** Computes all loads anew, so that rounding does not add up. */
  recount(): void {
    this.loads.set(loadsOf(this.#flowProblem, this.flows));
  }

  /**
   * Arcs that may move, ascending, until asked again. Most may not, so whole words of sides are looked at; which ones of a
   * word do is hard to foresee, so each is listed, and written over by the next if it is `FIXED`: 0, where others are 1 or 2.
   */
  freeArcs(): Int32Array {
    const { sides } = this;
    const listed = this.#listed;
    const words = new Int32Array(sides.buffer, sides.byteOffset, sides.length >> 2);
    let size = 0;
    for (let word = 0; word < words.length; word++) {
      if (words[word] === 0) continue;
      for (let arc = 4 * word; arc < 4 * word + 4; arc++) {
        listed[size] = arc;
        size += (sides[arc]! + 1) >> 1;
      }
    }
    for (let arc = 4 * words.length; arc < sides.length; arc++)
      if (sides[arc] !== FIXED) listed[size++] = arc;
    return listed.subarray(0, size);
  }

  /** Ends of the range in which an arc's flow may move on this side. */
  low(arc: number, side: number): number {
    return side === BELOW ? this.#flowProblem.lower[arc]! : this.#flowProblem.kink[arc]!;
  }

  high(arc: number, side: number): number {
    return side === BELOW ? this.#flowProblem.kink[arc]! : this.#flowProblem.upper[arc]!;
  }

  /** Seconds without load that one more request costs on this side. */
  slope(arc: number, side: number): number {
    const { arcCost, arcRow } = this.#flowProblem.problem;
    return side === BELOW ? arcCost[arc]! - this.moveSeconds[arcRow[arc]!]! : arcCost[arc]!;
  }

  /** On which side of the flow in force an arc would grow; `FIXED` at its upper bound. */
  sideUp(arc: number): number {
    const flow = this.flows[arc]! + this.tolerance;
    if (flow >= this.#flowProblem.upper[arc]!) return FIXED;
    return flow < this.#flowProblem.kink[arc]! ? BELOW : ABOVE;
  }

  /** On which side an arc would shrink; `FIXED` at its lower bound. */
  sideDown(arc: number): number {
    const flow = this.flows[arc]! - this.tolerance;
    if (flow <= this.#flowProblem.lower[arc]!) return FIXED;
    return flow > this.#flowProblem.kink[arc]! ? ABOVE : BELOW;
  }

  isAtEnd(arc: number, side: number): boolean {
    const flow = this.flows[arc]!;
    return flow <= this.low(arc, side) + this.tolerance || flow >= this.high(arc, side) - this.tolerance;
  }

  /** How often a change fits between an arc's flow and the end of its range. */
  reach(arc: number, side: number, change: number): number {
    if (change === 0) return Infinity;
    const end = change > 0 ? this.high(arc, side) : this.low(arc, side);
    return Math.max(0, (end - this.flows[arc]!) / change);
  }

  /** Flows as they are, those that differ from a bound or the flow in force by rounding only put there. */
  snapped(): Float64Array {
    const { lower, kink, upper } = this.#flowProblem;
    const { tolerance } = this;
    const flows = this.flows.slice();
    for (let arc = 0; arc < flows.length; arc++) {
      const flow = flows[arc]!;
      if (Math.abs(flow - lower[arc]!) <= tolerance) flows[arc] = lower[arc]!;
      else if (Math.abs(flow - kink[arc]!) <= tolerance) flows[arc] = kink[arc]!;
      else if (Math.abs(flow - upper[arc]!) <= tolerance) flows[arc] = upper[arc]!;
    }
    return flows;
  }
}
