import type { ArcProblem } from '../problem/flow-problem.js';
import { ArcFlows, FIXED } from './arc-flows.js';
import { CycleShifts } from './cycle-shifts.js';
import { type Cycle, Cycles } from './cycles.js';
import { Forest } from './forest.js';
import { NodePrices } from './node-prices.js';
import { RowGains } from './row-gains.js';
import { TreeAtHand } from './tree-at-hand.js';

/** Passes after which loads are computed anew. */
const RECOUNT_PASSES = 8;
const MOST_PASSES = 500;
/** Trees of fewer nodes go straight to their optimum. */
const LEAST_APPROACH = 8;
/** Prices of a tree are near enough for now when they are off by this share of what is gained most elsewhere. */
const NEAR_SHARE = 1e-2;
const NOTHING_CUT: number[] = [];

export interface PolishedFlows {
  readonly flows: Float64Array;
  /** Worth of each column's work in user-seconds per replica-second: congestion price plus scarcity price. */
  readonly columnPrices: Float64Array;
  /** What each row pays at most per request on the margin, -Infinity without flow. */
  readonly rowCosts: Float64Array;
  /** Arcs that may move freely: where a further polish starts. */
  readonly free: Uint8Array;
  /** Whether no row can gain more than the tolerance by any shift of flow. */
  readonly converged: boolean;
}

/** An arc and the side of its kink on which it would move. */
interface SidedArc {
  readonly arc: number;
  readonly side: number;
}

/**
 * Takes flows that add up by row to the exact optimum of the convex problem. A simplex method for convex costs:
 *
 * Arcs whose flow may move freely form a forest over rows and columns. Along a tree, equal marginal cost ties all prices
 * to the one at its root, and the flows that the prices ask for fit together at exactly one root price, the root of a
 * monotone function. Each tree moves towards that point as far as bounds and kinks allow; what blocks leaves the forest,
 * and where a row could gain by shifting flow, the two arcs concerned join it. Every step lowers the objective.
 * @param free marks arcs that may move from the start
 * @param enough seconds: ends, without having converged, when no row can gain more by a shift of one request
 */
export function polish(
  flowProblem: ArcProblem,
  start: Float64Array,
  free: Uint8Array,
  enough = 0,
): PolishedFlows {
  return new Polisher(flowProblem, start, free).run(enough);
}

class Polisher {
  readonly #rows: number;
  readonly #arcs: ArcFlows;
  readonly #forest: Forest;
  readonly #prices: NodePrices;
  readonly #gains: RowGains;
  readonly #hand: TreeAtHand;
  readonly #cycles: Cycles;
  readonly #shifts: CycleShifts;
  /** By arc, while the forest is replanted. */
  readonly #isEntering: Uint8Array;
  #pass = 0;
  /** Whether a tree was left near its optimum instead of there. */
  #isNear = false;

  constructor(flowProblem: ArcProblem, start: Float64Array, free: Uint8Array) {
    const { rows, columns, arcRow, arcColumn } = flowProblem.problem;
    this.#rows = rows.length;
    this.#arcs = new ArcFlows(flowProblem, start, free);
    this.#forest = new Forest(rows.length, columns.length, arcRow, arcColumn);
    this.#prices = new NodePrices(flowProblem.problem, this.#arcs);
    this.#gains = new RowGains(flowProblem, this.#arcs, this.#prices);
    this.#hand = new TreeAtHand(flowProblem, this.#arcs, this.#forest, this.#prices);
    this.#cycles = new Cycles(flowProblem, this.#arcs, this.#forest, this.#prices);
    this.#shifts = new CycleShifts(flowProblem, this.#arcs, this.#prices, this.#hand);
    this.#isEntering = new Uint8Array(start.length);
  }

  run(enough: number): PolishedFlows {
    let entering: readonly number[] = [...this.#arcs.freeArcs()];
    let converged = false;
    while (!converged && !(this.#pass > 0 && this.#gains.most <= enough) && this.#pass < MOST_PASSES) {
      this.#startPass();
      this.#improve(entering);
      entering = this.#gains.gainfulArcs();
      if (entering.length === 0 && this.#isNear) entering = this.#afterArrival();
      converged = entering.length === 0;
    }
    return {
      flows: this.#arcs.snapped(),
      columnPrices: this.#prices.price.slice(this.#rows),
      rowCosts: this.#prices.rowCosts(),
      free: this.#free(),
      converged,
    };
  }

  #startPass(): void {
    this.#pass++;
    this.#hand.startPass(this.#pass);
  }

  /** Takes trees that are near their optimum there; returns the arcs that turn out to gain then. */
  #afterArrival(): number[] {
    this.#startPass();
    this.#isNear = false;
    this.#gains.expectNone();
    this.#settleAll();
    return this.#gains.gainfulArcs();
  }

  #settleAll(): void {
    for (let node = 0; node < this.#prices.price.length; node++) this.#settle(node);
  }

  /** Replants the forest, lets these arcs join it, and takes all trees concerned to their optimum. */
  #improve(entering: readonly number[]): void {
    const { sides } = this.#arcs;
    if (this.#pass % RECOUNT_PASSES === 1) this.#arcs.recount();
    for (const arc of entering) this.#isEntering[arc] = 1;
    this.#forest.clear();
    const free = this.#arcs.freeArcs();
    for (let at = 0; at < free.length; at++) {
      if (!this.#isEntering[free[at]!]) this.#forest.join(free[at]!);
    }
    for (const arc of entering) this.#isEntering[arc] = 0;
    const cycles: SidedArc[] = [];
    for (const arc of entering) {
      if (this.#forest.join(arc)) continue;
      cycles.push({ arc, side: sides[arc]! });
      sides[arc] = FIXED;
    }
    if (this.#pass === 1) this.#settleAll();
    const changed: number[] = [];
    const left: SidedArc[] = [];
    for (const cycle of cycles) if (!this.#pivot(cycle.arc, cycle.side, changed)) left.push(cycle);
    if (this.#pass > 1) for (const arc of entering) this.#settle(this.#prices.rowNode(arc));
    for (const node of changed) this.#settle(node);
    for (const { arc, side } of left) this.#turnCycle(arc, side);
  }

  /**
   * Shifts flow around the cycle that an arc closes with a tree, and opens it where something blocks. No load changes but
   * that of one column, so the rest of the tree can wait; nodes from which it is to be settled go to `changed`.
   * False when the best shift comes before anything blocks: then all of the tree has to give way.
   */
  #pivot(arc: number, side: number, changed: number[]): boolean {
    const row = this.#prices.rowNode(arc);
    const size = this.#forest.path(row, this.#prices.columnNode(arc));
    if (size < 0) {
      if (!this.#prices.gains(arc, side)) return true;
      this.#shifts.aside.delete(arc);
      this.#join(arc, side);
      changed.push(row);
      return true;
    }
    const { sides } = this.#arcs;
    sides[arc] = side;
    const cycle = this.#cycles.cycleOf(arc, size);
    // A tolerance is per request on this arc, the rate per request on the cycle's first one.
    const requests = Math.abs(cycle.changes[cycle.arcs.indexOf(arc)]!);
    const tolerance = requests * this.#prices.rowTolerance(row);
    const step = this.#cycles.reachOf(cycle);
    const isWorthIt = cycle.rate < -tolerance;
    const isBlocked = isWorthIt && this.#cycles.rateAfter(cycle, step) <= -tolerance;
    if (isBlocked) {
      this.#shifts.aside.delete(arc);
      this.#turn(cycle, step, arc, changed);
    } else {
      sides[arc] = FIXED;
    }
    return isBlocked || !isWorthIt;
  }

  /** Turns a cycle and takes one arc that blocks out of the forest; unless that is the one outside, this one joins. */
  #turn(cycle: Cycle, step: number, outside: number, changed: number[]): void {
    const { sides } = this.#arcs;
    const blocking = this.#cycles.turn(cycle, step, outside);
    const side = sides[outside]!;
    sides[blocking] = FIXED;
    if (blocking !== outside) {
      this.#forest.cut(blocking);
      this.#join(outside, side);
    }
    this.#unsettle(cycle.arcs[0]!, changed);
    this.#unsettle(outside, changed);
    this.#unsettle(blocking, changed);
  }

  #unsettle(arc: number, changed: number[]): void {
    this.#hand.unsettle(this.#prices.rowNode(arc));
    this.#hand.unsettle(this.#prices.columnNode(arc));
    changed.push(this.#prices.rowNode(arc), this.#prices.columnNode(arc));
  }

  /** Takes the tree around a node, and the parts it may fall into, to their optimum. */
  #settle(start: number): void {
    if (this.#hand.isSettled(start)) return;
    const todo = [start];
    for (let node = todo.pop(); node !== undefined; node = todo.pop()) {
      if (this.#hand.isSettled(node)) continue;
      this.#hand.take(node);
      if (this.#hand.tree.size === 1) {
        this.#hand.note(this.#hand.prices.rootPrice());
        continue;
      }
      const cut = this.#approach() ?? this.#arrive();
      for (const arc of cut) todo.push(this.#prices.rowNode(arc), this.#prices.columnNode(arc));
    }
  }

  /**
   * Moves the tree at hand by a Newton step, to where something blocks or all the way, and returns what was cut. Where
   * something blocks, it is no matter where exactly the tree would have arrived; and all the way is near enough while
   * much more is to be gained elsewhere. Nothing, and no move, when the step leads too far or is not exact enough.
   */
  #approach(): number[] | undefined {
    if (this.#hand.tree.size < LEAST_APPROACH) return undefined;
    const rootPrice = this.#hand.prices.newtonPrice;
    this.#hand.wantNewtonStepTo(rootPrice);
    const step = this.#hand.plan([], 1);
    if (step < 1) {
      return this.#hand.prices.fallsAfter(step, rootPrice) ? this.#hand.moveBy(step, [], 1) : undefined;
    }
    if (!(this.#hand.prices.missAfter(rootPrice) <= NEAR_SHARE * this.#gains.most)) return undefined;
    this.#isNear = true;
    this.#hand.moveBy(step, [], 1);
    this.#hand.note(rootPrice);
    return NOTHING_CUT;
  }

  /** Moves the tree at hand to its optimum, or to where something blocks; returns what was cut. */
  #arrive(): number[] {
    const rootPrice = this.#hand.prices.rootPrice();
    this.#hand.wantLoadsAt(rootPrice);
    const cut = this.#hand.move([], 1);
    if (cut.length === 0) this.#hand.note(rootPrice);
    return cut;
  }

  /**
   * Shifts flow around the cycle that an arc closes with a tree, until its marginal cost equals its row's or something
   * blocks. Once that has opened the cycle, the arc joins the forest; until then it stays aside.
   */
  #turnCycle(arc: number, side: number): void {
    const changed: number[] = [];
    if (!this.#prices.gains(arc, side)) return;
    this.#shifts.aside.delete(arc);
    for (;;) {
      this.#hand.take(this.#prices.rowNode(arc));
      if (!this.#hand.holds(arc)) {
        this.#join(arc, side);
        changed.push(this.#prices.rowNode(arc));
        break;
      }
      const cut = this.#shifts.shift(arc, side);
      if (!cut) break;
      for (const each of cut) changed.push(this.#prices.rowNode(each), this.#prices.columnNode(each));
      if (this.#arcs.isAtEnd(arc, side)) break;
    }
    if (changed.length === 0) return;
    for (const [other, otherSide] of this.#shifts.aside) {
      this.#hand.collect(this.#prices.rowNode(other));
      if (this.#hand.holds(other)) continue;
      this.#shifts.aside.delete(other);
      this.#join(other, otherSide);
      changed.push(this.#prices.rowNode(other));
    }
    for (const node of changed) this.#settle(node);
  }

  /** Adds an arc between two trees. */
  #join(arc: number, side: number): void {
    this.#arcs.sides[arc] = side;
    this.#forest.insert(arc);
    this.#hand.unsettle(this.#prices.rowNode(arc));
  }

  #free(): Uint8Array {
    const { sides } = this.#arcs;
    const free = new Uint8Array(sides.length);
    for (let arc = 0; arc < sides.length; arc++) if (sides[arc] !== FIXED) free[arc] = 1;
    for (const arc of this.#shifts.aside.keys()) free[arc] = 1;
    return free;
  }
}
