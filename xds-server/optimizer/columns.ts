import { type Demand, type EngineState, effectiveCapacity } from '../fleet/fleet-state.js';
import type { Profile, TokenMix } from '../profiles/profile.js';
import { workSeconds } from '../profiles/profile.js';
import { groupBy, sum } from './collections.js';
import { Congestion } from './congestion.js';
import { meanMix } from './demand.js';
import type { OptimizerInput, ReferenceMix } from './solution.js';

/** Less than this of a replica is no capacity. */
const LEAST_CAPACITY = 1e-6;
/** Weights in force may be this far from the members' proportion and still count as proportional; they are quantised. */
const PROPORTION_TOLERANCE = 1e-8;

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
export function buildColumns(input: OptimizerInput): readonly Column[] {
  const kinds = groupBy(usableEngines(input), engineKinds(input));
  const mixes = new ReferenceMixes(input);
  const columns: Column[] = [];
  for (const members of kinds.values()) {
    const mix = mixes.of(members);
    const groups = proportional(input, members) ? [members] : members.map((member) => [member]);
    for (const group of groups) columns.push(buildColumn(input, group, mix));
  }
  return columns.sort((a, b) => a.members[0]! - b.members[0]!);
}

function buildColumn(input: OptimizerInput, members: readonly number[], mix: ReferenceMix): Column {
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
export function isUsable(engine: EngineState): boolean {
  return effectiveCapacity(engine) >= LEAST_CAPACITY;
}

function usableEngines({ state }: OptimizerInput): number[] {
  return state.engines.flatMap((engine, index) => (isUsable(engine) ? [index] : []));
}

/** A string by engine index; equal strings for engines that the optimizer need not tell apart. */
function engineKinds({ state, policy }: OptimizerInput): (engine: number) => string {
  const { fleet } = state;
  const bounded = new Set(policy.bounds.map(({ engineId }) => engineId));
  const pools: number[][] = fleet.engines.map(() => []);
  const index = new Map(fleet.engines.map(({ id }, at) => [id, at]));
  fleet.pools.forEach((pool, at) => {
    for (const id of pool.engineIds) pools[index.get(id)!]!.push(at);
  });
  return (engine) => {
    const { id, profile } = fleet.engines[engine]!;
    if (bounded.has(id)) return JSON.stringify([id]);
    const numbers = Float64Array.from([
      state.engines[engine]!.latencyFactor,
      ...fleet.networkSeconds.map((row) => row[engine]!),
      ...(fleet.egressDollarsPerRequest ?? []).map((row) => row[engine]!),
    ]);
    return JSON.stringify([profile, pools[engine], Buffer.from(numbers.buffer).toString('latin1')]);
  };
}

/** Whether every row in force splits its traffic among these engines by their capacity. */
function proportional({ state, previousWeights }: OptimizerInput, members: readonly number[]): boolean {
  if (members.length === 1) return true;
  const ids = members.map((member) => state.fleet.engines[member]!.id);
  const capacities = members.map((member) => effectiveCapacity(state.engines[member]!));
  const capacity = sum(capacities);
  return previousWeights.every(({ weights }) => {
    const total = sum(ids.map((id) => weights.get(id) ?? 0));
    return ids.every(
      (id, at) =>
        Math.abs((weights.get(id) ?? 0) - (total * capacities[at]!) / capacity) <= PROPORTION_TOLERANCE,
    );
  });
}

/** Mean of the measured mixes of equal engines; without any, what the demand that they may serve would make. */
class ReferenceMixes {
  readonly #input: OptimizerInput;
  readonly #poolsOf: readonly (readonly string[])[];
  readonly #demandOf: ReadonlyMap<string, readonly Demand[]>;
  readonly #meanOf = new Map<string, TokenMix>();

  constructor(input: OptimizerInput) {
    const { fleet, demands } = input.state;
    this.#input = input;
    this.#demandOf = groupBy(demands, ({ poolId }) => poolId);
    const pools = new Map(fleet.engines.map(({ id }): [string, string[]] => [id, []]));
    for (const pool of fleet.pools) for (const id of pool.engineIds) pools.get(id)!.push(pool.id);
    this.#poolsOf = fleet.engines.map(({ id }) => pools.get(id)!);
  }

  of(members: readonly number[]): ReferenceMix {
    const { fleet } = this.#input.state;
    const measured = members.flatMap((member) => {
      const mix = this.#input.referenceMix.get(fleet.engines[member]!.id);
      return mix && mix.requestsPerWorkSecond > 0 ? [mix] : [];
    });
    if (measured.length === 0) {
      const profile = this.#input.profiles.get(fleet.engines[members[0]!]!.profile)!;
      return mixOf(profile, this.#eligibleMean(this.#poolsOf[members[0]!]!));
    }
    return {
      requestsPerWorkSecond: mean(measured.map((mix) => mix.requestsPerWorkSecond)),
      outputTokensPerWorkSecond: mean(measured.map((mix) => mix.outputTokensPerWorkSecond)),
    };
  }

  #eligibleMean(pools: readonly string[]): TokenMix {
    const key = JSON.stringify(pools);
    const known = this.#meanOf.get(key);
    if (known) return known;
    const found = meanMix(pools.flatMap((pool) => this.#demandOf.get(pool) ?? []));
    this.#meanOf.set(key, found);
    return found;
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
