import type { Optimum } from '../optimum.js';
import type { Congestion } from '../problem/congestion.js';
import type { Problem } from '../problem/problem.js';
import { missedArcs } from '../program/working-set.js';

/** Traffic without a plan for its loss is placed in this many equal parts, one after the other. */
const PARTS = 32;
/** Columns considered for one row: those that are cheapest now. */
const MOST_CANDIDATES = 8;
const NOT_PLANNED: readonly ArcShare[] = [];
/** Slots that there is room for at first. */
const FIRST_SLOTS = 256;
/**
 * How far above its hard limit, as a share of it, an engine may be driven by what comes from a lost one before the next
 * plan moves other traffic out of the way. That takes two seconds at most, in which requests gather one second of
 * waiting.
 */
export const OVERLOAD_SLACK = 0.5;

/** Where one engine's traffic of one row goes when the engine is gone. */
export interface ColumnBackup {
  readonly column: number;
  /** Shares of a row's backups add up to 1. */
  readonly share: number;
}

/** The same in terms of the row's arcs. */
export interface ArcShare {
  readonly arc: number;
  readonly share: number;
}

/** A row's traffic that has lost its engine. */
interface Placement {
  readonly arc: number;
  /** Requests per second. */
  readonly flow: number;
  /** Where the arcs are listed that it may go to: `first <= slot < end`. */
  readonly first: number;
  readonly end: number;
  /** Share that is still to be placed in parts. */
  open: number;
}

/**
 * Where the traffic of a lost engine goes until there is a new plan. That plan's answer, where it is known, so that
 * nothing moves twice. But the plan will move other traffic too, and until then that is in the way: what would drive an
 * engine too far above its limit, and all that has no answer, is placed part by part. Each part goes where it costs least
 * in total while everything else stays, congestion included. Above the hard limit the price goes on rising, so that an
 * overload that cannot be avoided is spread.
 */
export class BackupPlanner {
  readonly #optimum: Optimum;
  /** By row: its cheapest arcs, best first; one more than are used, since the owner's own may be among them. */
  readonly #candidates: readonly (readonly number[])[];
  /** By column: arcs with weight. */
  readonly #arcsOfColumn: readonly (readonly number[])[];
  /** Loads and capacities as they are, changed only while one engine is away. */
  readonly #loads: Float64Array;
  readonly #capacities: Float64Array;
  readonly #congestions: readonly Congestion[];
  /** By slot: an arc that traffic may go to, the share that does, and what the next part costs there at least. */
  #arcs = new Int32Array(FIRST_SLOTS);
  #taken = new Float64Array(FIRST_SLOTS);
  #costs = new Float64Array(FIRST_SLOTS);
  /** By slot: the load with which that cost was found. */
  #costLoads = new Float64Array(FIRST_SLOTS);
  /** By slot, of its arc: the column, seconds without load, and replica-seconds. Read in place, they are far apart. */
  #columns = new Int32Array(FIRST_SLOTS);
  #idleCosts = new Float64Array(FIRST_SLOTS);
  #works = new Float64Array(FIRST_SLOTS);
  /** By place, of each placement's slots: the slot, the one that is known to cost least first. */
  #order = new Int32Array(FIRST_SLOTS);
  #slots = 0;

  constructor(optimum: Optimum, weights: Float64Array) {
    const { problem } = optimum.flowProblem;
    this.#optimum = optimum;
    this.#loads = Float64Array.from(optimum.loads);
    this.#capacities = new Float64Array(problem.columns.length);
    const prices = new Float64Array(problem.columns.length);
    const congestions: Congestion[] = [];
    for (let column = 0; column < prices.length; column++) {
      const { congestion, capacity } = problem.columns[column]!;
      congestions.push(congestion);
      this.#capacities[column] = capacity;
      prices[column] = congestion.price(optimum.loads[column]! / capacity);
    }
    this.#congestions = congestions;
    this.#candidates = cheapestArcs(problem, prices);
    const arcsOfColumn = lists(problem.columns.length);
    for (let arc = 0; arc < weights.length; arc++) {
      if (weights[arc]! > 0) arcsOfColumn[problem.arcColumn[arc]!]!.push(arc);
    }
    this.#arcsOfColumn = arcsOfColumn;
  }

  /**
   * Backups when a column loses this much capacity, by arc from a row to that column. The column itself is among the
   * backups when it has capacity left. No shares for rows that nobody else can serve.
   * @param planned where the plan after the loss will serve the traffic of such an arc, where that is known
   */
  withoutCapacity(
    column: number,
    lost: number,
    planned: ReadonlyMap<number, readonly ArcShare[]>,
  ): ReadonlyMap<number, readonly ColumnBackup[]> {
    const { columns } = this.#optimum.flowProblem.problem;
    const { capacity } = columns[column]!;
    const share = lost / capacity;
    this.#loads[column]! *= 1 - share;
    this.#capacities[column] = lost < capacity ? capacity - lost : 0;
    this.#slots = 0;
    const placements: Placement[] = [];
    for (const arc of this.#arcsOfColumn[column]!) {
      placements.push(
        this.#placement(arc, this.#optimum.flows[arc]! * share, planned.get(arc) ?? NOT_PLANNED),
      );
    }
    this.#limitOverload(placements);
    this.#placeOpen(placements);
    for (let slot = 0; slot < this.#slots; slot++) this.#restore(this.#columns[slot]!);
    this.#restore(column);
    const backups = new Map<number, readonly ColumnBackup[]>();
    for (const placement of placements) backups.set(placement.arc, this.#sharesOf(placement));
    return backups;
  }

  #placement(arc: number, flow: number, planned: readonly ArcShare[]): Placement {
    const { arcRow, arcColumn } = this.#optimum.flowProblem.problem;
    const first = this.#slots;
    for (const each of this.#candidates[arcRow[arc]!]!) {
      if (this.#capacities[arcColumn[each]!]! > 0) this.#addSlot(each);
    }
    for (const { arc: to, share } of planned) {
      let slot = first;
      while (slot < this.#slots && this.#arcs[slot] !== to) slot++;
      if (slot === this.#slots) this.#addSlot(to);
      this.#taken[slot] = share;
    }
    return { arc, flow, first, end: this.#slots, open: planned.length > 0 ? 0 : 1 };
  }

  #addSlot(arc: number): void {
    if (this.#slots === this.#arcs.length) {
      this.#arcs = grown(this.#arcs, new Int32Array(2 * this.#slots));
      this.#taken = grown(this.#taken, new Float64Array(2 * this.#slots));
      this.#costs = grown(this.#costs, new Float64Array(2 * this.#slots));
      this.#costLoads = grown(this.#costLoads, new Float64Array(2 * this.#slots));
      this.#columns = grown(this.#columns, new Int32Array(2 * this.#slots));
      this.#idleCosts = grown(this.#idleCosts, new Float64Array(2 * this.#slots));
      this.#works = grown(this.#works, new Float64Array(2 * this.#slots));
      this.#order = grown(this.#order, new Int32Array(2 * this.#slots));
    }
    const { arcColumn, arcCost, arcWork } = this.#optimum.flowProblem.problem;
    this.#arcs[this.#slots] = arc;
    this.#columns[this.#slots] = arcColumn[arc]!;
    this.#idleCosts[this.#slots] = arcCost[arc]!;
    this.#works[this.#slots] = arcWork[arc]!;
    this.#taken[this.#slots] = 0;
    this.#costs[this.#slots] = -Infinity;
    this.#costLoads[this.#slots] = Number.NaN;
    this.#order[this.#slots] = this.#slots;
    this.#slots++;
  }

  /** Adds what is planned to the loads, and opens what is too much for a column, for all rows in proportion. */
  #limitOverload(placements: readonly Placement[]): void {
    const added = new Map<number, number>();
    for (const { flow, first, end } of placements) {
      for (let slot = first; slot < end; slot++) {
        const share = this.#taken[slot]!;
        const column = this.#columns[slot]!;
        if (share > 0) added.set(column, (added.get(column) ?? 0) + this.#works[slot]! * flow * share);
      }
    }
    if (added.size === 0) return;
    const kept = new Map<number, number>();
    for (const [column, load] of added) {
      const limit = this.#congestions[column]!.max * (1 + OVERLOAD_SLACK) * this.#capacities[column]!;
      const room = Math.max(0, limit - this.#loads[column]!);
      const share = load > room ? room / load : 1;
      kept.set(column, share);
      this.#loads[column]! += load * share;
    }
    for (const placement of placements) {
      for (let slot = placement.first; slot < placement.end; slot++) {
        const share = kept.get(this.#columns[slot]!) ?? 1;
        placement.open += this.#taken[slot]! * (1 - share);
        this.#taken[slot]! *= share;
      }
    }
  }

  /** The columns of a row's backups, ascending. */
  #sharesOf({ first, end }: Placement): ColumnBackup[] {
    const shares: ColumnBackup[] = [];
    for (let slot = first; slot < end; slot++) {
      if (!(this.#taken[slot]! > 0)) continue;
      const backup = { column: this.#columns[slot]!, share: this.#taken[slot]! };
      let at = shares.length;
      for (; at > 0 && shares[at - 1]!.column > backup.column; at--) shares[at] = shares[at - 1]!;
      shares[at] = backup;
    }
    return shares;
  }

  /** Places what is open in equal parts, one of each row after the other. */
  #placeOpen(placements: readonly Placement[]): void {
    for (let part = 0; part < PARTS; part++) {
      for (const placement of placements) {
        if (placement.open > 0) this.#placePart(placement, placement.open / PARTS);
      }
    }
  }

  /**
   * Places a share of a row's traffic where it costs least, on the first slot of several. Costs only rise, so the least one
   * known may be too low; its slot then moves back to its place.
   */
  #placePart({ flow, first, end }: Placement, share: number): void {
    const loads = this.#loads;
    const order = this.#order;
    if (first === end) return;
    for (;;) {
      const slot = order[first]!;
      const column = this.#columns[slot]!;
      const work = this.#works[slot]!;
      const load = loads[column]! + work * flow * share;
      if (load !== this.#costLoads[slot]!) {
        const rho = load / this.#capacities[column]!;
        this.#costs[slot] = this.#idleCosts[slot]! + work * this.#congestions[column]!.price(rho);
        this.#costLoads[slot] = load;
        if (this.#moveBack(first, end)) continue;
      }
      loads[column] = load;
      this.#taken[slot]! += share;
      return;
    }
  }

  /** Moves the first of these slots behind those that cost less, or as much and come first. Whether there are any. */
  #moveBack(first: number, end: number): boolean {
    const costs = this.#costs;
    const order = this.#order;
    const slot = order[first]!;
    const cost = costs[slot]!;
    let place = first;
    for (; place + 1 < end; place++) {
      const next = order[place + 1]!;
      const nextCost = costs[next]!;
      if (!(nextCost < cost || (nextCost === cost && next < slot))) break;
      order[place] = next;
    }
    order[place] = slot;
    return place > first;
  }

  #restore(column: number): void {
    this.#loads[column] = this.#optimum.loads[column]!;
    this.#capacities[column] = this.#optimum.flowProblem.problem.columns[column]!.capacity;
  }
}

function lists(size: number): number[][] {
  const empty: number[][] = [];
  for (let at = 0; at < size; at++) empty.push([]);
  return empty;
}

/** A larger array that begins with the values of a smaller one. */
function grown<T extends Int32Array | Float64Array>(from: T, to: T): T {
  to.set(from);
  return to;
}

/** By row: its cheapest arcs at these prices, best first. */
function cheapestArcs(problem: Problem, prices: Float64Array): number[][] {
  const { rows, arcRow, arcCost, arcMax } = problem;
  const isClosed = new Uint8Array(arcMax.length);
  for (let arc = 0; arc < arcMax.length; arc++) if (arcMax[arc] === 0) isClosed[arc] = 1;
  const limits = new Float64Array(rows.length).fill(Infinity);
  const cheapest = lists(rows.length);
  for (const arc of missedArcs(problem, arcCost, prices, limits, isClosed, MOST_CANDIDATES + 1)) {
    cheapest[arcRow[arc]!]!.push(arc);
  }
  return cheapest;
}
