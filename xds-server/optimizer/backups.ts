import type { Optimum } from './optimum.js';

/** An owner's traffic is placed in this many equal parts, one after the other, where each costs least. */
const PARTS = 32;
/** Columns considered for one row: those that are cheapest now. */
const MOST_CANDIDATES = 8;

/** Where one column's traffic of one row goes when one of its engines is gone: shares by column, adding up to 1. */
export interface ColumnBackup {
  readonly column: number;
  readonly share: number;
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
  readonly #rowsOfColumn: readonly (readonly number[])[];

  constructor(optimum: Optimum, weights: Float64Array) {
    this.#optimum = optimum;
    const { problem } = optimum.flowProblem;
    this.#candidates = problem.rows.map((_, row) => this.#cheapestArcs(row));
    const rowsOfColumn: number[][] = problem.columns.map(() => []);
    weights.forEach((weight, arc) => {
      if (weight > 0) rowsOfColumn[problem.arcColumn[arc]!]!.push(arc);
    });
    this.#rowsOfColumn = rowsOfColumn;
  }

  /**
   * Backups for one member of a column, by arc from a row to that column. The column itself is among the backups when
   * it has other members. No entry for rows that nobody else can serve.
   */
  withoutMember(column: number, member: number): ReadonlyMap<number, readonly ColumnBackup[]> {
    const { flows, loads, flowProblem } = this.#optimum;
    const { columns, arcRow, arcWork, arcColumn, arcCost } = flowProblem.problem;
    const { capacity, capacities } = columns[column]!;
    const share = capacities[member]! / capacity;
    const capacityOf = (at: number): number =>
      at === column ? capacity * (1 - share) : columns[at]!.capacity;
    const load = new Map<number, number>([[column, loads[column]! * (1 - share)]]);
    const loadOf = (at: number): number => load.get(at) ?? loads[at]!;
    const placements = this.#rowsOfColumn[column]!.map((arc) => ({
      arc,
      part: (flows[arc]! * share) / PARTS,
      candidates: this.#candidates[arcRow[arc]!]!.filter((each) => capacityOf(arcColumn[each]!) > 0),
      taken: new Map<number, number>(),
    }));
    for (let part = 0; part < PARTS; part++) {
      for (const placement of placements) {
        let best = -1;
        let least = Infinity;
        for (const arc of placement.candidates) {
          const at = arcColumn[arc]!;
          const rho = (loadOf(at) + arcWork[arc]! * placement.part) / capacityOf(at);
          const cost = arcCost[arc]! + arcWork[arc]! * columns[at]!.congestion.price(rho);
          if (cost < least) {
            least = cost;
            best = arc;
          }
        }
        if (best < 0) continue;
        const at = arcColumn[best]!;
        load.set(at, loadOf(at) + arcWork[best]! * placement.part);
        placement.taken.set(at, (placement.taken.get(at) ?? 0) + 1);
      }
    }
    return new Map(
      placements.map(({ arc, taken }) => [
        arc,
        [...taken].sort(([a], [b]) => a - b).map(([at, parts]) => ({ column: at, share: parts / PARTS })),
      ]),
    );
  }

  #cheapestArcs(row: number): readonly number[] {
    const { flowProblem, loads } = this.#optimum;
    const { rows, columns, arcColumn, arcCost, arcWork, arcMax } = flowProblem.problem;
    const { firstArc, endArc } = rows[row]!;
    const best: { readonly arc: number; readonly cost: number }[] = [];
    for (let arc = firstArc; arc < endArc; arc++) {
      if (arcMax[arc] === 0) continue;
      const { congestion, capacity } = columns[arcColumn[arc]!]!;
      const cost = arcCost[arc]! + arcWork[arc]! * congestion.price(loads[arcColumn[arc]!]! / capacity);
      if (best.length > MOST_CANDIDATES && cost >= best[MOST_CANDIDATES]!.cost) continue;
      const at = best.findIndex((other) => cost < other.cost);
      best.splice(at < 0 ? best.length : at, 0, { arc, cost });
      best.length = Math.min(best.length, MOST_CANDIDATES + 1);
    }
    return best.map(({ arc }) => arc);
  }
}
