import type { ArcProblem } from '../problem/flow-problem.js';
import type { ArcFlows } from './arc-flows.js';
import { type NodePrices, turnTolerance } from './node-prices.js';
import { rootBetween } from './root-between.js';
import type { TreeAtHand } from './tree-at-hand.js';

/** Cycles whose gains cancel out to this share change no load. */
const NEUTRAL_GAIN = 1e-9;

/**
 * Shifts of flow around a cycle that an arc closes with the tree at hand, where all of the tree gives way. An arc that ends
 * between the ends of its range stays aside, as the forest cannot hold it.
 */
export class CycleShifts {
  /** Arcs with room on both sides whose ends the forest joins already, by the side of the kink they are on. */
  readonly aside = new Map<number, number>();
  readonly #flowProblem: ArcProblem;
  readonly #arcs: ArcFlows;
  readonly #prices: NodePrices;
  readonly #hand: TreeAtHand;

  constructor(flowProblem: ArcProblem, arcs: ArcFlows, prices: NodePrices, hand: TreeAtHand) {
    this.#flowProblem = flowProblem;
    this.#arcs = arcs;
    this.#prices = prices;
    this.#hand = hand;
  }

  /** Shifts what is best to shift. Returns what was cut, or nothing when no more is to be gained. */
  shift(arc: number, side: number): number[] | undefined {
    const partner = this.#partnerOf(arc);
    if (partner >= 0) return this.#shiftWith(partner, arc, side);
    return this.#approachWith(arc, side) ?? this.#shiftAlone(arc, side);
  }

  /** A Newton step of the tree to where something blocks, together with a shift that closes a cycle. */
  #approachWith(arc: number, side: number): number[] | undefined {
    const perAmount = this.#loadPerAmount(arc);
    const unshifted = this.#hand.prices.newtonPrice;
    const { slope } = this.#hand.prices;
    const least = this.#arcs.low(arc, side) - this.#arcs.flows[arc]!;
    const most = this.#arcs.high(arc, side) - this.#arcs.flows[arc]!;
    const wanted = (this.#advantage(arc, side, unshifted) * slope) / (perAmount * perAmount);
    const amount = Math.min(Math.max(wanted, least), most);
    const rootPrice = unshifted - (amount * perAmount) / slope;
    const shift = { arc, amount };
    this.#hand.wantNewtonStepTo(rootPrice);
    const step = this.#hand.plan([shift], 1);
    const gain = amount * this.#advantage(arc, side, rootPrice);
    if (!(step < 1 && this.#hand.prices.fallsAfter(step, rootPrice, gain))) return undefined;
    return this.#hand.moveBy(step, [shift], 1);
  }

  /**
   * Takes an arc's marginal cost to its row's, or to the end of its range.
   * Returns what was cut, or nothing when no more is to be gained.
   */
  #shiftAlone(arc: number, side: number): number[] | undefined {
    const perAmount = this.#loadPerAmount(arc);
    const advantage = (amount: number): number =>
      this.#advantage(arc, side, this.#hand.prices.rootPrice(amount * perAmount));
    const first = advantage(0);
    const tolerance = turnTolerance(this.#prices.price[this.#prices.rowNode(arc)]!) + this.#hand.prices.noise;
    if (Math.abs(first) <= tolerance) return undefined;
    const end = first > 0 ? this.#arcs.high(arc, side) : this.#arcs.low(arc, side);
    const most = end - this.#arcs.flows[arc]!;
    const last = advantage(most);
    const amount = first * last >= 0 ? most : rootBetween(advantage, first, most, last, tolerance);
    const shift = { arc, amount };
    const rootPrice = this.#hand.prices.rootPrice(amount * perAmount);
    this.#hand.wantLoadsAt(rootPrice);
    const cut = this.#hand.move([shift], 1);
    if (cut.length > 0) return cut;
    this.#hand.note(rootPrice);
    if (!this.#arcs.isAtEnd(arc, side)) this.aside.set(arc, side);
    return undefined;
  }

  /**
   * Turns two cycles against each other so that no load and no price changes: what is gained per request is then
   * constant, and something blocks in the end. Returns what was cut, or nothing when no more is to be gained.
   */
  #shiftWith(partner: number, arc: number, side: number): number[] | undefined {
    const advantage = this.#advantage(arc, side, this.#prices.price[this.#hand.tree.nodes[0]!]!);
    if (Math.abs(advantage) <= this.#prices.rowTolerance(this.#prices.rowNode(arc))) return undefined;
    const partnerSide = this.aside.get(partner)!;
    const amount = Math.sign(advantage);
    const partnerAmount = (-amount * this.#loadPerAmount(arc)) / this.#loadPerAmount(partner);
    const shifts = [
      { arc, amount },
      { arc: partner, amount: partnerAmount },
    ];
    this.#hand.wantSameLoads();
    const most = Math.min(
      this.#arcs.reach(arc, side, amount),
      this.#arcs.reach(partner, partnerSide, partnerAmount),
    );
    const cut = this.#hand.move(shifts, most);
    if (this.#arcs.isAtEnd(partner, partnerSide)) this.aside.delete(partner);
    else if (cut.length === 0 && this.#arcs.isAtEnd(arc, side)) return undefined;
    return cut;
  }

  /** By how much one more request on an arc would be cheaper than its row's marginal cost, at a root price. */
  #advantage(arc: number, side: number, rootPrice: number): number {
    const row = this.#hand.tree.entryOf(this.#prices.rowNode(arc));
    const column = this.#hand.tree.entryOf(this.#prices.columnNode(arc));
    const worth = this.#hand.prices.at(column, rootPrice);
    const cost = this.#arcs.slope(arc, side) + this.#flowProblem.problem.arcWork[arc]! * worth;
    return this.#hand.prices.at(row, rootPrice) - cost;
  }

  /** What a unit of flow, moved from the tree to an arc that closes a cycle, takes off the balance at the root. */
  #loadPerAmount(arc: number): number {
    const row = this.#hand.tree.entryOf(this.#prices.rowNode(arc));
    const column = this.#hand.tree.entryOf(this.#prices.columnNode(arc));
    return (
      this.#hand.prices.gain(row) - this.#flowProblem.problem.arcWork[arc]! * this.#hand.prices.gain(column)
    );
  }

  /** An arc aside whose cycle, like this one's, lies in the tree at hand, and changes the tree's load when it turns. */
  #partnerOf(arc: number): number {
    for (const other of this.aside.keys()) {
      if (other === arc || !this.#hand.holds(other)) continue;
      const gain = this.#hand.prices.gain(this.#hand.tree.entryOf(this.#prices.rowNode(other)));
      if (Math.abs(this.#loadPerAmount(other)) > NEUTRAL_GAIN * gain) return other;
    }
    return -1;
  }
}
