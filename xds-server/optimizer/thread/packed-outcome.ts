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
  return outcome.ok ? { ...outcome, solution: packSolution(outcome.solution) } : outcome;
}

export function unpackOutcome(outcome: PackedOutcome): Outcome {
  return outcome.ok ? { ...outcome, solution: unpackSolution(outcome.solution) } : outcome;
}

function packSolution({ rows, ...rest }: Solution): PackedSolution {
  const names = new Names();
  for (const { engineId } of rest.engines) names.indexOf(engineId);
  const flows = new ListPacker(names);
  const weights = new ListPacker(names);
  const owners = new ListPacker(names);
  const shares = new ListPacker(names);
  const others: PackedSolution['rows'][number][] = [];
  for (const { flows: ownFlows, weights: ownWeights, backups, ...other } of rows) {
    others.push(other);
    for (const { engineId, rps } of ownFlows) flows.add(engineId, rps);
    for (const { engineId, weight } of ownWeights) weights.add(engineId, weight);
    for (const backup of backups) {
      owners.add(backup.ownerId, 0);
      for (const { engineId, weight } of backup.shares) shares.add(engineId, weight);
      shares.endList();
    }
    flows.endList();
    weights.endList();
    owners.endList();
  }
  return {
    ...rest,
    rows: others,
    flows: flows.finish(),
    weights: weights.finish(),
    owners: owners.finish(),
    shares: shares.finish(),
  };
}

function unpackSolution({ rows: others, flows, weights, owners, shares, ...rest }: PackedSolution): Solution {
  const { engines } = rest;
  const rows: SolutionRow[] = [];
  for (let row = 0; row < others.length; row++) {
    const { frontendId, poolId, demandRps, shed, bounds } = others[row]!;
    const backups: BackupShares[] = [];
    for (let at = startOf(owners, row); at < owners.ends[row]!; at++) {
      backups.push({
        ownerId: engines[owners.names[at]!]!.engineId,
        shares: weightsOf(shares, at, engines),
      });
    }
    rows.push({
      frontendId,
      poolId,
      demandRps,
      flows: flowsOf(flows, row, engines),
      weights: weightsOf(weights, row, engines),
      shed,
      bounds,
      backups,
    });
  }
  return { rows, ...rest };
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
