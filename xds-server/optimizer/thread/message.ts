import type {
  BackupShares,
  EngineFlow,
  EngineWeight,
  Matrix,
  Solution,
  SolutionRow,
  SolverEngine,
  SolverInput,
} from '../solution.js';
import type { Outcome, Task } from './task.js';

/**
 * What goes between the caller's thread and the solver's. Objects are copied one by one, names and all, which at a
 * thousand engines takes as long as a quarter of a solve; numbers in typed arrays are copied at once.
 */

export type PackedOutcome =
  | (Omit<Outcome & { readonly ok: true }, 'solution'> & { readonly solution: PackedSolution })
  | (Outcome & { readonly ok: false });

interface PackedSolution extends Omit<Solution, 'rows'> {
  readonly rows: readonly Omit<SolutionRow, 'flows' | 'weights' | 'backups'>[];
  /** By row. */
  readonly flows: PackedLists;
  readonly weights: PackedLists;
  /** By row the owners, without values, and by owner the shares of its backups. */
  readonly owners: PackedLists;
  readonly shares: PackedLists;
}

/** Lists of engines, each with a number, one after the other. */
interface PackedLists {
  /** Where each list ends. */
  readonly ends: Int32Array;
  /** Indices in `Solution.engines`. */
  readonly engines: Int32Array;
  readonly values: Float64Array;
}

/** A task without what a solve does not read. */
export function packTask(task: Task): Task {
  return { ...task, input: packInput(task.input) };
}

export function packOutcome(outcome: Outcome): PackedOutcome {
  return outcome.ok ? { ...outcome, solution: packSolution(outcome.solution) } : outcome;
}

export function unpackOutcome(outcome: PackedOutcome): Outcome {
  return outcome.ok ? { ...outcome, solution: unpackSolution(outcome.solution) } : outcome;
}

function packInput(input: SolverInput): SolverInput {
  const { fleet, engines } = input.state;
  const { egressDollarsPerRequest } = fleet;
  return {
    ...input,
    state: {
      ...input.state,
      fleet: {
        frontends: fleet.frontends.map(({ id }) => ({ id })),
        engines: fleet.engines.map(({ id, profile }) => ({ id, profile })),
        pools: fleet.pools.map(({ id, engineIds }) => ({ id, engineIds })),
        networkSeconds: packMatrix(fleet.networkSeconds),
        ...(egressDollarsPerRequest && { egressDollarsPerRequest: packMatrix(egressDollarsPerRequest) }),
      },
      engines: packEngines(engines),
    },
  };
}

/** Rows in one buffer, which is copied once. */
function packMatrix(matrix: Matrix): Matrix {
  let size = 0;
  for (const row of matrix) size += row.length;
  const values = new Float64Array(size);
  const packed: Float64Array[] = [];
  let start = 0;
  for (const row of matrix) {
    values.set(row, start);
    packed.push(values.subarray(start, start + row.length));
    start += row.length;
  }
  return packed;
}

/** Engines with as many replicas, and as many of them ready, share one list of them, which is copied once. */
function packEngines(engines: readonly SolverEngine[]): SolverEngine[] {
  const lists = new Map<string, SolverEngine['replicas']>();
  const packed: SolverEngine[] = [];
  for (const engine of engines) {
    let ready = 0;
    for (const replica of engine.replicas) if (replica.ready) ready++;
    const key = `${ready}/${engine.replicas.length}`;
    let replicas = lists.get(key);
    if (!replicas) {
      replicas = engine.replicas.map((_, at) => ({ ready: at < ready }));
      lists.set(key, replicas);
    }
    packed.push({ ...engine, replicas });
  }
  return packed;
}

function packSolution({ rows, ...rest }: Solution): PackedSolution {
  const indices = new Map<string, number>();
  for (const { engineId } of rest.engines) indices.set(engineId, indices.size);
  const flows = new ListPacker(indices);
  const weights = new ListPacker(indices);
  const owners = new ListPacker(indices);
  const shares = new ListPacker(indices);
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

class ListPacker {
  readonly #indices: ReadonlyMap<string, number>;
  readonly #ends: number[] = [];
  readonly #engines: number[] = [];
  readonly #values: number[] = [];

  constructor(indices: ReadonlyMap<string, number>) {
    this.#indices = indices;
  }

  add(engineId: string, value: number): void {
    this.#engines.push(this.#indices.get(engineId)!);
    this.#values.push(value);
  }

  endList(): void {
    this.#ends.push(this.#engines.length);
  }

  finish(): PackedLists {
    return {
      ends: new Int32Array(this.#ends),
      engines: new Int32Array(this.#engines),
      values: new Float64Array(this.#values),
    };
  }
}

function unpackSolution({ rows: others, flows, weights, owners, shares, ...rest }: PackedSolution): Solution {
  const { engines } = rest;
  const rows: SolutionRow[] = [];
  for (let row = 0; row < others.length; row++) {
    const { frontendId, poolId, demandRps, shed, bounds } = others[row]!;
    const backups: BackupShares[] = [];
    for (let at = startOf(owners, row); at < owners.ends[row]!; at++) {
      backups.push({
        ownerId: engines[owners.engines[at]!]!.engineId,
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
    weights.push({ engineId: engines[lists.engines[at]!]!.engineId, weight: lists.values[at]! });
  }
  return weights;
}

function flowsOf(lists: PackedLists, list: number, engines: Solution['engines']): EngineFlow[] {
  const flows: EngineFlow[] = [];
  for (let at = startOf(lists, list); at < lists.ends[list]!; at++) {
    flows.push({ engineId: engines[lists.engines[at]!]!.engineId, rps: lists.values[at]! });
  }
  return flows;
}

function startOf({ ends }: PackedLists, list: number): number {
  return list === 0 ? 0 : ends[list - 1]!;
}
