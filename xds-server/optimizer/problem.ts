import type { Demand } from '../fleet/fleet-state.js';
import type { WeightBound } from '../fleet/policy.js';
import { idleTbotSeconds, idleTtftSeconds } from '../profiles/curves.js';
import type { TokenMix } from '../profiles/profile.js';
import { workSeconds } from '../profiles/profile.js';
import { followable, type RowBounds } from './bounds.js';
import { groupBy, sum } from './collections.js';
import { buildColumns, type Column } from './columns.js';
import { type MeanRequest, meanMix, totalRps } from './demand.js';
import type { OptimizerInput } from './solution.js';

/** Horizon of move costs while conditions are new, in seconds. */
const SHORTEST_HORIZON_SECONDS = 60;
/** Horizon of move costs when conditions have held for long, in seconds. */
const LONGEST_HORIZON_SECONDS = 30 * 60;
/** Seconds that moving one request per second costs at least: no flow moves for less than a microsecond. */
const LEAST_MOVE_SECONDS = 1e-6;

/** A (frontend, pool): the requests that share one row of weights. */
export interface Row {
  readonly frontendId: string;
  readonly poolId: string;
  readonly demandRps: number;
  /** Highest priority first. */
  readonly classes: readonly Demand[];
  /** Mean request over the classes. */
  readonly mix: TokenMix;
  /** User-seconds per second that one request per second of moved flow costs. */
  readonly moveSeconds: number;
  /** Arcs of the row: `firstArc <= arc < endArc`. */
  readonly firstArc: number;
  readonly endArc: number;
  readonly bounds: RowBounds;
}

/** Rows and columns joined by arcs: a row has an arc to each column that may and can serve it. */
export interface Problem {
  /** Sorted by frontend, then pool. */
  readonly rows: readonly Row[];
  readonly columns: readonly Column[];
  readonly arcRow: Int32Array;
  readonly arcColumn: Int32Array;
  /** Seconds one request takes without load: network, first token, later tokens, and egress where it is priced. */
  readonly arcCost: Float64Array;
  /** Replica-seconds one request costs. */
  readonly arcWork: Float64Array;
  /** Weight in force, 0 before the first plan. */
  readonly arcPrevious: Float64Array;
  /** Operator's bounds on the weight; 0 and 1 without any. */
  readonly arcMin: Float64Array;
  readonly arcMax: Float64Array;
  readonly warnings: readonly string[];
}

/**
 * Arranges checked input as rows, columns and arcs.
 * `servedRps` (same order as `state.demands`) weighs the classes of a row in its mean request; offered rates without it.
 */
export function buildProblem(input: OptimizerInput, servedRps?: readonly number[]): Problem {
  return new ProblemBuilder(input, servedRps).build();
}

/** Horizon of move costs. It doubles as time goes by, so that it changes five times and then stands still. */
export function horizonSeconds(settledSeconds: number): number {
  let horizon = SHORTEST_HORIZON_SECONDS;
  while (horizon * 2 <= settledSeconds && horizon < LONGEST_HORIZON_SECONDS) horizon *= 2;
  return Math.min(horizon, LONGEST_HORIZON_SECONDS);
}

class ProblemBuilder {
  readonly #input: OptimizerInput;
  readonly #demands: ReadonlyMap<string, ClassesOfRow>;
  /** For rows without traffic of their own, so that their weights fit what may come. */
  readonly #poolMeans: ReadonlyMap<string, MeanRequest>;
  readonly #previous: ReadonlyMap<string, ReadonlyMap<string, number>>;
  readonly #bounds: ReadonlyMap<string, readonly WeightBound[]>;
  readonly #columns: readonly Column[];
  readonly #horizon: number;
  readonly #rows: Row[] = [];
  readonly #arcRow: number[] = [];
  readonly #arcColumn: number[] = [];
  readonly #arcCost: number[] = [];
  readonly #arcWork: number[] = [];
  readonly #arcPrevious: number[] = [];
  readonly #arcMin: number[] = [];
  readonly #arcMax: number[] = [];
  readonly #warnings: string[] = [];

  constructor(input: OptimizerInput, servedRps: readonly number[] | undefined) {
    this.#input = input;
    this.#demands = classesByRow(input.state.demands, servedRps);
    this.#poolMeans = meansByPool(input);
    this.#previous = new Map(input.previousWeights.map((row) => [keyOf(row), row.weights]));
    this.#bounds = groupBy(input.policy.bounds, keyOf);
    this.#columns = buildColumns(input);
    this.#horizon = horizonSeconds(input.state.settledSeconds);
  }

  build(): Problem {
    const { frontends, pools } = this.#input.state.fleet;
    const eligible = pools.map((pool) => this.#eligibleColumns(new Set(pool.engineIds)));
    frontends.forEach((frontend, at) => {
      pools.forEach((pool, poolAt) => {
        this.#addRow(at, { frontendId: frontend.id, poolId: pool.id }, eligible[poolAt]!);
      });
    });
    return {
      rows: this.#rows,
      columns: this.#columns,
      arcRow: Int32Array.from(this.#arcRow),
      arcColumn: Int32Array.from(this.#arcColumn),
      arcCost: Float64Array.from(this.#arcCost),
      arcWork: Float64Array.from(this.#arcWork),
      arcPrevious: Float64Array.from(this.#arcPrevious),
      arcMin: Float64Array.from(this.#arcMin),
      arcMax: Float64Array.from(this.#arcMax),
      warnings: this.#warnings,
    };
  }

  #eligibleColumns(engineIds: ReadonlySet<string>): number[] {
    return this.#columns.flatMap((column, at) => (engineIds.has(this.#idOf(column)) ? [at] : []));
  }

  #addRow(frontend: number, names: RowNames, eligible: readonly number[]): void {
    const { fleet } = this.#input.state;
    const network = fleet.networkSeconds[frontend]!;
    const reachable = eligible.filter((at) => network[this.#columns[at]!.members[0]!]! < Infinity);
    const key = keyOf(names);
    const { classes, mean } = this.#demands.get(key) ?? {
      classes: [],
      mean: this.#poolMeans.get(names.poolId)!,
    };
    const ids = reachable.flatMap((at) =>
      this.#columns[at]!.members.map((member) => fleet.engines[member]!.id),
    );
    const bounds = followable(this.#bounds.get(key) ?? [], ids, this.#warnings);
    const firstArc = this.#arcRow.length;
    for (const at of reachable) this.#addArc(frontend, at, mean, bounds, this.#previous.get(key));
    this.#rows.push({
      ...names,
      demandRps: totalRps(classes),
      classes,
      mix: mean,
      moveSeconds: this.#moveSeconds(mean, reachable),
      firstArc,
      endArc: this.#arcRow.length,
      bounds,
    });
  }

  #addArc(
    frontend: number,
    at: number,
    mean: MeanRequest,
    bounds: RowBounds,
    previous: ReadonlyMap<string, number> | undefined,
  ): void {
    const { fleet } = this.#input.state;
    const { members, profile, latencyFactor } = this.#columns[at]!;
    const engine = members[0]!;
    const idle =
      idleTtftSeconds(profile, mean.uncachedPromptTokens) +
      (mean.outputTokens - 1) * idleTbotSeconds(profile);
    const dollars = fleet.egressDollarsPerRequest?.[frontend]?.[engine] ?? 0;
    const bound = bounds.get(fleet.engines[engine]!.id);
    this.#arcRow.push(this.#rows.length);
    this.#arcColumn.push(at);
    this.#arcCost.push(
      fleet.networkSeconds[frontend]![engine]! +
        latencyFactor * idle +
        this.#input.policy.egressSecondsPerDollar * dollars,
    );
    this.#arcWork.push(workSeconds(profile, mean));
    this.#arcPrevious.push(
      previous ? sum(members.map((member) => previous.get(fleet.engines[member]!.id) ?? 0)) : 0,
    );
    this.#arcMin.push(bound?.min ?? 0);
    this.#arcMax.push(bound?.max ?? 1);
  }

  /**
   * Follow-up rate x turn gap x seconds to compute the cached tokens anew, divided by the horizon; the seconds are the
   * mean over the engines that could take the flow.
   */
  #moveSeconds(mean: MeanRequest, reachable: readonly number[]): number {
    const columns = reachable.map((at) => this.#columns[at]!);
    const engines = sum(columns.map(({ members }) => members.length));
    const perToken = sum(
      columns.map(({ members, profile, latencyFactor }) => {
        const share = members.length / engines;
        return share * latencyFactor * profile.ttft.secondsPerUncachedPromptToken;
      }),
    );
    return Math.max(LEAST_MOVE_SECONDS, (mean.cachedTokenSeconds * perToken) / this.#horizon);
  }

  #idOf(column: Column): string {
    return this.#input.state.fleet.engines[column.members[0]!]!.id;
  }
}

interface RowNames {
  readonly frontendId: string;
  readonly poolId: string;
}

interface ClassesOfRow {
  readonly classes: readonly Demand[];
  readonly mean: MeanRequest;
}

function keyOf({ frontendId, poolId }: RowNames): string {
  return JSON.stringify([frontendId, poolId]);
}

function classesByRow(
  demands: readonly Demand[],
  servedRps: readonly number[] | undefined,
): ReadonlyMap<string, ClassesOfRow> {
  const indexed = demands.map((demand, at) => ({
    demand,
    rate: servedRps?.[at] ?? demand.requestsPerSecond,
  }));
  const rows = groupBy(indexed, ({ demand }) => keyOf(demand));
  return new Map(
    [...rows].map(([key, entries]) => {
      const classes = entries.map(({ demand }) => demand);
      return [
        key,
        {
          classes,
          mean: meanMix(
            classes,
            entries.map(({ rate }) => rate),
          ),
        },
      ];
    }),
  );
}

function meansByPool({ state }: OptimizerInput): ReadonlyMap<string, MeanRequest> {
  const demands = groupBy(state.demands, ({ poolId }) => poolId);
  return new Map(state.fleet.pools.map(({ id }) => [id, meanMix(demands.get(id) ?? [])]));
}
