import { groupBy, mean, sum } from '../../collections.js';
import { effectiveCapacity, LEAST_CAPACITY } from '../../fleet/fleet-state.js';
import type { Profile, TokenMix } from '../../profiles/profile.js';
import { workSeconds } from '../../profiles/profile.js';
import type { Matrix, ReferenceMix, SolverEngine, SolverInput } from '../solution.js';
import { Congestion } from './congestion.js';
import { meanOfPools, type PooledDemand, pooledDemand, poolOf } from './demand.js';

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
  const inForce = weightsByEngine(input.previousWeights);
  const columns: Column[] = [];
  for (const members of kindsOf(input, usableEngines(input))) {
    const mix = mixes.of(members);
    if (isProportional(input, inForce, members)) columns.push(buildColumn(input, members, mix));
    else for (const member of members) columns.push(buildColumn(input, [member], mix));
  }
  return columns.sort(byFirstMember);
}

function byFirstMember(a: Column, b: Column): number {
  return a.members[0]! - b.members[0]!;
}

function buildColumn(input: SolverInput, members: readonly number[], mix: ReferenceMix): Column {
  const { state, policy } = input;
  const capacities = capacitiesOf(state, members);
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

function capacitiesOf({ engines }: SolverInput['state'], members: readonly number[]): number[] {
  const capacities: number[] = [];
  for (const member of members) capacities.push(effectiveCapacity(engines[member]!));
  return capacities;
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
  const keys = new EngineKeys(input);
  const byKey = new Map<string, number[][]>();
  const kinds: number[][] = [];
  for (const engine of engines) {
    const key = keys.of(engine);
    let groups = byKey.get(key);
    if (!groups) {
      groups = [];
      byKey.set(key, groups);
    }
    const group = groupOf(input, groups, engine);
    if (group) {
      group.push(engine);
      continue;
    }
    const begun = [engine];
    groups.push(begun);
    kinds.push(begun);
  }
  return kinds;
}

function groupOf(input: SolverInput, groups: readonly number[][], engine: number): number[] | undefined {
  for (const group of groups) if (isSameWay(input, group[0]!, engine)) return group;
  return undefined;
}

/** Strings, different for engines that must be told apart, but for those that only the network does. */
class EngineKeys {
  readonly #state: SolverInput['state'];
  readonly #bounded = new Set<string>();
  readonly #pools: readonly (readonly number[])[];
  /** By engine: the sum of the ways to it. */
  readonly #ways: Float64Array;

  constructor({ state, policy }: SolverInput) {
    this.#state = state;
    for (const { engineId } of policy.bounds) this.#bounded.add(engineId);
    this.#pools = poolsByEngine(state);
    const ways = new Float64Array(state.fleet.engines.length);
    for (const row of state.fleet.networkSeconds)
      for (let at = 0; at < ways.length; at++) ways[at]! += row[at]!;
    this.#ways = ways;
  }

  of(engine: number): string {
    const { id, profile } = this.#state.fleet.engines[engine]!;
    if (this.#bounded.has(id)) return JSON.stringify([id]);
    const { latencyFactor } = this.#state.engines[engine]!;
    return JSON.stringify([profile, this.#pools[engine], latencyFactor, this.#ways[engine]]);
  }
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

/** Whether every row in force splits its traffic among some engines by their capacity. */
function isProportional(
  { state }: SolverInput,
  inForce: ReadonlyMap<string, ReadonlyMap<number, number>>,
  members: readonly number[],
): boolean {
  if (members.length === 1) return true;
  const weights: ReadonlyMap<number, number>[] = [];
  for (const member of members) weights.push(inForce.get(state.fleet.engines[member]!.id) ?? NO_WEIGHTS);
  return areProportional(weights, capacitiesOf(state, members));
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
    const byPool = groupBy(demands, poolOf);
    const demandOf: PooledDemand[] = [];
    for (const { id } of fleet.pools) demandOf.push(pooledDemand(byPool.get(id) ?? []));
    this.#demandOf = demandOf;
    this.#poolsOf = poolsByEngine(input.state);
  }

  of(members: readonly number[]): ReferenceMix {
    const { fleet } = this.#input.state;
    const measured: ReferenceMix[] = [];
    for (const member of members) {
      const mix = this.#input.referenceMix.get(fleet.engines[member]!.id);
      if (mix && mix.requestsPerWorkSecond > 0) measured.push(mix);
    }
    if (measured.length === 0) {
      const profile = this.#input.profiles.get(fleet.engines[members[0]!]!.profile)!;
      const pools: PooledDemand[] = [];
      for (const pool of this.#poolsOf[members[0]!]!) pools.push(this.#demandOf[pool]!);
      return mixOf(profile, meanOfPools(pools));
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
