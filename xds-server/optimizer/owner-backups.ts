import { type ArcShare, BackupPlanner } from './backups.js';
import { compare } from './collections.js';
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
    members.forEach((member, at) => {
      if (capacities[at] !== loss.capacity) return;
      for (const [arc, shares] of byArc) {
        const engines = shares.flatMap((each) => splitShare(placed, each.column, each.share, member));
        backups[arcRow[arc]!]!.push({
          ownerId: idOf(placed, member),
          shares: engines.sort((a, b) => compare(a.engineId, b.engineId)),
        });
      }
    });
  }
  for (const row of backups) row.sort((a, b) => compare(a.ownerId, b.ownerId));
  return backups;
}

function lossesOf({ flowProblem, loads }: Optimum): Loss[] {
  return flowProblem.problem.columns.flatMap(({ capacities }, column) =>
    [...new Set(capacities)].map((capacity) => ({ column, capacity, isLoaded: loads[column]! > 0 })),
  );
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

/** A column's share by capacity among its members, without the one that is gone. */
function splitShare(placed: Placed, column: number, share: number, gone: number): EngineWeight[] {
  const { members, capacities } = placed.optimum.flowProblem.problem.columns[column]!;
  if (members.length === 1) return [{ engineId: idOf(placed, members[0]!), weight: share }];
  const left = members.flatMap((member, at) =>
    member === gone ? [] : [{ engineId: idOf(placed, member), capacity: capacities[at]! }],
  );
  const total = left.reduce((sum, { capacity }) => sum + capacity, 0);
  return left.map(({ engineId, capacity }) => ({ engineId, weight: (share * capacity) / total }));
}

function idOf({ input }: Placed, engine: number): string {
  return input.state.fleet.engines[engine]!.id;
}
