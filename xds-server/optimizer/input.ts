import { byId, compare } from '../collections.js';
import { WardropError } from '../errors.js';
import { type Demand, MOST_HEALTH } from '../fleet/fleet-state.js';
import type { Policy } from '../fleet/policy.js';
import type { Profile } from '../profiles/profile.js';
import type {
  Matrix,
  ReferenceMix,
  RowWeights,
  SolverEngine,
  SolverFleet,
  SolverInput,
  SolverState,
} from './solution.js';

/** Largest values that are believed; beyond them a number is bounded and a warning says so. */
const MOST = {
  requestsPerSecond: 1e9,
  tokens: 1e7,
  seconds: 1e6,
  latencyFactor: 10,
  mix: 1e9,
};

export interface CheckedInput {
  /** The same input with every list sorted by id and every number finite and in range. */
  readonly input: SolverInput;
  readonly warnings: readonly string[];
}

/**
 * Refuses what contradicts itself or is no number (unknown is not zero, so nothing can be assumed for it), bounds what is
 * merely too large, and sorts all lists, so that their order never reaches the solution.
 * @throws WardropError WARDROP_INPUT_INVALID or WARDROP_PROFILE_INVALID with the place of the fault.
 */
export function checkInput(input: SolverInput): CheckedInput {
  const limits = new Limits();
  const state = checkState(input.state, limits);
  checkPolicy(input.policy);
  checkProfiles(state.fleet, input.profiles);
  return {
    input: {
      state,
      profiles: input.profiles,
      policy: input.policy,
      previousWeights: checkWeights(input.previousWeights),
      referenceMix: checkMixes(input.referenceMix, limits),
      isTrial: input.isTrial ?? false,
    },
    warnings: limits.warnings,
  };
}

/** The input as a solve takes it: what is merely too large is bounded, lists are sorted. */
export function believedInput(input: SolverInput): SolverInput {
  return checkInput(input).input;
}

/** Bounds what is merely too large, and keeps the warnings. */
class Limits {
  readonly warnings: string[] = [];

  /** @param what the number is of `where` */
  bound(where: string, what: string, value: number, most: number): number {
    if (value >= 0 && value <= most) return value;
    nonNegative(`${where}: ${what}`, value);
    this.warnings.push(`${where}: ${what} is ${value}; ${most} is used, the most that is believed`);
    return most;
  }
}

function checkState(state: SolverState, limits: Limits): SolverState {
  const { fleet } = state;
  if (state.engines.length !== fleet.engines.length) {
    refuse(`${state.engines.length} engine states were given for ${fleet.engines.length} engines`);
  }
  checkFleet(fleet);
  const order = orderOf(fleet.engines);
  const frontendOrder = orderOf(fleet.frontends);
  const engines: SolverFleet['engines'][number][] = [];
  const states: SolverEngine[] = [];
  for (const index of order) {
    const { id, profile } = fleet.engines[index]!;
    engines.push({ id, profile });
    states.push(checkEngineState(id, state.engines[index]!, limits));
  }
  const frontends: SolverFleet['frontends'][number][] = [];
  for (const index of frontendOrder) frontends.push({ id: fleet.frontends[index]!.id });
  return {
    fleet: {
      frontends,
      engines,
      pools: fleet.pools.map(sortedPool).sort(byId),
      networkSeconds: permuted(fleet.networkSeconds, frontendOrder, order),
      ...(fleet.egressDollarsPerRequest && {
        egressDollarsPerRequest: permuted(fleet.egressDollarsPerRequest, frontendOrder, order),
      }),
    },
    atMs: state.atMs,
    engines: states,
    demands: checkDemands(state.demands, fleet, limits),
    settledSeconds: nonNegative('settledSeconds', state.settledSeconds),
    ...(state.settledSecondsByPool && {
      settledSecondsByPool: Object.fromEntries(
        Object.entries(state.settledSecondsByPool).map(([id, seconds]) => [
          id,
          nonNegative(`settledSeconds of pool ${id}`, seconds),
        ]),
      ),
    }),
  };
}

function checkFleet(fleet: SolverFleet): void {
  unique('frontend', fleet.frontends);
  unique('engine', fleet.engines);
  unique('pool', fleet.pools);
  const known = new Set(fleet.engines.map(({ id }) => id));
  for (const pool of fleet.pools) {
    for (const id of pool.engineIds) {
      if (!known.has(id)) refuse(`pool ${pool.id} names engine ${id}, which the fleet does not have`);
    }
  }
  checkMatrix('networkSeconds', fleet.networkSeconds, fleet);
  if (fleet.egressDollarsPerRequest) {
    checkMatrix('egressDollarsPerRequest', fleet.egressDollarsPerRequest, fleet);
  }
}

function checkMatrix(name: string, matrix: Matrix, fleet: SolverFleet): void {
  if (matrix.length !== fleet.frontends.length) refuse(`${name} needs one row for each frontend`);
  for (let frontend = 0; frontend < matrix.length; frontend++) {
    const row = matrix[frontend]!;
    if (row.length !== fleet.engines.length) refuse(`${name}[${frontend}] needs one value for each engine`);
    for (let engine = 0; engine < row.length; engine++) {
      if (!(row[engine]! >= 0)) {
        refuse(`${name}[${frontend}][${engine}] is ${row[engine]}; it must be 0 or more`);
      }
    }
  }
}

function checkEngineState(id: string, state: SolverEngine, limits: Limits): SolverEngine {
  const where = `engine ${id}`;
  if (state.id !== id) refuse(`the state of ${where} is labelled ${state.id}`);
  return {
    id,
    replicas: state.replicas,
    health: limits.bound(where, 'health', state.health, MOST_HEALTH),
    ramp: limits.bound(where, 'ramp', state.ramp, 1),
    drain: limits.bound(where, 'drain', state.drain, 1),
    penalty: limits.bound(where, 'penalty', state.penalty, 1),
    latencyFactor: Math.max(1, limits.bound(where, 'latencyFactor', state.latencyFactor, MOST.latencyFactor)),
  };
}

function checkDemands(demands: readonly Demand[], fleet: SolverFleet, limits: Limits): readonly Demand[] {
  const frontends = new Set(fleet.frontends.map(({ id }) => id));
  const pools = new Set(fleet.pools.map(({ id }) => id));
  const seen = new Set<string>();
  const checked: Demand[] = [];
  for (const demand of demands) {
    const { frontendId, poolId, priority } = demand;
    const where = `demand of ${frontendId} for ${poolId} at priority ${priority}`;
    if (!frontends.has(frontendId)) refuse(`${where}: the fleet has no such frontend`);
    if (!pools.has(poolId)) refuse(`${where}: the fleet has no such pool`);
    if (!Number.isFinite(priority)) refuse(`${where}: the priority must be a number`);
    const key = JSON.stringify([frontendId, poolId, priority]);
    if (seen.has(key)) refuse(`${where} was given twice`);
    seen.add(key);
    checked.push(checkDemand(where, demand, limits));
  }
  return checked.sort(byPlaceAndPriority);
}

function byPlaceAndPriority(a: Demand, b: Demand): number {
  return (
    compare(a.frontendId, b.frontendId) || compare(a.poolId, b.poolId) || compare(b.priority, a.priority)
  );
}

function checkDemand(where: string, demand: Demand, limits: Limits): Demand {
  const promptTokens = limits.bound(where, 'promptTokens', demand.promptTokens, MOST.tokens);
  return {
    frontendId: demand.frontendId,
    poolId: demand.poolId,
    priority: demand.priority,
    requestsPerSecond: limits.bound(
      where,
      'requestsPerSecond',
      demand.requestsPerSecond,
      MOST.requestsPerSecond,
    ),
    promptTokens,
    uncachedPromptTokens: limits.bound(
      where,
      'uncachedPromptTokens',
      demand.uncachedPromptTokens,
      Math.max(1, promptTokens),
    ),
    outputTokens: Math.max(1, limits.bound(where, 'outputTokens', demand.outputTokens, MOST.tokens)),
    followUpShare: limits.bound(where, 'followUpShare', demand.followUpShare, 1),
    turnGapSeconds: limits.bound(where, 'turnGapSeconds', demand.turnGapSeconds, MOST.seconds),
    source: demand.source,
    ...(demand.isUnheard && { isUnheard: true }),
  };
}

function checkPolicy(policy: Policy): void {
  const { targetUtilization: target, maxUtilization: max } = policy;
  if (!(max > 0 && max <= 1)) refuse(`maxUtilization is ${max}; it must be above 0 and at most 1`);
  if (!(target > 0 && target <= 1))
    refuse(`targetUtilization is ${target}; it must be above 0 and at most 1`);
  nonNegative('egressSecondsPerDollar', policy.egressSecondsPerDollar);
  for (const { frontendId, poolId, engineId, min, max } of policy.bounds) {
    if (!(min >= 0 && min <= max && max <= 1)) {
      refuse(`bound of ${frontendId} and ${poolId} on ${engineId}: 0 <= min <= max <= 1 must hold`);
    }
  }
  for (const { poolId, priority, share } of policy.minShares) {
    if (!(share >= 0 && share <= 1)) {
      refuse(`minimum share of ${poolId} at priority ${priority} is ${share}; it must lie in 0..1`);
    }
  }
}

function checkProfiles({ engines }: SolverFleet, profiles: ReadonlyMap<string, Profile>): void {
  const used = new Set<Profile>();
  for (const { id, profile: name } of engines) {
    const profile = profiles.get(name);
    if (!profile)
      throw new WardropError('WARDROP_PROFILE_INVALID', `engine ${id}: there is no profile ${name}`);
    used.add(profile);
  }
  for (const profile of used) checkProfile(profile);
}

/** Throws unless the curves can be evaluated everywhere and every request costs some work. */
function checkProfile(profile: Profile): void {
  const { work, ttft, tbot, maxFittedRho } = profile;
  const values = Object.entries({ ...work, ...prefixed('ttft', ttft), ...prefixed('tbot', tbot) });
  for (const [name, value] of values) {
    if (!(Number.isFinite(value) && value >= 0)) {
      invalidProfile(profile, `${name} is ${value}; it must be 0 or more`);
    }
  }
  if (!(tbot.kappa < 1)) invalidProfile(profile, `kappa is ${tbot.kappa}; it must be below 1`);
  if (!(maxFittedRho > 0 && maxFittedRho <= 1)) {
    invalidProfile(profile, `maxFittedRho is ${maxFittedRho}; it must be above 0 and at most 1`);
  }
  if (!(work.secondsPerRequest + work.secondsPerOutputToken > 0)) {
    invalidProfile(profile, 'a request without prompt would cost no work');
  }
}

function prefixed(prefix: string, values: object): Record<string, number> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [`${prefix}.${name}`, value]));
}

function invalidProfile(profile: Profile, fault: string): never {
  throw new WardropError('WARDROP_PROFILE_INVALID', `profile ${profile.id}: ${fault}`);
}

function checkWeights(rows: readonly RowWeights[]): readonly RowWeights[] {
  for (const { frontendId, poolId, weights } of rows) {
    for (const [engineId, weight] of weights) {
      if (!(weight >= 0 && weight <= 1)) {
        refuse(`previous weight of ${engineId} for ${frontendId} and ${poolId} is ${weight}, not in 0..1`);
      }
    }
  }
  return rows;
}

function checkMixes(
  mixes: ReadonlyMap<string, ReferenceMix>,
  limits: Limits,
): ReadonlyMap<string, ReferenceMix> {
  return new Map(
    [...mixes]
      .sort(([a], [b]) => compare(a, b))
      .map(([id, mix]) => [
        id,
        {
          requestsPerWorkSecond: limits.bound(
            `reference mix of ${id}`,
            'requests',
            mix.requestsPerWorkSecond,
            MOST.mix,
          ),
          outputTokensPerWorkSecond: limits.bound(
            `reference mix of ${id}`,
            'output tokens',
            mix.outputTokensPerWorkSecond,
            MOST.mix,
          ),
        },
      ]),
  );
}

function sortedPool({ id, engineIds }: SolverFleet['pools'][number]): SolverFleet['pools'][number] {
  return { id, engineIds: [...engineIds].sort(compare) };
}

function permuted(matrix: Matrix, rows: Int32Array, columns: Int32Array): Matrix {
  const isMoved = isPermuted(columns);
  const permutedRows: ArrayLike<number>[] = [];
  for (const index of rows) {
    const row = matrix[index]!;
    permutedRows.push(isMoved ? pick(row, columns) : row);
  }
  return permutedRows;
}

function isPermuted(order: Int32Array): boolean {
  for (let at = 0; at < order.length; at++) if (order[at] !== at) return true;
  return false;
}

function pick(values: ArrayLike<number>, order: Int32Array): Float64Array {
  const picked = new Float64Array(order.length);
  for (let at = 0; at < order.length; at++) picked[at] = values[order[at]!]!;
  return picked;
}

interface Named {
  readonly id: string;
}

/** Indices in the order of ids. */
function orderOf(items: readonly Named[]): Int32Array {
  const indices = new Map<string, number>();
  const ids: string[] = [];
  for (const { id } of items) {
    indices.set(id, ids.length);
    ids.push(id);
  }
  const order = new Int32Array(ids.length);
  ids.sort(compare);
  for (let at = 0; at < ids.length; at++) order[at] = indices.get(ids[at]!)!;
  return order;
}

function unique(kind: string, items: readonly { readonly id: string }[]): void {
  const seen = new Set<string>();
  for (const { id } of items) {
    if (seen.has(id)) refuse(`there are two of ${kind} ${id}`);
    seen.add(id);
  }
}

function nonNegative(where: string, value: number): number {
  if (!(value >= 0)) refuse(`${where} is ${value}; it must be 0 or more`);
  return value;
}

function refuse(fault: string): never {
  throw new WardropError('WARDROP_INPUT_INVALID', fault);
}
