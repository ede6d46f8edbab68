import { effectiveCapacity } from '../fleet/fleet-state.js';
import type { Profile, TokenMix } from '../profiles/profile.js';
import { workSeconds } from '../profiles/profile.js';
import { groupBy, sum } from './collections.js';
import { Congestion } from './congestion.js';
import { meanOfPools, type PooledDemand, pooledDemand } from './demand.js';
import type { Matrix, ReferenceMix, SolverEngine, SolverInput } from './solution.js';

/** Less than this of a replica is no capacity. */
const LEAST_CAPACITY = 1e-6;
/** Weights in force may be this far from the members' proportion and still count as proportional; they are quantised. */
const PROPORTION_TOLERANCE = 1e-8;

/** By row, of an engine that no row in force uses. */
const NO_WEIGHTS: ReadonlyMap<number, number> = new Map();

/** One engine, or several that are equal in every respect and filled evenly. */
export interface Column {
  /** Indices in `state.fleet.engines`, ordered by engine id. */
  readonly members: readonly number[];
  /** Effective capacity of each member, in replicas. */
  readonly capacities: readonly number[];
  /** Sum of `capacities`, above 0. */
  readonly capacity: number;
  readonly congestion: Congestion;
  readonly profile: Profile;
  /** 1..10, multiplies all latencies of the engine. */
  readonly latencyFactor: number;
  readonly mix: ReferenceMix;
}

/**
 * Engines with capacity as columns, in the order of their first members' ids. Engines equal in profile, penalty, pools,
 * network and egress form one column, unless an operator's bound singles one out or the weights in force are not in
 * proportion to capacity (evening them out would then move conversations, which has a cost to weigh).
 */
export function buildColumns(input: SolverInput): readonly Column[] {
  const mixes = new ReferenceMixes(input);
  const isProportional = proportionality(input);
  const columns: Column[] = [];
  for (const members of kindsOf(input, usableEngines(input))) {
    const mix = mixes.of(members);
    const groups = isProportional(members) ? [members] : members.map((member) => [member]);
    for (const group of groups) columns.push(buildColumn(input, group, mix));
  }
  return columns.sort((a, b) => a.members[0]! - b.members[0]!);
}

function buildColumn(input: SolverInput, members: readonly number[], mix: ReferenceMix): Column {
  const { state, policy } = input;
  const capacities = members.map((member) => effectiveCapacity(state.engines[member]!));
  const profile = input.profiles.get(state.fleet.engines[members[0]!]!.profile)!;
  const { latencyFactor } = state.engines[members[0]!]!;
  const limits = { target: policy.targetUtilization, max: policy.maxUtilization };
  return {
    members,
    capacities,
    capacity: sum(capacities),
    congestion: new Congestion(profile, mix, latencyFactor, limits),
    profile,
    latencyFactor,
    mix,
  };
}

/** Engines with any capacity to speak of. */
export function isUsable(engine: SolverEngine): boolean {
  return effectiveCapacity(engine) >= LEAST_CAPACITY;
}

function usableEngines({ state }: SolverInput): number[] {
  const usable: number[] = [];
  for (let at = 0; at < state.engines.length; at++) if (isUsable(state.engines[at]!)) usable.push(at);
  return usable;
}

/** Groups of engines that the optimizer need not tell apart. */
function kindsOf(input: SolverInput, engines: readonly number[]): number[][] {
  const keyOf = engineKeys(input);
  const kinds: number[][] = [];
  for (const alike of groupBy(engines, keyOf).values()) {
    const groups: number[][] = [];
    for (const engine of alike) {
      const group = groups.find(([first]) => isSameWay(input, first!, engine));
      if (group) group.push(engine);
      else groups.push([engine]);
    }
    kinds.push(...groups);
  }
  return kinds;
}

/** A string by engine index, different for engines that must be told apart, but for those that only the network does. */
function engineKeys({ state, policy }: SolverInput): (engine: number) => string {
  const { fleet } = state;
  const bounded = new Set(policy.bounds.map(({ engineId }) => engineId));
  const pools = poolsByEngine(state);
  const ways = new Float64Array(fleet.engines.length);
  for (const row of fleet.networkSeconds) for (let at = 0; at < ways.length; at++) ways[at]! += row[at]!;
  return (engine) => {
    const { id, profile } = fleet.engines[engine]!;
    if (bounded.has(id)) return JSON.stringify([id]);
    return JSON.stringify([profile, pools[engine], state.engines[engine]!.latencyFactor, ways[engine]]);
  };
}

/** Whether two engines are as far from every frontend as each other, in seconds and in dollars. */
function isSameWay({ state }: SolverInput, a: number, b: number): boolean {
  const { networkSeconds, egressDollarsPerRequest } = state.fleet;
  return isSameColumn(networkSeconds, a, b) && isSameColumn(egressDollarsPerRequest ?? [], a, b);
}

function isSameColumn(matrix: Matrix, a: number, b: number): boolean {
  for (const row of matrix) if (row[a] !== row[b]) return false;
  return true;
}

/** Indices of the pools of each engine, ascending. */
function poolsByEngine({ fleet }: SolverInput['state']): readonly (readonly number[])[] {
  const pools = new Map<string, number[]>();
  for (const { id } of fleet.engines) pools.set(id, []);
  for (let at = 0; at < fleet.pools.length; at++) {
    for (const id of fleet.pools[at]!.engineIds) pools.get(id)!.push(at);
  }
  return [...pools.values()];
}

/** Tells whether every row in force splits its traffic among some engines by their capacity. */
function proportionality({ state, previousWeights }: SolverInput): (members: readonly number[]) => boolean {
  const inForce = weightsByEngine(previousWeights);
  return (members) => {
    if (members.length === 1) return true;
    const weights = members.map((member) => inForce.get(state.fleet.engines[member]!.id) ?? NO_WEIGHTS);
    return areProportional(
      weights,
      members.map((member) => effectiveCapacity(state.engines[member]!)),
    );
  };
}

/** Weights in force by engine and row. */
function weightsByEngine(
  previousWeights: SolverInput['previousWeights'],
): ReadonlyMap<string, ReadonlyMap<number, number>> {
  const inForce = new Map<string, Map<number, number>>();
  for (let row = 0; row < previousWeights.length; row++) {
    for (const [engineId, weight] of previousWeights[row]!.weights) {
      const rows = inForce.get(engineId);
      if (rows) rows.set(row, weight);
      else inForce.set(engineId, new Map([[row, weight]]));
    }
  }
  return inForce;
}

/** @param weights of some engines by row, @param capacities of the same engines */
function areProportional(
  weights: readonly ReadonlyMap<number, number>[],
  capacities: readonly number[],
): boolean {
  const capacity = sum(capacities);
  for (const rows of weights) {
    for (const row of rows.keys()) {
      let total = 0;
      for (const each of weights) total += each.get(row) ?? 0;
      for (let at = 0; at < weights.length; at++) {
        const even = (total * capacities[at]!) / capacity;
        if (!(Math.abs((weights[at]!.get(row) ?? 0) - even) <= PROPORTION_TOLERANCE)) return false;
      }
    }
  }
  return true;
}

/** Mean of the measured mixes of equal engines; without any, what the demand that they may serve would make. */
class ReferenceMixes {
  readonly #input: SolverInput;
  readonly #poolsOf: readonly (readonly number[])[];
  readonly #demandOf: readonly PooledDemand[];

  constructor(input: SolverInput) {
    const { fleet, demands } = input.state;
    this.#input = input;
    const byPool = groupBy(demands, ({ poolId }) => poolId);
    this.#demandOf = fleet.pools.map(({ id }) => pooledDemand(byPool.get(id) ?? []));
    this.#poolsOf = poolsByEngine(input.state);
  }

  of(members: readonly number[]): ReferenceMix {
    const { fleet } = this.#input.state;
    const measured = members.flatMap((member) => {
      const mix = this.#input.referenceMix.get(fleet.engines[member]!.id);
      return mix && mix.requestsPerWorkSecond > 0 ? [mix] : [];
    });
    if (measured.length === 0) {
      const profile = this.#input.profiles.get(fleet.engines[members[0]!]!.profile)!;
      return mixOf(profile, meanOfPools(this.#poolsOf[members[0]!]!.map((pool) => this.#demandOf[pool]!)));
    }
    return {
      requestsPerWorkSecond: mean(measured.map((mix) => mix.requestsPerWorkSecond)),
      outputTokensPerWorkSecond: mean(measured.map((mix) => mix.outputTokensPerWorkSecond)),
    };
  }
}

function mixOf(profile: Profile, tokens: TokenMix): ReferenceMix {
  const requestsPerWorkSecond = 1 / workSeconds(profile, tokens);
  return {
    requestsPerWorkSecond,
    outputTokensPerWorkSecond: requestsPerWorkSecond * tokens.outputTokens,
  };
}

function mean(values: readonly number[]): number {
  return sum(values) / values.length;
}
