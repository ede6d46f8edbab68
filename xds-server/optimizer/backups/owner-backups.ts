import { compare } from '../../collections.js';
import type { Optimum } from '../optimum.js';
import type { Column } from '../problem/columns.js';
import type { BackupShares, EngineWeight } from '../solution.js';
import { type ArcShare, BackupPlanner, type ColumnBackup } from './backups.js';
import { LossPlanner, type Placed, type Solve } from './loss.js';

/**
 * Losses times arcs up to which every loss is solved for. Each takes about as long as a solve from weights in force: at
 * the bound 0.1 to 0.2 s in all, or up to 0.4 s where most losses leave too little capacity.
 */
export const MOST_LOSS_ARCS = 20_000;

const NOTHING: ReadonlyMap<number, readonly ArcShare[]> = new Map();

/** The loss of a member of a column; members of the same capacity are alike. */
interface Loss {
  readonly column: number;
  readonly capacity: number;
  readonly isLoaded: boolean;
}

/**
 * Backups of every owner, by row: where the next plan would serve its traffic if it were lost, or, in fleets too large
 * to solve for every loss, where its traffic costs least while all other traffic stays.
 * @param solve for the plan after a loss
 */
export function ownerBackups(placed: Placed, solve: Solve): readonly (readonly BackupShares[])[] {
  const { optimum, weights } = placed;
  const { rows, columns, arcRow } = optimum.flowProblem.problem;
  const losses = lossesOf(optimum);
  const planned = new PlannedLosses(losses, placed, solve);
  const planner = new BackupPlanner(optimum, weights);
  const backups: BackupShares[][] = [];
  for (let row = 0; row < rows.length; row++) backups.push([]);
  for (const loss of losses) {
    const { members, capacities } = columns[loss.column]!;
    const byArc = planner.withoutCapacity(loss.column, loss.capacity, planned.after(loss));
    for (let at = 0; at < members.length; at++) {
      if (capacities[at] !== loss.capacity) continue;
      const ownerId = idOf(placed, members[at]!);
      for (const [arc, shares] of byArc) {
        backups[arcRow[arc]!]!.push({ ownerId, shares: splitShares(placed, shares, members[at]!) });
      }
    }
  }
  for (const row of backups) row.sort(byOwner);
  return backups;
}

function lossesOf({ flowProblem, loads }: Optimum): Loss[] {
  const losses: Loss[] = [];
  for (let column = 0; column < loads.length; column++) {
    const { capacities } = flowProblem.problem.columns[column]!;
    for (const capacity of new Set(capacities)) {
      losses.push({ column, capacity, isLoaded: loads[column]! > 0 });
    }
  }
  return losses;
}

function byOwner(a: BackupShares, b: BackupShares): number {
  return compare(a.ownerId, b.ownerId);
}

function byEngine(a: EngineWeight, b: EngineWeight): number {
  return compare(a.engineId, b.engineId);
}

/** What is known of the plan after each loss: nothing of engines that serve nobody now, and nothing in large fleets. */
class PlannedLosses {
  readonly #columns: readonly Column[];
  readonly #planner: LossPlanner | undefined;

  constructor(losses: readonly Loss[], placed: Placed, solve: Solve) {
    let loaded = 0;
    for (const { isLoaded } of losses) if (isLoaded) loaded++;
    this.#columns = placed.optimum.flowProblem.problem.columns;
    const isLarge = loaded * placed.weights.length > MOST_LOSS_ARCS;
    this.#planner = placed.input.isTrial || isLarge ? undefined : new LossPlanner(placed, solve);
  }

  after({ column, capacity, isLoaded }: Loss): ReadonlyMap<number, readonly ArcShare[]> {
    if (!this.#planner || !isLoaded) return NOTHING;
    const { members, capacities } = this.#columns[column]!;
    return this.#planner.without(members[capacities.indexOf(capacity)]!);
  }
}

/** Shares of columns, ascending, as shares of engines, ordered by id: a column's by capacity, without the one that is gone. */
function splitShares(placed: Placed, shares: readonly ColumnBackup[], gone: number): EngineWeight[] {
  const { columns } = placed.optimum.flowProblem.problem;
  const engines: EngineWeight[] = [];
  let isOrdered = true;
  for (const { column, share } of shares) {
    const { members, capacities } = columns[column]!;
    if (members.length === 1) {
      engines.push({ engineId: idOf(placed, members[0]!), weight: share });
      continue;
    }
    isOrdered = false;
    let left = 0;
    for (let at = 0; at < members.length; at++) if (members[at] !== gone) left += capacities[at]!;
    for (let at = 0; at < members.length; at++) {
      if (members[at] === gone) continue;
      engines.push({ engineId: idOf(placed, members[at]!), weight: (share * capacities[at]!) / left });
    }
  }
  return isOrdered ? engines : engines.sort(byEngine);
}

function idOf({ input }: Placed, engine: number): string {
  return input.state.fleet.engines[engine]!.id;
}
