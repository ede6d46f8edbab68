import type { Profile } from '../../profiles/profile.js';
import type { ReferenceMix, SolverInput } from '../solution.js';
import { capacityOf, meanRequest } from './flows.js';
import { grouped, meanOf } from './sums.js';

/** Requests and tokens per replica-second at which engines are congested. */
export class ReferenceMixes {
  readonly #input: SolverInput;
  /** Ids of the pools that name an engine. */
  readonly #poolsOf: ReadonlyMap<string, readonly string[]>;
  readonly #bounded: ReadonlySet<string>;
  /** By what makes engines equal. */
  readonly #mixes = new Map<string, ReferenceMix>();
  readonly #measured: ReadonlyMap<string, readonly ReferenceMix[]>;

  constructor(input: SolverInput) {
    this.#input = input;
    const poolsOf = input.state.fleet.pools.flatMap(({ id, engineIds }) =>
      engineIds.map((engine) => [engine, id] as const),
    );
    this.#poolsOf = grouped(poolsOf);
    this.#bounded = new Set(input.policy.bounds.map(({ engineId }) => engineId));
    this.#measured = this.#measuredMixes();
  }

  /** Mean of what was measured on engines equal to this one; without any, the mix that its demand would make. */
  of(at: number, profile: Profile): ReferenceMix {
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
    const request = meanRequest(
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
}

function meanMix(mixes: readonly ReferenceMix[]): ReferenceMix {
  return {
    requestsPerWorkSecond: meanOf(mixes.map((mix) => mix.requestsPerWorkSecond)),
    outputTokensPerWorkSecond: meanOf(mixes.map((mix) => mix.outputTokensPerWorkSecond)),
  };
}
