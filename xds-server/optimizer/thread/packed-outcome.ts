import type { BackupShares, EngineFlow, EngineWeight, Solution, SolutionRow } from '../solution.js';
import { ListPacker, Names, type PackedLists, startOf } from './packed-lists.js';
import type { Outcome } from './task.js';

/** An outcome as it goes from the solver's thread to the caller's. */
export type PackedOutcome =
  | (Omit<Outcome & { readonly ok: true }, 'solution'> & { readonly solution: PackedSolution })
  | (Outcome & { readonly ok: false });

/** Lists of engines name them by their indices in `engines`. */
interface PackedSolution extends Omit<Solution, 'rows'> {
  readonly rows: readonly Omit<SolutionRow, 'flows' | 'weights' | 'backups'>[];
  /** By row. */
  readonly flows: PackedLists;
  readonly weights: PackedLists;
  /** By row the owners, without values, and by owner the shares of its backups. */
  readonly owners: PackedLists;
  readonly shares: PackedLists;
}

export function packOutcome(outcome: Outcome): PackedOutcome {
  if (!outcome.ok) return outcome;
  return { ok: true, solution: packSolution(outcome.solution), memoryBytes: outcome.memoryBytes };
}

export function unpackOutcome(outcome: PackedOutcome): Outcome {
  if (!outcome.ok) return outcome;
  return { ok: true, solution: unpackSolution(outcome.solution), memoryBytes: outcome.memoryBytes };
}

function packSolution(solution: Solution): PackedSolution {
  const { engines, objectiveSeconds, lowerBoundSeconds, mixErrorSeconds, warnings } = solution;
  const rows = new RowPacker(engines);
  for (const row of solution.rows) rows.add(row);
  return {
    rows: rows.others,
    engines,
    objectiveSeconds,
    lowerBoundSeconds,
    mixErrorSeconds,
    warnings,
    flows: rows.flows.finish(),
    weights: rows.weights.finish(),
    owners: rows.owners.finish(),
    shares: rows.shares.finish(),
  };
}

class RowPacker {
  readonly others: PackedSolution['rows'][number][] = [];
  readonly flows: ListPacker;
  readonly weights: ListPacker;
  readonly owners: ListPacker;
  readonly shares: ListPacker;

  constructor(engines: Solution['engines']) {
    const names = new Names();
    for (const { engineId } of engines) names.indexOf(engineId);
    this.flows = new ListPacker(names);
    this.weights = new ListPacker(names);
    this.owners = new ListPacker(names);
    this.shares = new ListPacker(names);
  }

  add({ frontendId, poolId, demandRps, flows, weights, shed, backups, bounds }: SolutionRow): void {
    this.others.push({ frontendId, poolId, demandRps, shed, bounds });
    for (const { engineId, rps } of flows) this.flows.add(engineId, rps);
    for (const { engineId, weight } of weights) this.weights.add(engineId, weight);
    for (const { ownerId, shares } of backups) {
      this.owners.add(ownerId, 0);
      for (const { engineId, weight } of shares) this.shares.add(engineId, weight);
      this.shares.endList();
    }
    this.flows.endList();
    this.weights.endList();
    this.owners.endList();
  }
}

/**
 * Backups are taken out whenever they are asked for, which is once for each row, when its plan is made: of a large fleet they are
 * a million shares, which the caller's thread would make at one go and keep until the next solution.
 */
function unpackSolution(packed: PackedSolution): Solution {
  const { rows: others, engines, flows, weights } = packed;
  const rows = others.map(({ frontendId, poolId, demandRps, shed, bounds }, row) => ({
    frontendId,
    poolId,
    demandRps,
    flows: flowsOf(flows, row, engines),
    weights: weightsOf(weights, row, engines),
    shed,
    bounds,
    get backups() {
      return backupsOf(packed, row);
    },
  }));
  const { objectiveSeconds, lowerBoundSeconds, mixErrorSeconds, warnings } = packed;
  return { rows, engines, objectiveSeconds, lowerBoundSeconds, mixErrorSeconds, warnings };
}

function backupsOf({ engines, owners, shares }: PackedSolution, row: number): BackupShares[] {
  const backups: BackupShares[] = [];
  for (let at = startOf(owners, row); at < owners.ends[row]!; at++) {
    backups.push({
      ownerId: engines[owners.names[at]!]!.engineId,
      shares: weightsOf(shares, at, engines),
    });
  }
  return backups;
}

function weightsOf(lists: PackedLists, list: number, engines: Solution['engines']): EngineWeight[] {
  const weights: EngineWeight[] = [];
  for (let at = startOf(lists, list); at < lists.ends[list]!; at++) {
    weights.push({ engineId: engines[lists.names[at]!]!.engineId, weight: lists.values[at]! });
  }
  return weights;
}

function flowsOf(lists: PackedLists, list: number, engines: Solution['engines']): EngineFlow[] {
  const flows: EngineFlow[] = [];
  for (let at = startOf(lists, list); at < lists.ends[list]!; at++) {
    flows.push({ engineId: engines[lists.names[at]!]!.engineId, rps: lists.values[at]! });
  }
  return flows;
}
