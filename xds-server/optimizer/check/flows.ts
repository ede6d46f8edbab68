import type { Demand } from '../../fleet/fleet-state.js';
import type { RowName } from '../../fleet/row-key.js';
import type { Profile } from '../../profiles/profile.js';
import type { Solution, SolutionRow, SolverEngine, SolverInput } from '../solution.js';
import { grouped, total } from './sums.js';

const LEAST_CAPACITY = 1e-6;

/** What the flows of a solution mean with its input: what rows serve, by whom, and how much engines get of it. */
export class Flows {
  readonly input: SolverInput;
  readonly solution: Solution;
  /** Places in the lists of the fleet, by id. */
  readonly engineIndex: ReadonlyMap<string, number>;
  readonly frontendIndex: ReadonlyMap<string, number>;
  /** Engines that a pool names. */
  readonly eligible: ReadonlyMap<string, ReadonlySet<string>>;
  /** Replica-seconds of work per second by engine id. */
  readonly #loads = new Map<string, number>();
  /** By row. */
  readonly #demands: ReadonlyMap<string, readonly Demand[]>;
  readonly #served = new Map<SolutionRow, ServedRow>();

  constructor(input: SolverInput, solution: Solution) {
    const { fleet, demands } = input.state;
    this.input = input;
    this.solution = solution;
    this.engineIndex = new Map(fleet.engines.map(({ id }, at) => [id, at]));
    this.frontendIndex = new Map(fleet.frontends.map(({ id }, at) => [id, at]));
    this.eligible = new Map(fleet.pools.map(({ id, engineIds }) => [id, new Set(engineIds)]));
    this.#demands = grouped(demands.map((demand) => [keyOf(demand), demand] as const));
    for (const row of solution.rows)
      for (const { engineId, rps } of row.flows) this.#addLoad(row, engineId, rps);
  }

  /** Replica-seconds of work per second that an engine gets. */
  loadOf(engineId: string): number {
    return this.#loads.get(engineId) ?? 0;
  }

  /** What a row serves. */
  servedOf(row: SolutionRow): ServedRow {
    const known = this.#served.get(row);
    if (known) return known;
    const demands = this.#demands.get(keyOf(row)) ?? [];
    const rates = demands.map(({ priority, requestsPerSecond }) => {
      const shed = row.shed.find((each) => each.priority === priority)?.fraction ?? 0;
      return requestsPerSecond * (1 - shed);
    });
    const found = { demands, rates, all: total(rates), mean: meanRequest(demands, rates) };
    this.#served.set(row, found);
    return found;
  }

  /** Engines that may and can serve a row. */
  enginesOf({ frontendId, poolId }: SolutionRow): SolverEngine[] {
    const { fleet, engines } = this.input.state;
    const network = fleet.networkSeconds[this.frontendIndex.get(frontendId) ?? -1] ?? [];
    const usable: SolverEngine[] = [];
    for (const id of this.eligible.get(poolId) ?? []) {
      const at = this.engineIndex.get(id)!;
      if (capacityOf(engines[at]) > 0 && Number.isFinite(network[at])) usable.push(engines[at]!);
    }
    return usable;
  }

  /** Requests of this kind per second that these engines could serve. */
  mostRequests(engineIds: readonly string[], request: MeanRequest): number {
    return total(
      engineIds.map((id) => {
        const capacity = capacityOf(this.input.state.engines[this.engineIndex.get(id)!]);
        return capacity > 0 ? capacity / workOf(this.profileOf(id)!, request) : 0;
      }),
    );
  }

  profileOf(engineId: string): Profile | undefined {
    const at = this.engineIndex.get(engineId);
    return at === undefined
      ? undefined
      : this.input.profiles.get(this.input.state.fleet.engines[at]!.profile);
  }

  #addLoad(row: SolutionRow, engineId: string, rps: number): void {
    const profile = this.profileOf(engineId);
    if (!profile) return;
    const { demands, rates, all } = this.servedOf(row);
    const work = total(demands.map((demand, at) => (rates[at]! / all) * workOf(profile, demand)));
    this.#loads.set(engineId, (this.#loads.get(engineId) ?? 0) + rps * work);
  }
}

export interface ServedRow {
  readonly demands: readonly Demand[];
  /** Served requests per second by demand. */
  readonly rates: readonly number[];
  /** Their sum. */
  readonly all: number;
  readonly mean: MeanRequest;
}

export interface MeanRequest {
  readonly uncachedPromptTokens: number;
  readonly outputTokens: number;
  /** Tokens in caches per follow-up, times the gap between turns. */
  readonly cachedTokenSeconds: number;
}

/** All requests of some demands, at these rates, as one. */
export function meanRequest(demands: readonly Demand[], rates: readonly number[]): MeanRequest {
  if (demands.length === 0) return { uncachedPromptTokens: 0, outputTokens: 1, cachedTokenSeconds: 0 };
  const all = total(rates);
  const average = (value: (demand: Demand) => number): number =>
    total(demands.map((demand, at) => value(demand) * (all > 0 ? rates[at]! / all : 1 / demands.length)));
  return {
    uncachedPromptTokens: average((demand) => demand.uncachedPromptTokens),
    outputTokens: average((demand) => Math.max(1, demand.outputTokens)),
    cachedTokenSeconds: average(({ followUpShare, promptTokens, uncachedPromptTokens, turnGapSeconds }) =>
      followUpShare > 0 ? Math.max(0, promptTokens - uncachedPromptTokens) * turnGapSeconds : 0,
    ),
  };
}

export function workOf(
  { work }: Profile,
  { uncachedPromptTokens, outputTokens }: Pick<Demand, 'uncachedPromptTokens' | 'outputTokens'>,
): number {
  return (
    work.secondsPerRequest +
    work.secondsPerUncachedPromptToken * uncachedPromptTokens +
    work.secondsPerOutputToken * Math.max(1, outputTokens)
  );
}

export function capacityOf(state: SolverEngine | undefined): number {
  if (!state) return 0;
  const ready = state.replicas.filter((replica) => replica.ready).length;
  const capacity = ready * state.health * state.ramp * state.drain * (1 - state.penalty);
  return capacity >= LEAST_CAPACITY ? capacity : 0;
}

export function keyOf({ frontendId, poolId }: RowName): string {
  return `${frontendId} ${poolId}`;
}
