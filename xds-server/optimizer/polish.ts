import type { Congestion } from './congestion.js';
import { type FlowProblem, loadsOf } from './flow-problem.js';
import { Forest, Tree } from './forest.js';
import type { Row } from './problem.js';

/** Marginal costs of a row's engines may differ by this many seconds at the end, and by this share of them. */
const COST_TOLERANCE = 1e-8;
const COST_PRECISION = 1e-9;
/** Flows closer to a bound than this share of the largest row are at it. */
const FLOW_TOLERANCE = 1e-12;
/** Loads fit together when they miss by no more than this share of the tree's capacity. */
const LOAD_TOLERANCE = 1e-14;
/** Rows take part in a pass when they gain at least this share of what the best one does. */
const GAIN_SHARE = 0.5;
/** Cycles whose gains cancel out to this share change no load. */
const NEUTRAL_GAIN = 1e-9;
const MOST_PASSES = 500;
const MOST_ROOT_STEPS = 100;

const FIXED = 0;
const ABOVE = 1;
const BELOW = 2;

export interface PolishedFlows {
  readonly flows: Float64Array;
  /** Marginal value of each column's work in user-seconds per replica-second: congestion price plus scarcity price. */
  readonly columnPrices: Float64Array;
  /** What each row pays at most per request on the margin, -Infinity without flow. */
  readonly rowCosts: Float64Array;
  /** Arcs that may move freely: where a further polish starts. */
  readonly free: Uint8Array;
  /** Whether no row can gain more than the tolerance by any shift of flow. */
  readonly converged: boolean;
  readonly passes: number;
}

/** A shift of flow on an arc outside the tree, which the tree has to make up for. */
interface Shift {
  readonly arc: number;
  readonly amount: number;
}

/** What a row gains per request that it shifts from one arc to another. */
interface Gain {
  readonly taker: number;
  readonly giver: number;
  readonly gain: number;
}

/**
 * Turns feasible flows into the exact optimum of the convex problem. A simplex method for convex costs:
 *
 * Arcs whose flow may move freely form a forest over rows and columns. Along a tree, equal marginal cost ties all prices
 * to the one at its root, and the flows that the prices ask for fit together at exactly one root price, the root of a
 * monotone function. Each tree moves towards that point as far as bounds and kinks allow; what blocks leaves the forest,
 * and where a row could gain by shifting flow, the two arcs concerned join it. Every step lowers the objective.
 */
export function polish(flowProblem: FlowProblem, start: Float64Array, basic: Uint8Array): PolishedFlows {
  return new Polisher(flowProblem, start, basic).run();
}

/** Differences of cost around this value that are no reason to shift flow. */
export function costTolerance(cost: number): number {
  return COST_TOLERANCE + COST_PRECISION * Math.abs(cost);
}

class Polisher {
  readonly #flowProblem: FlowProblem;
  readonly #rows: number;
  readonly #x: Float64Array;
  readonly #state: Uint8Array;
  readonly #tolerance: number;
  readonly #loads: Float64Array;
  /** By node: marginal cost of a row, price of a column. */
  readonly #price: Float64Array;
  readonly #rho: Float64Array;
  readonly #forest: Forest;
  readonly #tree: Tree;
  /** By node: the pass in which its tree reached its optimum. */
  readonly #settledIn: Int32Array;
  /** Arcs with room on both sides whose ends the forest joins already, by the side of the kink they are on. */
  readonly #aside = new Map<number, number>();
  #pass = 0;

  // Of the tree at hand, by entry: price = base + gain * root price; what is still missing; wanted change of the arc.
  readonly #base: Float64Array;
  readonly #gain: Float64Array;
  readonly #excess: Float64Array;
  readonly #change: Float64Array;

  constructor(flowProblem: FlowProblem, start: Float64Array, basic: Uint8Array) {
    const { problem, served, kink, upper } = flowProblem;
    const rows = problem.rows.length;
    const nodes = rows + problem.columns.length;
    this.#flowProblem = flowProblem;
    this.#rows = rows;
    this.#x = Float64Array.from(start);
    this.#tolerance = FLOW_TOLERANCE * served.reduce((most, flow) => Math.max(most, flow), 0);
    this.#state = basic.map((isBasic, arc) => {
      if (!isBasic) return FIXED;
      return start[arc]! < kink[arc]! || upper[arc]! === kink[arc]! ? BELOW : ABOVE;
    });
    this.#loads = loadsOf(flowProblem, this.#x);
    this.#rho = new Float64Array(problem.columns.length);
    this.#price = new Float64Array(nodes);
    this.#forest = new Forest(rows, problem.columns.length, problem.arcRow, problem.arcColumn);
    this.#tree = new Tree(nodes);
    this.#settledIn = new Int32Array(nodes);
    this.#base = new Float64Array(nodes);
    this.#gain = new Float64Array(nodes);
    this.#excess = new Float64Array(nodes);
    this.#change = new Float64Array(nodes);
  }

  run(): PolishedFlows {
    let entering = this.#freeArcs();
    let converged = false;
    while (!converged && this.#pass < MOST_PASSES) {
      this.#pass++;
      this.#improve(entering);
      entering = this.#gainfulArcs();
      converged = entering.length === 0;
    }
    const free = this.#state.map((state, arc) => (state !== FIXED || this.#aside.has(arc) ? 1 : 0));
    return {
      flows: this.#x.map((flow, arc) => this.#snapped(flow, arc)),
      columnPrices: this.#price.slice(this.#rows),
      rowCosts: Float64Array.from(this.#flowProblem.problem.rows, (row) => this.#dearest(row)),
      free,
      converged,
      passes: this.#pass,
    };
  }

  /** A flow that differs from a bound or the kink by rounding only is there. */
  #snapped(flow: number, arc: number): number {
    const { lower, upper, kink } = this.#flowProblem;
    for (const at of [lower[arc]!, kink[arc]!, upper[arc]!]) {
      if (Math.abs(flow - at) <= this.#tolerance) return at;
    }
    return flow;
  }

  #freeArcs(): number[] {
    const arcs: number[] = [];
    for (let arc = 0; arc < this.#state.length; arc++) {
      if (this.#state[arc] !== FIXED) arcs.push(arc);
    }
    return arcs;
  }

  /** Replants the forest, lets these arcs join it, and takes all trees concerned to their optimum. */
  #improve(entering: readonly number[]): void {
    this.#loads.set(loadsOf(this.#flowProblem, this.#x));
    const isEntering = new Set(entering);
    this.#forest.clear();
    for (const arc of this.#freeArcs()) if (!isEntering.has(arc)) this.#forest.join(arc);
    const closing = entering.filter((arc) => !this.#forest.join(arc));
    const cycles = closing.map((arc) => ({ arc, state: this.#state[arc]! }));
    for (const arc of closing) this.#state[arc] = FIXED;
    if (this.#pass === 1) {
      for (let node = 0; node < this.#price.length; node++) this.#settle(node);
    } else {
      for (const arc of entering) this.#settle(this.#flowProblem.problem.arcRow[arc]!);
    }
    for (const { arc, state } of cycles) this.#turnCycle(arc, state);
  }

  /** Takes the tree around a node, and the parts it may fall into, to their optimum. */
  #settle(start: number): void {
    const todo = [start];
    for (let node = todo.pop(); node !== undefined; node = todo.pop()) {
      if (this.#settledIn[node] === this.#pass) continue;
      this.#forest.collect(node, this.#tree);
      this.#prepare();
      const price = this.#rootPrice();
      this.#wantedChanges(price, []);
      const cut = this.#move([], 1);
      if (cut.length === 0) this.#finish(price);
      for (const arc of cut) {
        todo.push(
          this.#flowProblem.problem.arcRow[arc]!,
          this.#rows + this.#flowProblem.problem.arcColumn[arc]!,
        );
      }
    }
  }

  /**
   * Shifts flow around the cycle that an arc closes with a tree, until its marginal cost equals its row's or something
   * blocks. Once that has opened the cycle, the arc joins the forest; until then it stays aside.
   */
  #turnCycle(arc: number, state: number): void {
    const { problem } = this.#flowProblem;
    const row = problem.arcRow[arc]!;
    const column = this.#rows + problem.arcColumn[arc]!;
    const opened: number[] = [];
    if (!this.#gains(arc, state)) return;
    this.#aside.delete(arc);
    for (;;) {
      this.#forest.collect(row, this.#tree);
      if (this.#tree.entryOf(column) < 0) {
        this.#join(arc, state);
        opened.push(row);
        break;
      }
      this.#prepare();
      const partner = this.#partnerOf(arc);
      const cut = partner < 0 ? this.#shiftAlone(arc, state) : this.#shiftWith(partner, arc, state);
      if (!cut) break;
      for (const each of cut) opened.push(problem.arcRow[each]!, this.#rows + problem.arcColumn[each]!);
      if (this.#atEnd(arc, state)) break;
    }
    if (opened.length === 0) return;
    for (const [other, otherState] of this.#aside) {
      this.#forest.collect(problem.arcRow[other]!, this.#tree);
      if (this.#tree.entryOf(this.#rows + problem.arcColumn[other]!) >= 0) continue;
      this.#aside.delete(other);
      this.#join(other, otherState);
      opened.push(problem.arcRow[other]!);
    }
    for (const node of opened) this.#settle(node);
  }

  /** Whether an arc's marginal cost still differs from its row's, by the prices noted last. */
  #gains(arc: number, state: number): boolean {
    const { arcRow, arcColumn, arcWork } = this.#flowProblem.problem;
    const cost = this.#slopeIn(arc, state) + arcWork[arc]! * this.#price[this.#rows + arcColumn[arc]!]!;
    return Math.abs(cost - this.#price[arcRow[arc]!]!) > costTolerance(cost);
  }

  /** Adds an arc between two trees. */
  #join(arc: number, state: number): void {
    this.#state[arc] = state;
    this.#forest.insert(arc);
    this.#settledIn[this.#flowProblem.problem.arcRow[arc]!] = 0;
  }

  #atEnd(arc: number, state: number): boolean {
    const flow = this.#x[arc]!;
    return (
      flow <= this.#low(arc, state) + this.#tolerance || flow >= this.#high(arc, state) - this.#tolerance
    );
  }

  /** An arc aside whose cycle, like this one's, lies in the tree at hand, and changes the tree's load when it turns. */
  #partnerOf(arc: number): number {
    for (const other of this.#aside.keys()) {
      if (other !== arc && this.#isInTree(other) && !this.#isNeutral(other)) return other;
    }
    return -1;
  }

  #isInTree(arc: number): boolean {
    const { arcRow, arcColumn } = this.#flowProblem.problem;
    return this.#tree.entryOf(arcRow[arc]!) >= 0 && this.#tree.entryOf(this.#rows + arcColumn[arc]!) >= 0;
  }

  /**
   * Takes an arc's marginal cost to its row's, or to the end of its range.
   * Returns what was cut, or nothing when no more is to be gained.
   */
  #shiftAlone(arc: number, state: number): number[] | undefined {
    const rowPrice = this.#price[this.#flowProblem.problem.arcRow[arc]!]!;
    const perAmount = this.#loadPerAmount(arc);
    const fixedPart = this.#advantage(arc, state, 0);
    const advantage = (amount: number): number => fixedPart + perAmount * this.#rootPrice(amount * perAmount);
    const first = advantage(0);
    if (Math.abs(first) <= costTolerance(rowPrice)) return undefined;
    const most = (first > 0 ? this.#high(arc, state) : this.#low(arc, state)) - this.#x[arc]!;
    if (Math.abs(most) <= this.#tolerance) return undefined;
    const shift = { arc, amount: first * advantage(most) >= 0 ? most : bisect(advantage, most) };
    const price = this.#rootPrice(shift.amount * perAmount);
    this.#wantedChanges(price, [shift]);
    const cut = this.#move([shift], 1);
    if (cut.length > 0) return cut;
    this.#finish(price);
    if (!this.#atEnd(arc, state)) this.#aside.set(arc, state);
    return undefined;
  }

  /**
   * Turns two cycles against each other so that no load and no price changes: what is gained per request is then
   * constant, and something blocks in the end.
   */
  #shiftWith(partner: number, arc: number, state: number): number[] | undefined {
    const rowPrice = this.#price[this.#flowProblem.problem.arcRow[arc]!]!;
    const advantage = this.#advantage(arc, state, this.#price[this.#tree.nodes[0]!]!);
    if (Math.abs(advantage) <= costTolerance(rowPrice)) return undefined;
    const partnerState = this.#aside.get(partner)!;
    const sign = Math.sign(advantage);
    const shifts = [
      { arc, amount: sign },
      { arc: partner, amount: (-sign * this.#loadPerAmount(arc)) / this.#loadPerAmount(partner) },
    ];
    this.#wantedChanges(undefined, shifts);
    const most = Math.min(
      this.#reach(arc, state, shifts[0]!.amount),
      this.#reach(partner, partnerState, shifts[1]!.amount),
    );
    const cut = this.#move(shifts, most);
    if (this.#atEnd(partner, partnerState)) this.#aside.delete(partner);
    else if (cut.length === 0 && this.#atEnd(arc, state)) return undefined;
    return cut;
  }

  /** How often a change fits between an arc's flow and the end of its range. */
  #reach(arc: number, state: number, change: number): number {
    if (change === 0) return Infinity;
    return Math.max(
      0,
      ((change > 0 ? this.#high(arc, state) : this.#low(arc, state)) - this.#x[arc]!) / change,
    );
  }

  /** By how much one more request on an arc would be cheaper than its row's marginal cost, at a root price. */
  #advantage(arc: number, state: number, rootPrice: number): number {
    const { arcRow, arcColumn, arcWork } = this.#flowProblem.problem;
    const row = this.#tree.entryOf(arcRow[arc]!);
    const column = this.#tree.entryOf(this.#rows + arcColumn[arc]!);
    const base = this.#base[row]! - this.#slopeIn(arc, state) - arcWork[arc]! * this.#base[column]!;
    return base + this.#loadPerAmount(arc) * rootPrice;
  }

  /** What a unit of flow, moved from the tree to an arc that closes a cycle, takes off the balance at the root. */
  #loadPerAmount(arc: number): number {
    const { arcRow, arcColumn, arcWork } = this.#flowProblem.problem;
    const row = this.#tree.entryOf(arcRow[arc]!);
    const column = this.#tree.entryOf(this.#rows + arcColumn[arc]!);
    return this.#gain[row]! - arcWork[arc]! * this.#gain[column]!;
  }

  /** Whether a cycle's gains cancel out. */
  #isNeutral(arc: number): boolean {
    const row = this.#tree.entryOf(this.#flowProblem.problem.arcRow[arc]!);
    return Math.abs(this.#loadPerAmount(arc)) <= NEUTRAL_GAIN * this.#gain[row]!;
  }

  /** Prices along the tree as functions of the root's. The gains are also the loads' factors in the balance at the root. */
  #prepare(): void {
    const { arcWork } = this.#flowProblem.problem;
    const { size, nodes, arcs, parents } = this.#tree;
    this.#base[0] = 0;
    this.#gain[0] = 1;
    for (let at = 1; at < size; at++) {
      const arc = arcs[at]!;
      const parent = parents[at]!;
      const slope = this.#slopeIn(arc, this.#state[arc]!);
      const work = arcWork[arc]!;
      if (nodes[at]! < this.#rows) {
        this.#base[at] = slope + work * this.#base[parent]!;
        this.#gain[at] = work * this.#gain[parent]!;
      } else {
        this.#base[at] = (this.#base[parent]! - slope) / work;
        this.#gain[at] = this.#gain[parent]! / work;
      }
    }
  }

  /** The root price at which the loads that all prices ask for add up to what the tree's rows bring, plus an offset. */
  #rootPrice(offset = 0): number {
    const { columns } = this.#flowProblem.problem;
    const { size, nodes } = this.#tree;
    const root = nodes[0]! - this.#rows;
    if (root < 0) return 0;
    if (size === 1) return this.#congestion(root).worth(this.#loads[root]! / columns[root]!.capacity);
    let low = Infinity;
    let high = -Infinity;
    let capacity = 0;
    let room = offset;
    for (let at = 0; at < size; at++) {
      const column = nodes[at]! - this.#rows;
      if (column < 0) continue;
      const { congestion, capacity: own } = columns[column]!;
      const gain = this.#gain[at]!;
      low = Math.min(low, -this.#base[at]! / gain);
      high = Math.max(high, (congestion.maxWorth - this.#base[at]!) / gain);
      capacity += gain * own;
      room += gain * (congestion.max * own - this.#loads[column]!);
    }
    if (room <= 0) {
      const overloaded = this.#overloadPrice(high, offset);
      if (overloaded >= high) return overloaded;
    }
    const tolerance = LOAD_TOLERANCE * capacity;
    const balance = { value: 0, slope: 0 };
    let price = Math.min(Math.max(this.#price[nodes[0]!]!, low), high);
    let width = high - low;
    for (let step = 0; step < MOST_ROOT_STEPS; step++) {
      this.#balance(price, offset, balance);
      if (Math.abs(balance.value) <= tolerance) break;
      if (balance.value > 0) high = price;
      else low = price;
      const newton = price - balance.value / balance.slope;
      const slow = high - low > 0.5 * width;
      width = high - low;
      const next = newton > low && newton < high && !(slow && step > 4) ? newton : 0.5 * (low + high);
      if (next === price) break;
      price = next;
    }
    return price;
  }

  /**
   * The root price if no column is below its hard limit, as from the price `from` on: the balance is a straight line
   * there. Prices below `from` mean that some are.
   */
  #overloadPrice(from: number, offset: number): number {
    const { columns } = this.#flowProblem.problem;
    const { size, nodes } = this.#tree;
    let value = offset;
    let slope = 0;
    for (let at = 0; at < size; at++) {
      const column = nodes[at]! - this.#rows;
      if (column < 0) continue;
      const { capacity, congestion } = columns[column]!;
      const gain = this.#gain[at]!;
      value += gain * (capacity * congestion.rhoAt(this.#base[at]! + gain * from, 0) - this.#loads[column]!);
      slope += (gain * gain * capacity) / congestion.overloadSlope;
    }
    return from - value / slope;
  }

  /** By how much the loads asked for at a root price exceed the present ones, in units of the root; and its slope. */
  #balance(price: number, offset: number, out: { value: number; slope: number }): void {
    const { columns } = this.#flowProblem.problem;
    const { size, nodes } = this.#tree;
    out.value = offset;
    out.slope = 0;
    for (let at = 0; at < size; at++) {
      const column = nodes[at]! - this.#rows;
      if (column < 0) continue;
      const { capacity, congestion } = columns[column]!;
      const rho = congestion.rhoAt(this.#base[at]! + this.#gain[at]! * price, this.#rho[column]!);
      this.#rho[column] = rho;
      out.value += this.#gain[at]! * (capacity * rho - this.#loads[column]!);
      if (rho > 0) {
        out.slope += (this.#gain[at]! * capacity * this.#gain[at]!) / congestion.worthSlope(rho);
      }
    }
  }

  /**
   * Changes of flow on the tree's arcs, leaves first, that make up for shifts and lead to the loads asked for at a root
   * price; without one, loads stay.
   */
  #wantedChanges(price: number | undefined, shifts: readonly Shift[]): void {
    const { columns, arcRow, arcColumn, arcWork } = this.#flowProblem.problem;
    const { size, nodes, arcs, parents } = this.#tree;
    for (let at = 0; at < size; at++) {
      const column = nodes[at]! - this.#rows;
      if (column < 0 || price === undefined) {
        this.#excess[at] = 0;
      } else {
        const { capacity, congestion } = columns[column]!;
        const rho = congestion.rhoAt(this.#base[at]! + this.#gain[at]! * price, this.#rho[column]!);
        this.#excess[at] = capacity * rho - this.#loads[column]!;
      }
    }
    for (const { arc, amount } of shifts) {
      this.#excess[this.#tree.entryOf(arcRow[arc]!)]! -= amount;
      this.#excess[this.#tree.entryOf(this.#rows + arcColumn[arc]!)]! -= arcWork[arc]! * amount;
    }
    for (let at = size - 1; at > 0; at--) {
      const work = arcWork[arcs[at]!]!;
      const isRow = nodes[at]! < this.#rows;
      const change = isRow ? this.#excess[at]! : this.#excess[at]! / work;
      this.#change[at] = change;
      this.#excess[parents[at]!]! -= isRow ? work * change : change;
    }
  }

  /** Makes the wanted changes and shifts `most` times, or as often as nothing blocks; cuts and returns what blocks. */
  #move(shifts: readonly Shift[], most: number): number[] {
    const { size, arcs } = this.#tree;
    let step = most;
    for (let at = 1; at < size; at++)
      step = Math.min(step, this.#roomFor(arcs[at]!, this.#change[at]!, most));
    const cut: number[] = [];
    for (const { arc, amount } of shifts) this.#setFlow(arc, this.#x[arc]! + step * amount);
    for (let at = 1; at < size; at++) {
      const arc = arcs[at]!;
      const state = this.#state[arc]!;
      const change = this.#change[at]!;
      const blocks = step < most && this.#roomFor(arc, change, most) <= step;
      const low = this.#low(arc, state);
      const high = this.#high(arc, state);
      if (blocks) {
        this.#setFlow(arc, change < 0 ? low : high);
        this.#state[arc] = FIXED;
        this.#forest.cut(arc);
        cut.push(arc);
      } else {
        this.#setFlow(arc, Math.min(Math.max(this.#x[arc]! + step * change, low), high));
      }
    }
    if (cut.length > 0) for (let at = 0; at < size; at++) this.#settledIn[this.#tree.nodes[at]!] = 0;
    return cut;
  }

  /** How often a change fits on an arc of the tree, at most `most` times. */
  #roomFor(arc: number, change: number, most: number): number {
    const state = this.#state[arc]!;
    const target = this.#x[arc]! + most * change;
    if (
      target >= this.#low(arc, state) - this.#tolerance &&
      target <= this.#high(arc, state) + this.#tolerance
    ) {
      return most;
    }
    return Math.min(most, this.#reach(arc, state, change));
  }

  #setFlow(arc: number, flow: number): void {
    const { arcColumn, arcWork } = this.#flowProblem.problem;
    this.#loads[arcColumn[arc]!]! += arcWork[arc]! * (flow - this.#x[arc]!);
    this.#x[arc] = flow;
  }

  #finish(rootPrice: number): void {
    const { size, nodes } = this.#tree;
    for (let at = 0; at < size; at++) {
      this.#price[nodes[at]!] = this.#base[at]! + this.#gain[at]! * rootPrice;
      this.#settledIn[nodes[at]!] = this.#pass;
    }
  }

  /**
   * Frees the cheapest arc that can take more and the dearest that can give, in the rows that gain most by a shift
   * between them. Rows that gain less wait: often the others' shifts leave them nothing to gain.
   */
  #gainfulArcs(): number[] {
    const shifts: Gain[] = [];
    let most = 0;
    for (const row of this.#flowProblem.problem.rows) {
      const shift = this.#bestShift(row);
      if (!shift) continue;
      shifts.push(shift);
      most = Math.max(most, shift.gain);
    }
    const gainful: number[] = [];
    for (const { taker, giver, gain } of shifts) {
      if (gain < GAIN_SHARE * most) continue;
      if (this.#state[taker] === FIXED) {
        this.#state[taker] = this.#sideOf(taker, true);
        gainful.push(taker);
      }
      if (this.#state[giver] === FIXED) {
        this.#state[giver] = this.#sideOf(giver, false);
        gainful.push(giver);
      }
    }
    return gainful;
  }

  #dearest({ firstArc, endArc }: Row): number {
    let dearest = -Infinity;
    for (let arc = firstArc; arc < endArc; arc++) dearest = Math.max(dearest, this.#costDown(arc));
    return dearest;
  }

  #bestShift({ firstArc, endArc }: Row): Gain | undefined {
    let cheapest = Infinity;
    let dearest = -Infinity;
    let taker = -1;
    let giver = -1;
    for (let arc = firstArc; arc < endArc; arc++) {
      const up = this.#costUp(arc);
      const down = this.#costDown(arc);
      if (up < cheapest) {
        cheapest = up;
        taker = arc;
      }
      if (down > dearest) {
        dearest = down;
        giver = arc;
      }
    }
    const gain = dearest - cheapest;
    return gain > costTolerance(dearest) ? { taker, giver, gain } : undefined;
  }

  /** Marginal cost of more flow on an arc; Infinity at its upper bound. */
  #costUp(arc: number): number {
    const { problem, upper } = this.#flowProblem;
    if (this.#x[arc]! >= upper[arc]! - this.#tolerance) return Infinity;
    const price = this.#price[this.#rows + problem.arcColumn[arc]!]!;
    return this.#slopeIn(arc, this.#sideOf(arc, true)) + problem.arcWork[arc]! * price;
  }

  /** Marginal saving of less flow on an arc; -Infinity at its lower bound. */
  #costDown(arc: number): number {
    const { problem, lower } = this.#flowProblem;
    if (this.#x[arc]! <= lower[arc]! + this.#tolerance) return -Infinity;
    const price = this.#price[this.#rows + problem.arcColumn[arc]!]!;
    return this.#slopeIn(arc, this.#sideOf(arc, false)) + problem.arcWork[arc]! * price;
  }

  /** On which side of its kink an arc would move. */
  #sideOf(arc: number, up: boolean): number {
    const kink = this.#flowProblem.kink[arc]!;
    if (up) return this.#x[arc]! < kink - this.#tolerance ? BELOW : ABOVE;
    return this.#x[arc]! > kink + this.#tolerance ? ABOVE : BELOW;
  }

  /** Seconds without load per request, less what staying saves where flow is below the one in force. */
  #slopeIn(arc: number, state: number): number {
    const { problem } = this.#flowProblem;
    const cost = problem.arcCost[arc]!;
    return state === BELOW ? cost - problem.rows[problem.arcRow[arc]!]!.moveSeconds : cost;
  }

  #low(arc: number, state: number): number {
    return state === BELOW ? this.#flowProblem.lower[arc]! : this.#flowProblem.kink[arc]!;
  }

  #high(arc: number, state: number): number {
    return state === BELOW ? this.#flowProblem.kink[arc]! : this.#flowProblem.upper[arc]!;
  }

  #congestion(column: number): Congestion {
    return this.#flowProblem.problem.columns[column]!.congestion;
  }
}

/** Root between 0 and `end` of a function that decreases from 0 towards `end`, to the last bits. */
function bisect(value: (at: number) => number, end: number): number {
  const sign = Math.sign(value(0));
  let near = 0;
  let far = end;
  for (let step = 0; step < 60; step++) {
    const middle = 0.5 * (near + far);
    if (middle === near || middle === far) break;
    if (sign * value(middle) > 0) near = middle;
    else far = middle;
  }
  return near;
}
