import { type ArcShare, BackupPlanner, type ColumnBackup } from './backups.js';
import { compare, sum } from './collections.js';
import { LossPlanner, type Placed, type Solve } from './loss.js';
import type { Optimum } from './optimum.js';
import type { BackupShares, EngineWeight } from './solution.js';

/**
 * Losses times arcs up to which every loss is solved for. Each takes about as long as a solve from weights in force: at
 * the bound 0.1 to 0.2 s in all, or up to 0.4 s where most losses leave too little capacity.
 */
export const MOST_LOSS_ARCS = 20_000;

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
  const planned = plannedFor(losses, placed, solve);
  const planner = new BackupPlanner(optimum, weights);
  const backups: BackupShares[][] = rows.map(() => []);
  for (const loss of losses) {
    const { members, capacities } = columns[loss.column]!;
    const byArc = planner.withoutCapacity(loss.column, loss.capacity, planned(loss));
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

/** What is known of the plan after each loss: nothing of engines that serve nobody now. */
function plannedFor(
  losses: readonly Loss[],
  placed: Placed,
  solve: Solve,
): (loss: Loss) => ReadonlyMap<number, readonly ArcShare[]> {
  const nothing = new Map<number, readonly ArcShare[]>();
  const loaded = losses.filter(({ isLoaded }) => isLoaded).length;
  if (placed.input.isTrial || loaded * placed.weights.length > MOST_LOSS_ARCS) return () => nothing;
  const { columns } = placed.optimum.flowProblem.problem;
  const planner = new LossPlanner(placed, solve);
  return ({ column, capacity, isLoaded }) => {
    const { members, capacities } = columns[column]!;
    return isLoaded ? planner.without(members[capacities.indexOf(capacity)]!) : nothing;
  };
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
    const left = sum(capacities.filter((_, at) => members[at] !== gone));
    members.forEach((member, at) => {
      if (member === gone) return;
      engines.push({ engineId: idOf(placed, member), weight: (share * capacities[at]!) / left });
    });
  }
  return isOrdered ? engines : engines.sort(byEngine);
}

function idOf({ input }: Placed, engine: number): string {
  return input.state.fleet.engines[engine]!.id;
}
