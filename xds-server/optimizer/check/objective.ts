import type { Profile } from '../../profiles/profile.js';
import type { ReferenceMix, RowWeights, SolutionRow, SolverEngine, SolverInput } from '../solution.js';
import { capacityOf, type Flows, keyOf } from './flows.js';
import { ReferenceMixes } from './reference-mixes.js';
import { total } from './sums.js';

const SOFT_LIMIT_SECONDS = 10;
const EVEN_LOAD_SECONDS = 2e-5;
const LEAST_MOVE_SECONDS = 1e-6;
const LAST_RHO = 0.98;

/** Objective of flows in user-seconds per second. */
export function objectiveOf(flows: Flows): number {
  return new Objective(flows).seconds();
}

class Objective {
  readonly #flows: Flows;
  readonly #input: SolverInput;
  readonly #previous: ReadonlyMap<string, RowWeights>;
  readonly #mixes: ReferenceMixes;

  constructor(flows: Flows) {
    this.#flows = flows;
    this.#input = flows.input;
    this.#previous = new Map(flows.input.previousWeights.map((row) => [keyOf(row), row]));
    this.#mixes = new ReferenceMixes(flows.input);
  }

  seconds(): number {
    const { fleet, engines } = this.#input.state;
    const rows = this.#flows.solution.rows.map((row) => this.#rowCost(row) + this.#moveCost(row));
    const queues = engines.map((state, at) => {
      const capacity = capacityOf(state);
      const profile = this.#flows.profileOf(fleet.engines[at]!.id);
      if (!(capacity > 0) || !profile) return 0;
      const rho = this.#flows.loadOf(state.id) / capacity;
      return capacity * this.#congestion(profile, state, this.#mixes.of(at, profile), rho);
    });
    return total(rows) + total(queues);
  }

  /** Seconds that all requests of a row take without load. */
  #rowCost(row: SolutionRow): number {
    const { fleet, engines } = this.#input.state;
    const frontend = this.#flows.frontendIndex.get(row.frontendId)!;
    const { mean } = this.#flows.servedOf(row);
    return total(
      row.flows.map(({ engineId, rps }) => {
        const at = this.#flows.engineIndex.get(engineId)!;
        const { ttft, tbot } = this.#flows.profileOf(engineId)!;
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
    const alive = this.#flows.enginesOf(row);
    const flows = new Map(row.flows.map(({ engineId, rps }) => [engineId, rps]));
    const served = total([...flows.values()]);
    const gone = total(
      alive.map(({ id }) => Math.max(0, (previous.weights.get(id) ?? 0) * served - (flows.get(id) ?? 0))),
    );
    const perToken = alive.map(
      ({ id, latencyFactor }) =>
        latencyFactor * this.#flows.profileOf(id)!.ttft.secondsPerUncachedPromptToken,
    );
    const meanPerToken = total(perToken) / Math.max(1, alive.length);
    const price =
      (this.#flows.servedOf(row).mean.cachedTokenSeconds * meanPerToken) / this.#horizon(row.poolId);
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
}
