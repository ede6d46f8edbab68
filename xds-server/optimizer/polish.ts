import { ArcFlows, BELOW, FIXED } from './arc-flows.js';
import type { ArcProblem, ArcRow } from './flow-problem.js';
import { Forest, Tree } from './forest.js';
import { TreePrices } from './tree-prices.js';

/** Marginal costs of a row's engines may differ by this many seconds at the end, and by this share of them. */
const COST_TOLERANCE = 1e-7;
const COST_PRECISION = 1e-9;
/** Rows take part in a pass when they gain at least this share of what the best one does. */
const GAIN_SHARE = 0.5;
/** Rows that gain at least this share of what the best one does are looked at again before all others are. */
const CANDIDATE_SHARE = 0.1;
/** What a row gains by a shift must be this many times as much as rounding of both prices may feign. */
const NOISE_MARGIN = 4;
/** Passes after which loads are computed anew. */
const RECOUNT_PASSES = 8;
/** Cycles whose gains cancel out to this share change no load. */
const NEUTRAL_GAIN = 1e-9;
const MOST_PASSES = 500;
const MOST_CYCLE_STEPS = 60;
/** Trees of fewer nodes go straight to their optimum. */
const LEAST_APPROACH = 8;
/** Prices of a tree are near enough for now when they are off by this share of what is gained most elsewhere. */
const NEAR_SHARE = 1e-2;
/** What is taken to be gained before anybody has looked, in seconds: trees that are at their optimum may stay there. */
const FIRST_GAIN = 1e-3;
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

/** A shift of flow on an arc outside the tree, which the tree has to make up for. */
interface Shift {
  readonly arc: number;
  readonly amount: number;
}

/** Changes of flow around a cycle of a tree and one arc outside it. */
interface Cycle {
  readonly arcs: Int32Array;
  readonly changes: Float64Array;
  /** Change of the load of the first arc's column. */
  readonly work: number;
  /** Change of the objective. */
  readonly rate: number;
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

/** Differences of cost around this value that are no reason to shift flow. */
export function costTolerance(cost: number): number {
  return COST_TOLERANCE + COST_PRECISION * Math.abs(cost);
}

/** The same for an arc that was let in because it gains more than that: close to it, rounding must not turn it away. */
function turnTolerance(cost: number): number {
  return 0.1 * costTolerance(cost);
}

class Polisher {
  readonly #flowProblem: ArcProblem;
  readonly #rows: number;
  readonly #arcs: ArcFlows;
  readonly #forest: Forest;
  readonly #tree: Tree;
  readonly #treePrices: TreePrices;
  /** By node, rows first: marginal cost of a row, worth of a column's work, as noted last. */
  readonly #price: Float64Array;
  /** By node: how far rounding may put its price off, in seconds per request. */
  readonly #noise: Float64Array;
  /** By node: the pass in which its tree reached its optimum. */
  readonly #settledIn: Int32Array;
  /** Arcs with room on both sides whose ends the forest joins already, by the side of the kink they are on. */
  readonly #aside = new Map<number, number>();
  /** By entry of the tree: load or flow that is still missing; wanted change of the arc to the parent. */
  readonly #missing: Float64Array;
  readonly #change: Float64Array;
  /** By entry of the tree: the range of the arc to the parent, and how often the wanted change fits in it. */
  readonly #low: Float64Array;
  readonly #high: Float64Array;
  readonly #room: Float64Array;
  /** By arc, while the forest is replanted. */
  readonly #isEntering: Uint8Array;
  /** Room for the cycle at hand. */
  readonly #cycle: { readonly arcs: Int32Array; readonly changes: Float64Array };
  /** By row, as looked at last: what it gains per request by its best shift, from which arc to which. */
  readonly #gain: Float64Array;
  readonly #giver: Int32Array;
  readonly #taker: Int32Array;
  readonly #allRows: Int32Array;
  /** Room for `#candidates`. */
  readonly #listed: Int32Array;
  #pass = 0;
  /** Rows that gained much when all were looked at last, and what the best one gained then. */
  #candidates: Int32Array = new Int32Array();
  #mostGain = FIRST_GAIN;
  /** Whether a tree was left near its optimum instead of there. */
  #isNear = false;

  constructor(flowProblem: ArcProblem, start: Float64Array, free: Uint8Array) {
    const { problem } = flowProblem;
    const nodes = problem.rows.length + problem.columns.length;
    this.#flowProblem = flowProblem;
    this.#rows = problem.rows.length;
    this.#arcs = new ArcFlows(flowProblem, start, free);
    this.#forest = new Forest(problem.rows.length, problem.columns.length, problem.arcRow, problem.arcColumn);
    this.#tree = new Tree(nodes);
    this.#treePrices = new TreePrices(problem, this.#arcs, this.#tree);
    this.#price = new Float64Array(nodes);
    this.#noise = new Float64Array(nodes);
    this.#settledIn = new Int32Array(nodes);
    this.#isEntering = new Uint8Array(start.length);
    this.#cycle = { arcs: new Int32Array(nodes + 1), changes: new Float64Array(nodes + 1) };
    this.#gain = new Float64Array(this.#rows);
    this.#giver = new Int32Array(this.#rows);
    this.#taker = new Int32Array(this.#rows);
    this.#allRows = new Int32Array(this.#rows);
    for (let row = 0; row < this.#rows; row++) this.#allRows[row] = row;
    this.#listed = new Int32Array(this.#rows);
    this.#missing = new Float64Array(nodes);
    this.#change = new Float64Array(nodes);
    this.#low = new Float64Array(nodes);
    this.#high = new Float64Array(nodes);
    this.#room = new Float64Array(nodes);
  }

  run(enough: number): PolishedFlows {
    let entering: readonly number[] = [...this.#arcs.freeArcs()];
    let converged = false;
    while (!converged && !(this.#pass > 0 && this.#mostGain <= enough) && this.#pass < MOST_PASSES) {
      this.#pass++;
      this.#improve(entering);
      entering = this.#gainfulArcs();
      if (entering.length === 0 && this.#isNear) entering = this.#afterArrival();
      converged = entering.length === 0;
    }
    return {
      flows: this.#arcs.snapped(),
      columnPrices: this.#price.slice(this.#rows),
      rowCosts: this.#rowCosts(),
      free: this.#free(),
      converged,
    };
  }

  /** Takes trees that are near their optimum there; returns the arcs that turn out to gain then. */
  #afterArrival(): number[] {
    this.#pass++;
    this.#isNear = false;
    this.#mostGain = 0;
    this.#settleAll();
    return this.#gainfulArcs();
  }

  #settleAll(): void {
    for (let node = 0; node < this.#price.length; node++) this.#settle(node);
  }

  /** Replants the forest, lets these arcs join it, and takes all trees concerned to their optimum. */
  #improve(entering: readonly number[]): void {
    const { sides } = this.#arcs;
    if (this.#pass % RECOUNT_PASSES === 1) this.#arcs.recount();
    for (const arc of entering) this.#isEntering[arc] = 1;
    this.#forest.clear();
    for (const arc of this.#arcs.freeArcs()) if (!this.#isEntering[arc]) this.#forest.join(arc);
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
    if (this.#pass > 1) for (const arc of entering) this.#settle(this.#rowNode(arc));
    for (const node of changed) this.#settle(node);
    for (const { arc, side } of left) this.#turnCycle(arc, side);
  }

  /**
   * Shifts flow around the cycle that an arc closes with a tree, and opens it where something blocks. No load changes but
   * that of one column, so the rest of the tree can wait; nodes from which it is to be settled go to `changed`.
   * False when the best shift comes before anything blocks: then all of the tree has to give way.
   */
  #pivot(arc: number, side: number, changed: number[]): boolean {
    const row = this.#rowNode(arc);
    const size = this.#forest.path(row, this.#columnNode(arc));
    if (size < 0) {
      if (!this.#gains(arc, side)) return true;
      this.#aside.delete(arc);
      this.#join(arc, side);
      changed.push(row);
      return true;
    }
    const { sides } = this.#arcs;
    sides[arc] = side;
    const cycle = this.#cycleOf(arc, size);
    // A tolerance is per request on this arc, the rate per request on the cycle's first one.
    const requests = Math.abs(cycle.changes[cycle.arcs.indexOf(arc)]!);
    const tolerance = requests * this.#turnTolerance(row);
    const step = this.#reachOf(cycle);
    const isWorthIt = cycle.rate < -tolerance;
    const isBlocked = isWorthIt && this.#rateAfter(cycle, step) <= -tolerance;
    if (isBlocked) {
      this.#aside.delete(arc);
      this.#turn(cycle, step, arc, changed);
    } else {
      sides[arc] = FIXED;
    }
    return isBlocked || !isWorthIt;
  }

  /**
   * The cycle that an arc and the path between its ends found last make, from the row on, in the direction in which the objective falls:
   * one request per second on or off its first arc, and on the others, from its row on, what makes up for that at every
   * row and column but the first arc's column, whose price changes least with its load.
   */
  #cycleOf(arc: number, pathSize: number): Cycle {
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
      rate += change * this.#cost(current, this.#arcs.sides[current]!);
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
   * How many arcs after the first one, of an arc and the path between its ends found last, the one follows before which the column lies
   * whose price changes least with its load.
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
  #reachOf({ arcs, changes }: Cycle): number {
    let reach = Infinity;
    for (let at = 0; at < arcs.length; at++) {
      const arc = arcs[at]!;
      reach = Math.min(reach, this.#arcs.reach(arc, this.#arcs.sides[arc]!, changes[at]!));
    }
    return reach;
  }

  /** The rate of a cycle once it has been turned this far, which changes the load of one column. */
  #rateAfter({ arcs, work, rate }: Cycle, step: number): number {
    const column = this.#flowProblem.problem.arcColumn[arcs[0]!]!;
    const { capacity, congestion } = this.#flowProblem.problem.columns[column]!;
    const load = this.#arcs.loads[column]!;
    return (
      rate + work * (congestion.worth((load + step * work) / capacity) - congestion.worth(load / capacity))
    );
  }

  /** Turns a cycle and takes one arc that blocks out of the forest; unless that is the one outside, this one joins. */
  #turn({ arcs, changes }: Cycle, step: number, outside: number, changed: number[]): void {
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
    const side = sides[outside]!;
    sides[blocking] = FIXED;
    if (blocking !== outside) {
      this.#forest.cut(blocking);
      this.#join(outside, side);
    }
    const column = arcColumn[arcs[0]!]!;
    const { capacity, congestion } = columns[column]!;
    this.#price[this.#columnNode(arcs[0]!)] = congestion.worth(this.#arcs.loads[column]! / capacity);
    this.#unsettle(arcs[0]!, changed);
    this.#unsettle(outside, changed);
    this.#unsettle(blocking, changed);
  }

  #unsettle(arc: number, changed: number[]): void {
    this.#settledIn[this.#rowNode(arc)] = 0;
    this.#settledIn[this.#columnNode(arc)] = 0;
    changed.push(this.#rowNode(arc), this.#columnNode(arc));
  }

  /** Takes the tree around a node, and the parts it may fall into, to their optimum. */
  #settle(start: number): void {
    if (this.#settledIn[start] === this.#pass) return;
    const todo = [start];
    for (let node = todo.pop(); node !== undefined; node = todo.pop()) {
      if (this.#settledIn[node] === this.#pass) continue;
      this.#take(node);
      if (this.#tree.size === 1) {
        this.#note(this.#rootPrice());
        continue;
      }
      const cut = this.#approach() ?? this.#arrive();
      for (const arc of cut) todo.push(this.#rowNode(arc), this.#columnNode(arc));
    }
  }

  /**
   * Moves the tree at hand by a Newton step, to where something blocks or all the way, and returns what was cut. Where
   * something blocks, it is no matter where exactly the tree would have arrived; and all the way is near enough while
   * much more is to be gained elsewhere. Nothing, and no move, when the step leads too far or is not exact enough.
   */
  #approach(): number[] | undefined {
    if (this.#tree.size < LEAST_APPROACH) return undefined;
    const rootPrice = this.#treePrices.newtonPrice;
    this.#wantNewtonStepTo(rootPrice);
    const step = this.#plan([], 1);
    if (step < 1) {
      return this.#treePrices.fallsAfter(step, rootPrice) ? this.#moveBy(step, [], 1) : undefined;
    }
    if (!(this.#treePrices.missAfter(rootPrice) <= NEAR_SHARE * this.#mostGain)) return undefined;
    this.#isNear = true;
    this.#moveBy(step, [], 1);
    this.#note(rootPrice);
    return NOTHING_CUT;
  }

  /** Moves the tree at hand to its optimum, or to where something blocks; returns what was cut. */
  #arrive(): number[] {
    const rootPrice = this.#rootPrice();
    this.#wantLoadsAt(rootPrice);
    const cut = this.#move([], 1);
    if (cut.length === 0) this.#note(rootPrice);
    return cut;
  }

  /**
   * Shifts flow around the cycle that an arc closes with a tree, until its marginal cost equals its row's or something
   * blocks. Once that has opened the cycle, the arc joins the forest; until then it stays aside.
   */
  #turnCycle(arc: number, side: number): void {
    const changed: number[] = [];
    if (!this.#gains(arc, side)) return;
    this.#aside.delete(arc);
    for (;;) {
      this.#take(this.#rowNode(arc));
      if (!this.#isClosedBy(arc)) {
        this.#join(arc, side);
        changed.push(this.#rowNode(arc));
        break;
      }
      const partner = this.#partnerOf(arc);
      const cut =
        partner < 0
          ? (this.#approachWith(arc, side) ?? this.#shiftAlone(arc, side))
          : this.#shiftWith(partner, arc, side);
      if (!cut) break;
      for (const each of cut) changed.push(this.#rowNode(each), this.#columnNode(each));
      if (this.#arcs.isAtEnd(arc, side)) break;
    }
    if (changed.length === 0) return;
    for (const [other, otherSide] of this.#aside) {
      this.#forest.collect(this.#rowNode(other), this.#tree);
      if (this.#isClosedBy(other)) continue;
      this.#aside.delete(other);
      this.#join(other, otherSide);
      changed.push(this.#rowNode(other));
    }
    for (const node of changed) this.#settle(node);
  }

  /** The same as `#approach`, together with a shift that closes a cycle. */
  #approachWith(arc: number, side: number): number[] | undefined {
    const perAmount = this.#loadPerAmount(arc);
    const unshifted = this.#treePrices.newtonPrice;
    const { slope } = this.#treePrices;
    const least = this.#arcs.low(arc, side) - this.#arcs.flows[arc]!;
    const most = this.#arcs.high(arc, side) - this.#arcs.flows[arc]!;
    const wanted = (this.#advantage(arc, side, unshifted) * slope) / (perAmount * perAmount);
    const amount = Math.min(Math.max(wanted, least), most);
    const rootPrice = unshifted - (amount * perAmount) / slope;
    const shift = { arc, amount };
    this.#wantNewtonStepTo(rootPrice);
    const step = this.#plan([shift], 1);
    const gain = amount * this.#advantage(arc, side, rootPrice);
    if (!(step < 1 && this.#treePrices.fallsAfter(step, rootPrice, gain))) return undefined;
    return this.#moveBy(step, [shift], 1);
  }

  /**
   * Takes an arc's marginal cost to its row's, or to the end of its range.
   * Returns what was cut, or nothing when no more is to be gained.
   */
  #shiftAlone(arc: number, side: number): number[] | undefined {
    const perAmount = this.#loadPerAmount(arc);
    const advantage = (amount: number): number =>
      this.#advantage(arc, side, this.#rootPrice(amount * perAmount));
    const first = advantage(0);
    const tolerance = turnTolerance(this.#price[this.#rowNode(arc)]!) + this.#treePrices.noise;
    if (Math.abs(first) <= tolerance) return undefined;
    const end = first > 0 ? this.#arcs.high(arc, side) : this.#arcs.low(arc, side);
    const most = end - this.#arcs.flows[arc]!;
    const last = advantage(most);
    const amount = first * last >= 0 ? most : rootBetween(advantage, first, most, last, tolerance);
    const shift = { arc, amount };
    const rootPrice = this.#rootPrice(amount * perAmount);
    this.#wantLoadsAt(rootPrice);
    const cut = this.#move([shift], 1);
    if (cut.length > 0) return cut;
    this.#note(rootPrice);
    if (!this.#arcs.isAtEnd(arc, side)) this.#aside.set(arc, side);
    return undefined;
  }

  /**
   * Turns two cycles against each other so that no load and no price changes: what is gained per request is then
   * constant, and something blocks in the end. Returns what was cut, or nothing when no more is to be gained.
   */
  #shiftWith(partner: number, arc: number, side: number): number[] | undefined {
    const advantage = this.#advantage(arc, side, this.#price[this.#tree.nodes[0]!]!);
    if (Math.abs(advantage) <= this.#turnTolerance(this.#rowNode(arc))) return undefined;
    const partnerSide = this.#aside.get(partner)!;
    const amount = Math.sign(advantage);
    const partnerAmount = (-amount * this.#loadPerAmount(arc)) / this.#loadPerAmount(partner);
    const shifts = [
      { arc, amount },
      { arc: partner, amount: partnerAmount },
    ];
    this.#wantSameLoads();
    const most = Math.min(
      this.#arcs.reach(arc, side, amount),
      this.#arcs.reach(partner, partnerSide, partnerAmount),
    );
    const cut = this.#move(shifts, most);
    if (this.#arcs.isAtEnd(partner, partnerSide)) this.#aside.delete(partner);
    else if (cut.length === 0 && this.#arcs.isAtEnd(arc, side)) return undefined;
    return cut;
  }

  /** Whether an arc's marginal cost still differs from its row's, by the prices noted last. */
  #gains(arc: number, side: number): boolean {
    const cost = this.#cost(arc, side);
    const row = this.#rowNode(arc);
    return Math.abs(cost - this.#price[row]!) > turnTolerance(cost) + this.#noise[row]!;
  }

  /** Differences from a row's cost that are no reason to go on shifting. */
  #turnTolerance(row: number): number {
    return turnTolerance(this.#price[row]!) + this.#noise[row]!;
  }

  /** By how much one more request on an arc would be cheaper than its row's marginal cost, at a root price. */
  #advantage(arc: number, side: number, rootPrice: number): number {
    const row = this.#tree.entryOf(this.#rowNode(arc));
    const column = this.#tree.entryOf(this.#columnNode(arc));
    const worth = this.#treePrices.at(column, rootPrice);
    const cost = this.#arcs.slope(arc, side) + this.#flowProblem.problem.arcWork[arc]! * worth;
    return this.#treePrices.at(row, rootPrice) - cost;
  }

  /** What a unit of flow, moved from the tree to an arc that closes a cycle, takes off the balance at the root. */
  #loadPerAmount(arc: number): number {
    const row = this.#tree.entryOf(this.#rowNode(arc));
    const column = this.#tree.entryOf(this.#columnNode(arc));
    return (
      this.#treePrices.gain(row) - this.#flowProblem.problem.arcWork[arc]! * this.#treePrices.gain(column)
    );
  }

  /** An arc aside whose cycle, like this one's, lies in the tree at hand, and changes the tree's load when it turns. */
  #partnerOf(arc: number): number {
    for (const other of this.#aside.keys()) {
      if (other === arc || !this.#isClosedBy(other)) continue;
      const gain = this.#treePrices.gain(this.#tree.entryOf(this.#rowNode(other)));
      if (Math.abs(this.#loadPerAmount(other)) > NEUTRAL_GAIN * gain) return other;
    }
    return -1;
  }

  /** Whether both ends of an arc lie in the tree at hand. */
  #isClosedBy(arc: number): boolean {
    return this.#tree.entryOf(this.#rowNode(arc)) >= 0 && this.#tree.entryOf(this.#columnNode(arc)) >= 0;
  }

  /** Makes the tree around a node the tree at hand. */
  #take(node: number): void {
    this.#forest.collect(node, this.#tree);
    this.#treePrices.prepare();
  }

  #rootPrice(offset = 0): number {
    return this.#treePrices.rootPrice(offset);
  }

  /** Adds an arc between two trees. */
  #join(arc: number, side: number): void {
    this.#arcs.sides[arc] = side;
    this.#forest.insert(arc);
    this.#settledIn[this.#rowNode(arc)] = 0;
  }

  /** Loads that a root price asks for are what the tree's columns miss. */
  #wantLoadsAt(rootPrice: number): void {
    const { size, nodes } = this.#tree;
    const rows = this.#rows;
    for (let at = 0; at < size; at++) {
      this.#missing[at] = nodes[at]! < rows ? 0 : this.#treePrices.excess(at, rootPrice);
    }
  }

  /** The loads after a whole Newton step are. */
  #wantNewtonStepTo(rootPrice: number): void {
    const { size, nodes } = this.#tree;
    const rows = this.#rows;
    for (let at = 0; at < size; at++) {
      this.#missing[at] = nodes[at]! < rows ? 0 : this.#treePrices.newtonChange(at, rootPrice);
    }
  }

  /** Nothing is but what shifts leave. */
  #wantSameLoads(): void {
    this.#missing.fill(0, 0, this.#tree.size);
  }

  /** Makes the wanted changes and shifts `most` times, or as often as nothing blocks; cuts and returns what blocks. */
  #move(shifts: readonly Shift[], most: number): number[] {
    return this.#moveBy(this.#plan(shifts, most), shifts, most);
  }

  /**
   * Finds the changes of flow on the tree's arcs, leaves first, that give each node what it misses once the shifts are
   * made, and how often, at most `most` times, they can be made until something blocks.
   */
  #plan(shifts: readonly Shift[], most: number): number {
    const { problem, lower, kink, upper } = this.#flowProblem;
    const { arcWork } = problem;
    const { size, nodes, arcs, parents } = this.#tree;
    const { flows, sides, tolerance } = this.#arcs;
    const rows = this.#rows;
    const missing = this.#missing;
    const changes = this.#change;
    const lows = this.#low;
    const highs = this.#high;
    const rooms = this.#room;
    for (const { arc, amount } of shifts) {
      missing[this.#tree.entryOf(this.#rowNode(arc))]! -= amount;
      missing[this.#tree.entryOf(this.#columnNode(arc))]! -= arcWork[arc]! * amount;
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

  /** Goes as far as `#plan` said. */
  #moveBy(step: number, shifts: readonly Shift[], most: number): number[] {
    const { size, nodes, arcs } = this.#tree;
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
  #note(rootPrice: number): void {
    const { size, nodes } = this.#tree;
    for (let at = 0; at < size; at++) {
      this.#price[nodes[at]!] = this.#treePrices.at(at, rootPrice);
      this.#noise[nodes[at]!] = this.#treePrices.noise;
      this.#settledIn[nodes[at]!] = this.#pass;
    }
  }

  /**
   * Frees the cheapest arc that can take more and the dearest that can give, in the rows that gain most by a shift
   * between them. Rows that gain less wait: often the others' shifts leave them nothing to gain.
   */
  #gainfulArcs(): number[] {
    const { sides } = this.#arcs;
    const gainful: number[] = [];
    const { rows, most } = this.#rowsThatGain();
    for (const row of rows) {
      if (this.#gain[row] === 0 || this.#gain[row]! < GAIN_SHARE * most) continue;
      const taker = this.#taker[row]!;
      const giver = this.#giver[row]!;
      if (sides[taker] === FIXED) {
        sides[taker] = this.#arcs.sideUp(taker);
        gainful.push(taker);
      }
      if (sides[giver] === FIXED) {
        sides[giver] = this.#arcs.sideDown(giver);
        gainful.push(giver);
      }
    }
    return gainful;
  }

  /**
   * Rows among which those are that gain most, and what the best one gains. While one of the rows that gained much when
   * all were looked at last still gains half of the best one then, the others wait.
   */
  #rowsThatGain(): { readonly rows: Int32Array; readonly most: number } {
    const most = this.#lookAt(this.#candidates);
    if (most >= GAIN_SHARE * this.#mostGain && most > 0) return { rows: this.#candidates, most };
    this.#mostGain = this.#lookAt(this.#allRows);
    const least = CANDIDATE_SHARE * this.#mostGain;
    let size = 0;
    for (let row = 0; row < this.#rows; row++) {
      if (this.#gain[row]! > 0 && this.#gain[row]! >= least) this.#listed[size++] = row;
    }
    this.#candidates = this.#listed.subarray(0, size);
    return { rows: this.#candidates, most: this.#mostGain };
  }

  /**
   * Finds the best shift of each of these rows, and returns what the best one gains. A solve spends much of its time
   * here, so the sides of arcs and their costs are written out.
   */
  #lookAt(rows: Int32Array): number {
    const { lower, kink, upper, problem } = this.#flowProblem;
    const { arcCost, arcWork, arcColumn } = problem;
    const { flows, tolerance } = this.#arcs;
    const price = this.#price;
    const columns = this.#rows;
    let most = 0;
    for (let at = 0; at < rows.length; at++) {
      const row = rows[at]!;
      const { firstArc, endArc, moveSeconds } = problem.rows[row]!;
      let cheapest = Infinity;
      let dearest = -Infinity;
      let taker = -1;
      let giver = -1;
      for (let arc = firstArc; arc < endArc; arc++) {
        const cost = arcCost[arc]! + arcWork[arc]! * price[columns + arcColumn[arc]!]!;
        const more = flows[arc]! + tolerance;
        const less = flows[arc]! - tolerance;
        // Most arcs carry nothing, and are too dear to change that.
        if (less <= lower[arc]! && cost - moveSeconds >= cheapest) continue;
        if (more < upper[arc]!) {
          const up = more < kink[arc]! ? cost - moveSeconds : cost;
          if (up < cheapest) {
            cheapest = up;
            taker = arc;
          }
        }
        if (less > lower[arc]!) {
          const down = less > kink[arc]! ? cost : cost - moveSeconds;
          if (down > dearest) {
            dearest = down;
            giver = arc;
          }
        }
      }
      let gain = dearest - cheapest;
      const least = costTolerance(dearest);
      if (!(gain > least)) {
        gain = 0;
      } else {
        const noise = this.#noise[this.#columnNode(taker)]! + this.#noise[this.#columnNode(giver)]!;
        if (!(gain > least + NOISE_MARGIN * noise)) gain = 0;
      }
      this.#gain[row] = gain;
      this.#taker[row] = taker;
      this.#giver[row] = giver;
      if (gain > most) most = gain;
    }
    return most;
  }

  #rowCosts(): Float64Array {
    const { rows } = this.#flowProblem.problem;
    const costs = new Float64Array(rows.length);
    for (let row = 0; row < rows.length; row++) costs[row] = this.#dearest(rows[row]!);
    return costs;
  }

  #free(): Uint8Array {
    const { sides } = this.#arcs;
    const free = new Uint8Array(sides.length);
    for (let arc = 0; arc < sides.length; arc++) if (sides[arc] !== FIXED) free[arc] = 1;
    for (const arc of this.#aside.keys()) free[arc] = 1;
    return free;
  }

  #dearest({ firstArc, endArc }: ArcRow): number {
    let dearest = -Infinity;
    for (let arc = firstArc; arc < endArc; arc++) dearest = Math.max(dearest, this.#costDown(arc));
    return dearest;
  }

  /** Marginal saving of less flow on an arc; -Infinity at its lower bound. */
  #costDown(arc: number): number {
    const side = this.#arcs.sideDown(arc);
    return side === FIXED ? -Infinity : this.#cost(arc, side);
  }

  /** Marginal cost of an arc on one side of its kink, by the prices noted last. */
  #cost(arc: number, side: number): number {
    return (
      this.#arcs.slope(arc, side) +
      this.#flowProblem.problem.arcWork[arc]! * this.#price[this.#columnNode(arc)]!
    );
  }

  #rowNode(arc: number): number {
    return this.#flowProblem.problem.arcRow[arc]!;
  }

  #columnNode(arc: number): number {
    return this.#rows + this.#flowProblem.problem.arcColumn[arc]!;
  }
}

/**
 * Root between 0 and `end` of a monotone function with values of opposite sign there, to within a tolerance of its value.
 * False position; an end that stays twice counts half, which keeps it fast.
 */
function rootBetween(
  value: (at: number) => number,
  first: number,
  end: number,
  last: number,
  tolerance: number,
): number {
  let near = 0;
  let far = end;
  let atNear = first;
  let atFar = last;
  for (let step = 0; step < MOST_CYCLE_STEPS; step++) {
    const middle = near + ((far - near) * atNear) / (atNear - atFar);
    const found = value(middle);
    if (Math.abs(found) <= tolerance || middle === near || middle === far) return middle;
    if (found * atFar < 0) {
      near = far;
      atNear = atFar;
    } else {
      atNear *= 0.5;
    }
    far = middle;
    atFar = found;
  }
  return far;
}
