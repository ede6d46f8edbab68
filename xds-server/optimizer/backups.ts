import type { Optimum } from './optimum.js';

/** Traffic without a plan for its loss is placed in this many equal parts, one after the other. */
const PARTS = 32;
/** Columns considered for one row: those that are cheapest now. */
const MOST_CANDIDATES = 8;
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

interface PricedArc {
  readonly arc: number;
  readonly cost: number;
}

/** A row's traffic that has lost its engine. */
interface Placement {
  readonly arc: number;
  /** Requests per second. */
  readonly flow: number;
  /** Arcs that it may go to. */
  readonly candidates: number[];
  /** Shares of the flow that go to each of them. */
  readonly taken: number[];
  /** What the next part costs on each of them at least. */
  readonly costs: number[];
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

  constructor(optimum: Optimum, weights: Float64Array) {
    const { problem } = optimum.flowProblem;
    this.#optimum = optimum;
    this.#loads = Float64Array.from(optimum.loads);
    this.#capacities = Float64Array.from(problem.columns, ({ capacity }) => capacity);
    const prices = Float64Array.from(problem.columns, ({ congestion, capacity }, column) =>
      congestion.price(optimum.loads[column]! / capacity),
    );
    this.#candidates = problem.rows.map((_, row) => this.#cheapestArcs(row, prices));
    const arcsOfColumn: number[][] = problem.columns.map(() => []);
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
    const { columns, arcColumn } = this.#optimum.flowProblem.problem;
    const { capacity } = columns[column]!;
    const share = lost / capacity;
    this.#loads[column]! *= 1 - share;
    this.#capacities[column] = lost < capacity ? capacity - lost : 0;
    const placements = this.#arcsOfColumn[column]!.map((arc) =>
      this.#placement(arc, this.#optimum.flows[arc]! * share, planned.get(arc) ?? []),
    );
    this.#limitOverload(placements);
    const open = placements.filter((placement) => placement.open > 0);
    const parts = open.map((placement) => placement.open / PARTS);
    for (let part = 0; part < PARTS; part++) {
      open.forEach((placement, at) => {
        this.#placePart(placement, parts[at]!);
      });
    }
    for (const { candidates } of placements) {
      for (const arc of candidates) this.#restore(arcColumn[arc]!);
    }
    this.#restore(column);
    return new Map(placements.map((placement) => [placement.arc, this.#sharesOf(placement)]));
  }

  #placement(arc: number, flow: number, planned: readonly ArcShare[]): Placement {
    const { arcRow, arcColumn } = this.#optimum.flowProblem.problem;
    const candidates = this.#candidates[arcRow[arc]!]!.filter(
      (each) => this.#capacities[arcColumn[each]!]! > 0,
    );
    const taken = new Array<number>(candidates.length).fill(0);
    for (const { arc: to, share } of planned) {
      const at = candidates.indexOf(to);
      if (at < 0) {
        candidates.push(to);
        taken.push(share);
      } else {
        taken[at] = share;
      }
    }
    const costs = new Array<number>(candidates.length).fill(-Infinity);
    return { arc, flow, candidates, taken, costs, open: planned.length > 0 ? 0 : 1 };
  }

  /** Adds what is planned to the loads, and opens what is too much for a column, for all rows in proportion. */
  #limitOverload(placements: readonly Placement[]): void {
    const { columns, arcColumn, arcWork } = this.#optimum.flowProblem.problem;
    const added = new Map<number, number>();
    for (const { flow, candidates, taken } of placements) {
      candidates.forEach((arc, at) => {
        const column = arcColumn[arc]!;
        if (taken[at]! > 0) added.set(column, (added.get(column) ?? 0) + arcWork[arc]! * flow * taken[at]!);
      });
    }
    const kept = new Map<number, number>();
    for (const [column, load] of added) {
      const limit = columns[column]!.congestion.max * (1 + OVERLOAD_SLACK) * this.#capacities[column]!;
      const room = Math.max(0, limit - this.#loads[column]!);
      const share = load > room ? room / load : 1;
      kept.set(column, share);
      this.#loads[column]! += load * share;
    }
    for (const placement of placements) {
      placement.candidates.forEach((arc, at) => {
        const share = kept.get(arcColumn[arc]!) ?? 1;
        placement.open += placement.taken[at]! * (1 - share);
        placement.taken[at]! *= share;
      });
    }
  }

  #sharesOf({ candidates, taken }: Placement): ColumnBackup[] {
    const { arcColumn } = this.#optimum.flowProblem.problem;
    const shares: ColumnBackup[] = [];
    candidates.forEach((arc, at) => {
      if (taken[at]! > 0) shares.push({ column: arcColumn[arc]!, share: taken[at]! });
    });
    return shares;
  }

  /** Places a share of a row's traffic where it costs least. Costs only rise, so those known may be too low. */
  #placePart({ flow, candidates, taken, costs }: Placement, share: number): void {
    const { columns, arcColumn, arcCost, arcWork } = this.#optimum.flowProblem.problem;
    for (;;) {
      let best = -1;
      let least = Infinity;
      for (let at = 0; at < costs.length; at++) {
        if (!(costs[at]! < least)) continue;
        least = costs[at]!;
        best = at;
      }
      if (best < 0) return;
      const arc = candidates[best]!;
      const column = arcColumn[arc]!;
      const work = arcWork[arc]!;
      const load = this.#loads[column]! + work * flow * share;
      const cost = arcCost[arc]! + work * columns[column]!.congestion.price(load / this.#capacities[column]!);
      costs[best] = cost;
      if (cost > least) continue;
      this.#loads[column] = load;
      taken[best]! += share;
      return;
    }
  }

  #restore(column: number): void {
    this.#loads[column] = this.#optimum.loads[column]!;
    this.#capacities[column] = this.#optimum.flowProblem.problem.columns[column]!.capacity;
  }

  #cheapestArcs(row: number, prices: Float64Array): readonly number[] {
    const { rows, arcColumn, arcCost, arcWork, arcMax } = this.#optimum.flowProblem.problem;
    const { firstArc, endArc } = rows[row]!;
    const best: PricedArc[] = [];
    for (let arc = firstArc; arc < endArc; arc++) {
      if (arcMax[arc] === 0) continue;
      const cost = arcCost[arc]! + arcWork[arc]! * prices[arcColumn[arc]!]!;
      if (best.length > MOST_CANDIDATES && cost >= best[MOST_CANDIDATES]!.cost) continue;
      insertCheap(best, { arc, cost });
    }
    return best.map(({ arc }) => arc);
  }
}

/** Inserts an arc into a list of the cheapest, in its order. */
function insertCheap(best: PricedArc[], arc: PricedArc): void {
  const at = best.findIndex((other) => arc.cost < other.cost);
  best.splice(at < 0 ? best.length : at, 0, arc);
  best.length = Math.min(best.length, MOST_CANDIDATES + 1);
}
