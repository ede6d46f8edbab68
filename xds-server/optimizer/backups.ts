import type { Optimum } from './optimum.js';

/** An owner's traffic is placed in this many equal parts, one after the other, where each costs least. */
const PARTS = 32;
/** Columns considered for one row: those that are cheapest now. */
const MOST_CANDIDATES = 8;

/** Where one engine's traffic of one row goes when the engine is gone. */
export interface ColumnBackup {
  readonly column: number;
  /** Shares of a row's backups add up to 1. */
  readonly share: number;
}

/** A row's traffic that has lost its engine. */
interface Placement {
  readonly arc: number;
  /** Requests per second of one part. */
  readonly flow: number;
  /** Arcs that it may go to. */
  readonly candidates: readonly number[];
  /** Parts that went to each of them. */
  readonly taken: number[];
}

/**
 * What the optimum would be without one engine, while all other traffic stays where it is: the rows that the engine
 * serves place their flow part by part on the engines where it costs least in total, congestion included. Above the hard
 * limit the price goes on rising, so that an overload that cannot be avoided is spread.
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
    this.#candidates = problem.rows.map((_, row) => this.#cheapestArcs(row));
    const arcsOfColumn: number[][] = problem.columns.map(() => []);
    weights.forEach((weight, arc) => {
      if (weight > 0) arcsOfColumn[problem.arcColumn[arc]!]!.push(arc);
    });
    this.#arcsOfColumn = arcsOfColumn;
  }

  /**
   * Backups when a column loses this much capacity, by arc from a row to that column. The column itself is among the
   * backups when it has capacity left. No shares for rows that nobody else can serve.
   */
  withoutCapacity(column: number, lost: number): ReadonlyMap<number, readonly ColumnBackup[]> {
    const { columns, arcColumn } = this.#optimum.flowProblem.problem;
    const { capacity } = columns[column]!;
    const share = lost / capacity;
    this.#loads[column]! *= 1 - share;
    this.#capacities[column] = lost < capacity ? capacity - lost : 0;
    const placements = this.#placements(column, share);
    for (let part = 0; part < PARTS; part++) for (const placement of placements) this.#placePart(placement);
    for (const { candidates } of placements) {
      for (const arc of candidates) this.#restore(arcColumn[arc]!);
    }
    this.#restore(column);
    return new Map(placements.map((placement) => [placement.arc, this.#sharesOf(placement)]));
  }

  #placements(column: number, share: number): Placement[] {
    const { arcRow, arcColumn } = this.#optimum.flowProblem.problem;
    return this.#arcsOfColumn[column]!.map((arc) => {
      const candidates = this.#candidates[arcRow[arc]!]!.filter(
        (each) => this.#capacities[arcColumn[each]!]! > 0,
      );
      const flow = (this.#optimum.flows[arc]! * share) / PARTS;
      return { arc, flow, candidates, taken: new Array<number>(candidates.length).fill(0) };
    });
  }

  #sharesOf({ candidates, taken }: Placement): ColumnBackup[] {
    const { arcColumn } = this.#optimum.flowProblem.problem;
    const shares: ColumnBackup[] = [];
    candidates.forEach((arc, at) => {
      if (taken[at]! > 0) shares.push({ column: arcColumn[arc]!, share: taken[at]! / PARTS });
    });
    return shares;
  }

  #placePart({ flow, candidates, taken }: Placement): void {
    const { columns, arcColumn, arcCost, arcWork } = this.#optimum.flowProblem.problem;
    let best = -1;
    let least = Infinity;
    for (let at = 0; at < candidates.length; at++) {
      const arc = candidates[at]!;
      const column = arcColumn[arc]!;
      const work = arcWork[arc]!;
      const rho = (this.#loads[column]! + work * flow) / this.#capacities[column]!;
      const cost = arcCost[arc]! + work * columns[column]!.congestion.price(rho);
      if (cost < least) {
        least = cost;
        best = at;
      }
    }
    if (best < 0) return;
    this.#loads[arcColumn[candidates[best]!]!]! += arcWork[candidates[best]!]! * flow;
    taken[best]!++;
  }

  #restore(column: number): void {
    this.#loads[column] = this.#optimum.loads[column]!;
    this.#capacities[column] = this.#optimum.flowProblem.problem.columns[column]!.capacity;
  }

  #cheapestArcs(row: number): readonly number[] {
    const { rows, columns, arcColumn, arcCost, arcWork, arcMax } = this.#optimum.flowProblem.problem;
    const { firstArc, endArc } = rows[row]!;
    const best: { readonly arc: number; readonly cost: number }[] = [];
    for (let arc = firstArc; arc < endArc; arc++) {
      if (arcMax[arc] === 0) continue;
      const column = arcColumn[arc]!;
      const rho = this.#loads[column]! / this.#capacities[column]!;
      const cost = arcCost[arc]! + arcWork[arc]! * columns[column]!.congestion.price(rho);
      if (best.length > MOST_CANDIDATES && cost >= best[MOST_CANDIDATES]!.cost) continue;
      const at = best.findIndex((other) => cost < other.cost);
      best.splice(at < 0 ? best.length : at, 0, { arc, cost });
      best.length = Math.min(best.length, MOST_CANDIDATES + 1);
    }
    return best.map(({ arc }) => arc);
  }
}
