import type { Demand } from '../fleet/fleet-state.js';
import type { RowName } from '../fleet/row-key.js';
import type { Profile } from '../profiles/profile.js';
import type {
  ReferenceMix,
  RowWeights,
  Solution,
  SolutionRow,
  SolverEngine,
  SolverInput,
} from './solution.js';

/**
 * Checks a solution from its own numbers and the input, with code of its own: nothing here is shared with the code that
 * solves, so that one mistake is not made twice. The formulas are those of docs/optimizer.md, written down again.
 */

/** Relative error of sums of flows and loads that rounding and shared classes explain. */
const TOLERANCE = 1e-5;
/** Most that the solver adds to the seconds of a request, to break ties between equal engines. */
const TIE_SECONDS = 5e-8;
/** Shed fractions up to this are the margin that is left at the hard limit. */
const LEAST_SHED = 1e-4;
/** An engine this near its hard limit counts as full where something is shed. */
const FULL = 1 - 1e-3;

const SOFT_LIMIT_SECONDS = 10;
const EVEN_LOAD_SECONDS = 2e-5;
const LEAST_MOVE_SECONDS = 1e-6;
const LAST_RHO = 0.98;
const LEAST_CAPACITY = 1e-6;

/** What is wrong with a solution; empty when it may be used. Each entry says where, what was found and what is right. */
export function checkSolution(input: SolverInput, solution: Solution): string[] {
  return new SolutionCheck(input, solution).run();
}

/** Objective of a solution's flows in user-seconds per second, computed anew. */
export function recomputedObjective(input: SolverInput, solution: Solution): number {
  const check = new SolutionCheck(input, solution);
  check.run();
  return check.objective();
}

class SolutionCheck {
  readonly #input: SolverInput;
  readonly #solution: Solution;
  readonly #faults: string[] = [];
  /** Replica-seconds of work per second by engine id. */
  readonly #loads = new Map<string, number>();
  readonly #engineIndex: ReadonlyMap<string, number>;
  readonly #frontendIndex: ReadonlyMap<string, number>;
  /** Engines that a pool names. */
  readonly #eligible: ReadonlyMap<string, ReadonlySet<string>>;
  /** Ids of the pools that name an engine. */
  readonly #poolsOf: ReadonlyMap<string, readonly string[]>;
  /** By row. */
  readonly #demands: ReadonlyMap<string, readonly Demand[]>;
  readonly #previous: ReadonlyMap<string, RowWeights>;
  readonly #requests = new Map<SolutionRow, ServedRow>();
  /** Mixes by what makes engines equal. */
  readonly #mixes = new Map<string, ReferenceMix>();
  readonly #measured: ReadonlyMap<string, readonly ReferenceMix[]>;
  readonly #bounded: ReadonlySet<string>;

  constructor(input: SolverInput, solution: Solution) {
    const { fleet, demands } = input.state;
    this.#input = input;
    this.#solution = solution;
    this.#engineIndex = new Map(fleet.engines.map(({ id }, at) => [id, at]));
    this.#frontendIndex = new Map(fleet.frontends.map(({ id }, at) => [id, at]));
    this.#eligible = new Map(fleet.pools.map(({ id, engineIds }) => [id, new Set(engineIds)]));
    const poolsOf = fleet.pools.flatMap(({ id, engineIds }) =>
      engineIds.map((engine) => [engine, id] as const),
    );
    this.#poolsOf = grouped(poolsOf);
    this.#demands = grouped(demands.map((demand) => [keyOf(demand), demand] as const));
    this.#previous = new Map(input.previousWeights.map((row) => [keyOf(row), row]));
    this.#bounded = new Set(input.policy.bounds.map(({ engineId }) => engineId));
    this.#measured = this.#measuredMixes();
  }

  run(): string[] {
    this.#checkRowSet();
    for (const row of this.#solution.rows) this.#checkRow(row);
    this.#checkEngines();
    for (const row of this.#solution.rows) this.#checkShed(row);
    // Costs of flows that cannot be are not defined.
    if (this.#faults.length === 0) this.#checkObjective();
    return this.#faults;
  }

  #fault(message: string): void {
    this.#faults.push(message);
  }

  #checkRowSet(): void {
    const { frontends, pools } = this.#input.state.fleet;
    const expected = frontends
      .flatMap((frontend) => pools.map((pool) => `${frontend.id} and ${pool.id}`))
      .sort();
    const found = this.#solution.rows.map(nameOf).sort();
    if (expected.join('\n') !== found.join('\n')) {
      this.#fault(`the rows are ${found.join(', ')} instead of ${expected.join(', ')}`);
    }
  }

  #checkRow(row: SolutionRow): void {
    const where = nameOf(row);
    const { demands, all } = this.#servedOf(row);
    const offered = total(demands.map(({ requestsPerSecond }) => requestsPerSecond));
    if (!near(row.demandRps, offered))
      this.#fault(`${where}: demand is ${row.demandRps} instead of ${offered}`);
    const flows = total(row.flows.map(({ rps }) => rps));
    if (!near(flows, all)) this.#fault(`${where}: flows add up to ${flows} instead of ${all}`);
    for (const { engineId, rps } of row.flows) {
      if (!(rps > 0)) this.#fault(`${where}: the flow to ${engineId} is ${rps}`);
      this.#addLoad(row, engineId, rps);
    }
    this.#checkShares(where, row.weights);
    for (const { engineId } of [...row.weights, ...row.flows]) this.#checkEligible(row, engineId);
    this.#checkBounds(row);
    for (const { ownerId, shares } of row.backups) {
      this.#checkShares(`${where}, backups of ${ownerId}`, shares);
      for (const { engineId } of shares) this.#checkEligible(row, engineId);
      if (shares.some(({ engineId }) => engineId === ownerId))
        this.#fault(`${where}: ${ownerId} backs itself up`);
    }
  }

  #checkShares(
    where: string,
    shares: readonly { readonly engineId: string; readonly weight: number }[],
  ): void {
    const wrong = shares.find(({ weight }) => !(weight > 0 && weight <= 1 + TOLERANCE));
    if (wrong) this.#fault(`${where}: the weight of ${wrong.engineId} is ${wrong.weight}`);
    const sum = total(shares.map(({ weight }) => weight));
    if (shares.length > 0 && !near(sum, 1)) this.#fault(`${where}: weights add up to ${sum} instead of 1`);
  }

  #checkEligible({ frontendId, poolId }: SolutionRow, engineId: string): void {
    const { fleet, engines } = this.#input.state;
    const at = this.#engineIndex.get(engineId) ?? -1;
    const frontend = this.#frontendIndex.get(frontendId) ?? -1;
    const may = this.#eligible.get(poolId)?.has(engineId) === true;
    const can = capacityOf(engines[at]) > 0 && Number.isFinite(fleet.networkSeconds[frontend]?.[at]);
    if (!may || !can)
      this.#fault(`${frontendId} and ${poolId}: ${engineId} ${may ? 'cannot' : 'may not'} serve them`);
  }

  /** Bounds that the solution claims to have applied must be the operator's, possibly loosened, and must hold. */
  #checkBounds(row: SolutionRow): void {
    for (const { engineId, min, max } of row.bounds) {
      const given = this.#input.policy.bounds.find(
        (bound) => bound.engineId === engineId && isOf(bound, row),
      );
      if (!given || min > given.min || max < given.max) {
        this.#fault(`${nameOf(row)}: nobody set the bound ${min}..${max} on ${engineId}`);
      }
      const weight = row.weights.find((each) => each.engineId === engineId)?.weight ?? 0;
      if (row.weights.length > 0 && (weight < min - TOLERANCE || weight > max + TOLERANCE)) {
        this.#fault(`${nameOf(row)}: the weight of ${engineId} is ${weight}, outside ${min}..${max}`);
      }
    }
  }

  #addLoad(row: SolutionRow, engineId: string, rps: number): void {
    const profile = this.#profileOf(engineId);
    if (!profile) {
      this.#fault(`engine ${engineId} has a flow but no profile`);
      return;
    }
    const { demands, rates, all } = this.#servedOf(row);
    const work = total(demands.map((demand, at) => (rates[at]! / all) * workOf(profile, demand)));
    this.#loads.set(engineId, (this.#loads.get(engineId) ?? 0) + rps * work);
  }

  #checkEngines(): void {
    const stated = new Map(this.#solution.engines.map((engine) => [engine.engineId, engine]));
    for (const state of this.#input.state.engines) {
      const entry = stated.get(state.id);
      const capacity = capacityOf(state);
      const load = this.#loads.get(state.id) ?? 0;
      if (!entry) {
        this.#fault(`engine ${state.id} is missing`);
        continue;
      }
      if (!near(entry.effectiveCapacity, capacity)) {
        this.#fault(`engine ${state.id}: capacity is ${entry.effectiveCapacity} instead of ${capacity}`);
      }
      const limit = capacity * this.#input.policy.maxUtilization;
      if (!(load <= limit * (1 + TOLERANCE))) {
        this.#fault(`engine ${state.id} gets ${load} replica-seconds per second, its hard limit is ${limit}`);
      }
      if (capacity > 0 && !near(entry.rho, load / capacity)) {
        this.#fault(`engine ${state.id}: utilisation is ${entry.rho} instead of ${load / capacity}`);
      }
      if (!(entry.congestionPriceSeconds >= 0 && entry.scarcityPriceSeconds >= 0)) {
        this.#fault(`engine ${state.id}: a price is below 0 or no number`);
      }
    }
  }

  /** Fractions lie in range, guaranteed shares are kept, and whoever sheds has no engine with room. */
  #checkShed(row: SolutionRow): void {
    const where = nameOf(row);
    for (const { priority, fraction } of row.shed) {
      if (!(fraction >= 0 && fraction <= 1)) this.#fault(`${where}: priority ${priority} sheds ${fraction}`);
    }
    const most = Math.max(0, ...row.shed.map(({ fraction }) => fraction));
    if (most <= LEAST_SHED || row.bounds.length > 0) return;
    const roomy = this.#enginesOf(row).find((state) => {
      const rho = (this.#loads.get(state.id) ?? 0) / capacityOf(state);
      return rho < FULL * this.#input.policy.maxUtilization;
    });
    if (roomy) this.#fault(`${where}: ${most} of a class is shed although ${roomy.id} is not full`);
  }

  #checkObjective(): void {
    const { objectiveSeconds, lowerBoundSeconds } = this.#solution;
    const found = this.objective();
    const ties = TIE_SECONDS * total(this.#solution.rows.flatMap(({ flows }) => flows.map(({ rps }) => rps)));
    if (!near(objectiveSeconds, found) && Math.abs(objectiveSeconds - found) > ties)
      this.#fault(`the objective is ${objectiveSeconds} instead of ${found}`);
    if (!(lowerBoundSeconds <= objectiveSeconds)) {
      this.#fault(`the lower bound ${lowerBoundSeconds} is above the objective ${objectiveSeconds}`);
    }
  }

  objective(): number {
    const { fleet, engines } = this.#input.state;
    const rows = this.#solution.rows.map((row) => this.#rowCost(row) + this.#moveCost(row));
    const queues = engines.map((state, at) => {
      const capacity = capacityOf(state);
      const profile = this.#profileOf(fleet.engines[at]!.id);
      if (!(capacity > 0) || !profile) return 0;
      const rho = (this.#loads.get(state.id) ?? 0) / capacity;
      return capacity * this.#congestion(profile, state, this.#mixOf(at, profile), rho);
    });
    return total(rows) + total(queues);
  }

  /** Seconds that all requests of a row take without load. */
  #rowCost(row: SolutionRow): number {
    const { fleet, engines } = this.#input.state;
    const frontend = this.#frontendIndex.get(row.frontendId)!;
    const { mean } = this.#servedOf(row);
    return total(
      row.flows.map(({ engineId, rps }) => {
        const at = this.#engineIndex.get(engineId)!;
        const { ttft, tbot } = this.#profileOf(engineId)!;
        const idle =
          ttft.baseSeconds +
          ttft.secondsPerUncachedPromptToken * mean.uncachedPromptTokens +
          (mean.outputTokens - 1) * tbot.baseSeconds;
        const egress =
          (fleet.egressDollarsPerRequest?.[frontend]?.[at] ?? 0) * this.#input.policy.egressSecondsPerDollar;
        return rps * (fleet.networkSeconds[frontend]![at]! + engines[at]!.latencyFactor * idle + egress);
      }),
    );
  }

  /** Flow that left engines which could have kept it, at the price of the cached tokens it leaves behind. */
  #moveCost(row: SolutionRow): number {
    const previous = this.#previous.get(keyOf(row));
    if (!previous) return 0;
    const alive = this.#enginesOf(row);
    const flows = new Map(row.flows.map(({ engineId, rps }) => [engineId, rps]));
    const served = total([...flows.values()]);
    const gone = total(
      alive.map(({ id }) => Math.max(0, (previous.weights.get(id) ?? 0) * served - (flows.get(id) ?? 0))),
    );
    const perToken = alive.map(
      ({ id, latencyFactor }) => latencyFactor * this.#profileOf(id)!.ttft.secondsPerUncachedPromptToken,
    );
    const meanPerToken = total(perToken) / Math.max(1, alive.length);
    const price = (this.#servedOf(row).mean.cachedTokenSeconds * meanPerToken) / this.#horizon(row.poolId);
    return gone * Math.max(LEAST_MOVE_SECONDS, price);
  }

  #horizon(poolId: string): number {
    const { settledSeconds, settledSecondsByPool } = this.#input.state;
    const held = settledSecondsByPool?.[poolId] ?? settledSeconds;
    const doublings = Math.floor(Math.log2(Math.max(1, held / 60)));
    return Math.min(1800, 60 * 2 ** doublings);
  }

  /** Cost of a utilisation per replica: `rho * delay(rho)` at the mix, along its tangent beyond the fitted range. */
  #congestion(profile: Profile, { latencyFactor }: SolverEngine, mix: ReferenceMix, rho: number): number {
    const { targetUtilization: target, maxUtilization: max } = this.#input.policy;
    const requests = mix.requestsPerWorkSecond;
    const later = Math.max(0, mix.outputTokensPerWorkSecond - requests);
    const delayed = (at: number): number => {
      const queue = requests * profile.ttft.queueSeconds * (at / (1 - at));
      const { baseSeconds, kappa } = profile.tbot;
      const crowd = later * (baseSeconds / (1 - kappa * at) - baseSeconds);
      return latencyFactor * at * (queue + crowd);
    };
    const end = Math.min(profile.maxFittedRho, LAST_RHO);
    const slope = (delayed(end + 1e-6) - delayed(end - 1e-6)) / 2e-6;
    const delay = rho <= end ? delayed(rho) : delayed(end) + slope * (rho - end);
    const above = Math.max(0, rho - target);
    const steep = max > target ? (SOFT_LIMIT_SECONDS * requests * above * above) / (2 * (max - target)) : 0;
    return delay + steep + 0.5 * EVEN_LOAD_SECONDS * requests * rho * rho;
  }

  /** Mean of what was measured on engines equal to this one; without any, the mix that its demand would make. */
  #mixOf(at: number, profile: Profile): ReferenceMix {
    const kind = this.#kindOf(at);
    const known = this.#mixes.get(kind);
    if (known) return known;
    const measured = this.#measured.get(kind);
    const mix = measured ? meanMix(measured) : this.#mixOfDemand(at, profile);
    this.#mixes.set(kind, mix);
    return mix;
  }

  #measuredMixes(): ReadonlyMap<string, readonly ReferenceMix[]> {
    const measured: (readonly [string, ReferenceMix])[] = [];
    if (this.#input.referenceMix.size === 0) return new Map();
    this.#input.state.engines.forEach((state, at) => {
      const mix = this.#input.referenceMix.get(state.id);
      if (mix && mix.requestsPerWorkSecond > 0 && capacityOf(state) > 0)
        measured.push([this.#kindOf(at), mix]);
    });
    return grouped(measured);
  }

  /** The mix that all demand which an engine may serve would make on it. */
  #mixOfDemand(at: number, profile: Profile): ReferenceMix {
    const { fleet, demands } = this.#input.state;
    const pools = new Set(this.#poolsOf.get(fleet.engines[at]!.id) ?? []);
    const eligible = demands.filter(({ poolId }) => pools.has(poolId));
    const request = meanOf(
      eligible,
      eligible.map(({ requestsPerSecond }) => requestsPerSecond),
    );
    const requests =
      1 /
      (profile.work.secondsPerRequest +
        profile.work.secondsPerUncachedPromptToken * request.uncachedPromptTokens +
        profile.work.secondsPerOutputToken * request.outputTokens);
    return {
      requestsPerWorkSecond: requests,
      outputTokensPerWorkSecond: requests * request.outputTokens,
    };
  }

  /**
   * Equal for engines between which the optimizer does not distinguish; without measured mixes, whose mean is over such
   * engines, for all that may serve the same.
   */
  #kindOf(at: number): string {
    const { fleet, engines } = this.#input.state;
    const { id, profile } = fleet.engines[at]!;
    const pools = [...(this.#poolsOf.get(id) ?? [])].sort();
    if (this.#input.referenceMix.size === 0) return JSON.stringify([profile, pools]);
    if (this.#bounded.has(id)) return id;
    const network = fleet.networkSeconds.map((row) => String(row[at]));
    const egress = (fleet.egressDollarsPerRequest ?? []).map((row) => row[at]);
    return JSON.stringify([profile, engines[at]!.latencyFactor, pools, network, egress]);
  }

  /** What a row serves. */
  #servedOf(row: SolutionRow): ServedRow {
    const known = this.#requests.get(row);
    if (known) return known;
    const demands = this.#demands.get(keyOf(row)) ?? [];
    const rates = demands.map(({ priority, requestsPerSecond }) => {
      const shed = row.shed.find((each) => each.priority === priority)?.fraction ?? 0;
      return requestsPerSecond * (1 - shed);
    });
    const found = { demands, rates, all: total(rates), mean: meanOf(demands, rates) };
    this.#requests.set(row, found);
    return found;
  }

  /** Engines that may and can serve a row. */
  #enginesOf({ frontendId, poolId }: SolutionRow): SolverEngine[] {
    const { fleet, engines } = this.#input.state;
    const network = fleet.networkSeconds[this.#frontendIndex.get(frontendId) ?? -1] ?? [];
    const usable: SolverEngine[] = [];
    for (const id of this.#eligible.get(poolId) ?? []) {
      const at = this.#engineIndex.get(id)!;
      if (capacityOf(engines[at]) > 0 && Number.isFinite(network[at])) usable.push(engines[at]!);
    }
    return usable;
  }

  #profileOf(engineId: string): Profile | undefined {
    const at = this.#engineIndex.get(engineId);
    return at === undefined
      ? undefined
      : this.#input.profiles.get(this.#input.state.fleet.engines[at]!.profile);
  }
}

interface ServedRow {
  readonly demands: readonly Demand[];
  /** Served requests per second by demand. */
  readonly rates: readonly number[];
  /** Their sum. */
  readonly all: number;
  readonly mean: MeanRequest;
}

interface MeanRequest {
  readonly uncachedPromptTokens: number;
  readonly outputTokens: number;
  /** Tokens in caches per follow-up, times the gap between turns. */
  readonly cachedTokenSeconds: number;
}

function meanOf(demands: readonly Demand[], rates: readonly number[]): MeanRequest {
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

function meanMix(mixes: readonly ReferenceMix[]): ReferenceMix {
  return {
    requestsPerWorkSecond: mean(mixes.map((mix) => mix.requestsPerWorkSecond)),
    outputTokensPerWorkSecond: mean(mixes.map((mix) => mix.outputTokensPerWorkSecond)),
  };
}

function workOf({ work }: Profile, { uncachedPromptTokens, outputTokens }: Demand): number {
  return (
    work.secondsPerRequest +
    work.secondsPerUncachedPromptToken * uncachedPromptTokens +
    work.secondsPerOutputToken * Math.max(1, outputTokens)
  );
}

function capacityOf(state: SolverEngine | undefined): number {
  if (!state) return 0;
  const ready = state.replicas.filter((replica) => replica.ready).length;
  const capacity = ready * state.health * state.ramp * state.drain * (1 - state.penalty);
  return capacity >= LEAST_CAPACITY ? capacity : 0;
}

function grouped<T>(entries: readonly (readonly [string, T])[]): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>();
  for (const [key, value] of entries) {
    const group = groups.get(key);
    if (group) group.push(value);
    else groups.set(key, [value]);
  }
  return groups;
}

function isOf(entry: RowName, row: RowName): boolean {
  return entry.frontendId === row.frontendId && entry.poolId === row.poolId;
}

function keyOf({ frontendId, poolId }: RowName): string {
  return `${frontendId} ${poolId}`;
}

function nameOf({ frontendId, poolId }: RowName): string {
  return `${frontendId} and ${poolId}`;
}

function near(found: number, right: number): boolean {
  return Math.abs(found - right) <= TOLERANCE * Math.max(Math.abs(found), Math.abs(right), 1e-6);
}

function mean(values: readonly number[]): number {
  return total(values) / values.length;
}

function total(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
