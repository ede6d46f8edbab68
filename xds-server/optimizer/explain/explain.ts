import { sum } from '../../collections.js';
import { indexById } from '../../fleet/fleet.js';
import { tbotDelaySeconds, tbotSeconds, ttftDelaySeconds, ttftSeconds } from '../../profiles/curves.js';
import { checkInput } from '../input.js';
import { type Column, isUsable } from '../problem/columns.js';
import { buildProblem, type Problem, type Row } from '../problem/problem.js';
import type {
  AppliedBound,
  EngineLoad,
  ShedFraction,
  Solution,
  SolutionRow,
  SolverEngine,
  SolverInput,
} from '../solution.js';

export interface ExplainedPair {
  readonly frontendId: string;
  readonly poolId: string;
  readonly engineId: string;
}

/** What one more request costs on one engine; each column adds up to its total, in the order given. */
export interface CostLine {
  readonly name: CostName;
  /** What the request itself waits for. */
  readonly latencySeconds: number;
  /** What the request costs everybody. */
  readonly marginalSeconds: number;
}

/**
 * - `network`: round trip. `first token`, `later tokens`: on the engine as loaded as planned.
 * - `egress`: what the network charges, at the policy's worth of a dollar.
 * - `delay to others`: by how much one more request slows down all others on the engine.
 * - `above target`: what steers away from utilisations above the target.
 * - `reference mix`: the optimizer counts queueing per unit of work at a reference mix; this corrects the request's own.
 * - `scarcity`: worth of the engine's last bit of capacity to others; 0 below the hard limit.
 * - `moves`: what is saved when conversations stay where they are.
 * - `bound`: what an operator's bound is worth against; negative where a minimum draws traffic.
 */
export type CostName =
  | 'network'
  | 'first token'
  | 'later tokens'
  | 'egress'
  | 'delay to others'
  | 'above target'
  | 'reference mix'
  | 'scarcity'
  | 'moves'
  | 'bound';

/** Why an engine of the fleet takes part in a row or not. */
export type EngineUse =
  | 'used'
  | 'unused'
  | 'not eligible'
  | 'last resort'
  | 'unreachable'
  | 'without capacity';

export interface EngineCost {
  readonly engineId: string;
  readonly use: EngineUse;
  readonly weight: number;
  readonly rps: number;
  readonly lines: readonly CostLine[];
  readonly latencySeconds: number;
  readonly marginalSeconds: number;
  /** By how much the marginal cost exceeds the row's: what keeps an unused engine unused. 0 for used ones. */
  readonly shortSeconds: number;
  readonly bound: AppliedBound | null;
}

/** What the engine's capacity and latencies follow from, beside its profile. */
export interface EngineSupply extends Omit<SolverEngine, 'id' | 'replicas'> {
  readonly replicas: number;
  readonly readyReplicas: number;
}

export interface Explanation extends ExplainedPair {
  readonly demandRps: number;
  readonly shed: readonly ShedFraction[];
  /** Cost of one more request per second of this row, wherever it is least; null when nobody can serve it. */
  readonly rowMarginalSeconds: number | null;
  /** The engine asked about; without lines when it cannot serve the row. */
  readonly engine: EngineCost;
  readonly load: EngineLoad;
  readonly supply: EngineSupply;
  readonly targetUtilization: number;
  readonly maxUtilization: number;
  /** All engines that could serve the row, best first. */
  readonly choices: readonly EngineCost[];
}

/** Flows closer to the ones in force than this share of the row are as in force. */
const SAME_FLOW = 1e-7;

/**
 * Why the weight of one (frontend, pool, engine) is what it is.
 * @param input what the solution was computed from
 * @throws RangeError when the fleet has no such frontend, pool or engine
 */
export function explain(input: SolverInput, solution: Solution, pair: ExplainedPair): Explanation {
  const checked = checkInput(input).input;
  const { fleet } = checked.state;
  const engineAt = indexById(fleet.engines, pair.engineId);
  indexById(fleet.frontends, pair.frontendId);
  indexById(fleet.pools, pair.poolId);
  const problem = buildProblem(checked, servedRates(checked, solution));
  const isThePair = (row: { frontendId: string; poolId: string }): boolean =>
    row.frontendId === pair.frontendId && row.poolId === pair.poolId;
  const at = problem.rows.findIndex(isThePair);
  const row = new RowCosts(checked, solution, problem, at, solution.rows.find(isThePair)!);
  const { demandRps, shed } = row.solution;
  const choices = row.choices();
  return {
    ...pair,
    demandRps,
    shed,
    rowMarginalSeconds: choices.length > 0 ? row.marginal : null,
    engine:
      choices.find(({ engineId }) => engineId === pair.engineId) ?? absent(checked, input, pair, engineAt),
    load: solution.engines.find(({ engineId }) => engineId === pair.engineId)!,
    supply: supplyOf(checked.state.engines[engineAt]!),
    targetUtilization: checked.policy.targetUtilization,
    maxUtilization: checked.policy.maxUtilization,
    choices,
  };
}

function supplyOf({ replicas, health, ramp, drain, penalty, latencyFactor }: SolverEngine): EngineSupply {
  const readyReplicas = replicas.filter(({ ready }) => ready).length;
  return { replicas: replicas.length, readyReplicas, health, ramp, drain, penalty, latencyFactor };
}

/** Served rate of each demand: the means of a row are over what is served of its classes. */
function servedRates({ state }: SolverInput, { rows }: Solution): number[] {
  return state.demands.map(({ frontendId, poolId, priority, requestsPerSecond }) => {
    const row = rows.find((each) => each.frontendId === frontendId && each.poolId === poolId);
    const fraction = row?.shed.find((each) => each.priority === priority)?.fraction ?? 0;
    return requestsPerSecond * (1 - fraction);
  });
}

function absent(
  checked: SolverInput,
  { state }: SolverInput,
  { frontendId, poolId, engineId }: ExplainedPair,
  at: number,
): EngineCost {
  const { fleet, engines } = checked.state;
  const network = fleet.networkSeconds[indexById(fleet.frontends, frontendId)]![at]!;
  const eligible = fleet.pools[indexById(fleet.pools, poolId)]!.engineIds.includes(engineId);
  const pool = state.fleet.pools[indexById(state.fleet.pools, poolId)]!;
  const use = pool.lastResortIds?.includes(engineId)
    ? 'last resort'
    : !eligible
      ? 'not eligible'
      : !isUsable(engines[at]!)
        ? 'without capacity'
        : network === Infinity
          ? 'unreachable'
          : 'unused';
  return {
    engineId,
    use,
    weight: 0,
    rps: 0,
    lines: [],
    latencySeconds: 0,
    marginalSeconds: 0,
    shortSeconds: 0,
    bound: null,
  };
}

/** Costs of one row's arcs under a solution. */
class RowCosts {
  readonly solution: SolutionRow;
  /** Cost of one more request per second. */
  readonly marginal: number;
  readonly #input: SolverInput;
  readonly #problem: Problem;
  readonly #row: Row;
  readonly #loads: ReadonlyMap<string, EngineLoad>;
  readonly #served: number;

  constructor(
    input: SolverInput,
    { engines }: Solution,
    problem: Problem,
    at: number,
    solution: SolutionRow,
  ) {
    this.#input = input;
    this.#problem = problem;
    this.#row = problem.rows[at]!;
    this.#loads = new Map(engines.map((engine) => [engine.engineId, engine]));
    this.solution = solution;
    this.#served = sum(solution.flows.map(({ rps }) => rps));
    this.marginal = this.#marginal();
  }

  /** Where every engine has all that it may get, one more request is shared out among them as all are. */
  #marginal(): number {
    const arcs = this.#arcs();
    const least = arcs.reduce((best, arc) => Math.min(best, this.#costUp(arc)), Infinity);
    if (least < Infinity) return least;
    return sum(arcs.map((arc) => this.#weight(arc) * (this.#problem.arcCost[arc]! + this.#worth(arc))));
  }

  choices(): EngineCost[] {
    const costs = this.#arcs().flatMap((arc) => {
      const { members } = this.#column(arc);
      return members.map((member) => this.#engineCost(arc, this.#input.state.fleet.engines[member]!.id));
    });
    return costs.sort((a, b) => b.weight - a.weight || a.marginalSeconds - b.marginalSeconds);
  }

  #arcs(): number[] {
    const { firstArc, endArc } = this.#row;
    return Array.from({ length: endArc - firstArc }, (_, at) => firstArc + at);
  }

  #engineCost(arc: number, engineId: string): EngineCost {
    const weight = this.solution.weights.find((each) => each.engineId === engineId)?.weight ?? 0;
    const bound = this.solution.bounds.find((each) => each.engineId === engineId) ?? null;
    const lines = [...this.#physicalLines(arc), ...this.#policyLines(arc, bound)];
    const marginalSeconds = sum(lines.map((line) => line.marginalSeconds));
    return {
      engineId,
      use: weight > 0 ? 'used' : 'unused',
      weight,
      rps: this.solution.flows.find((each) => each.engineId === engineId)?.rps ?? 0,
      lines,
      latencySeconds: sum(lines.map((line) => line.latencySeconds)),
      marginalSeconds,
      shortSeconds: weight > 0 ? 0 : Math.max(0, marginalSeconds - this.marginal),
      bound,
    };
  }

  /** Everything about the engine and the way to it. */
  #physicalLines(arc: number): CostLine[] {
    const { profile, latencyFactor, mix, congestion } = this.#column(arc);
    const { rho, scarcityPriceSeconds } = this.#load(arc);
    const { uncachedPromptTokens, outputTokens } = this.#row.mix;
    const work = this.#problem.arcWork[arc]!;
    const steepPrice = congestion.steepPrice(rho);
    const queue = latencyFactor * ttftDelaySeconds(profile, rho);
    const crowd = latencyFactor * tbotDelaySeconds(profile, rho);
    const laterOfMix = Math.max(0, mix.outputTokensPerWorkSecond - mix.requestsPerWorkSecond);
    const ownDelay = queue + (outputTokens - 1) * crowd;
    const delayAtMix = work * (mix.requestsPerWorkSecond * queue + laterOfMix * crowd);
    return [
      both('network', this.#networkSeconds(arc)),
      both('first token', latencyFactor * ttftSeconds(profile, rho, uncachedPromptTokens)),
      both('later tokens', latencyFactor * (outputTokens - 1) * tbotSeconds(profile, rho)),
      marginal('egress', this.#egressSeconds(arc)),
      marginal('delay to others', work * (congestion.price(rho) - steepPrice) - delayAtMix),
      marginal('above target', work * steepPrice),
      marginal('reference mix', delayAtMix - ownDelay),
      marginal('scarcity', work * scarcityPriceSeconds),
    ];
  }

  /** What keeps flows where they are: the cost of moves, and operators. */
  #policyLines(arc: number, bound: AppliedBound | null): CostLine[] {
    const rest = this.#problem.arcCost[arc]! + this.#worth(arc);
    const moves = this.#moveRange(arc);
    const apart = this.marginal - rest;
    const moveSeconds = Math.min(Math.max(apart, moves.least), moves.most);
    const boundSeconds = bound?.binding ? apart - moveSeconds : 0;
    return [marginal('moves', moveSeconds), marginal('bound', boundSeconds)];
  }

  /** Marginal cost of more flow; Infinity where an operator allows no more. */
  #costUp(arc: number): number {
    const flow = this.#flow(arc);
    const isFull =
      this.#problem.arcMax[arc]! < 1 && flow >= this.#problem.arcMax[arc]! * this.#served * (1 - SAME_FLOW);
    if (isFull) return Infinity;
    const returning = flow < this.#flowInForce(arc) - SAME_FLOW * this.#served;
    return this.#problem.arcCost[arc]! + this.#worth(arc) - (returning ? this.#row.moveSeconds : 0);
  }

  /** What moves may add: below the flow in force one more request saves a move, above it does not, at it either. */
  #moveRange(arc: number): { readonly least: number; readonly most: number } {
    const above = this.#flow(arc) - this.#flowInForce(arc);
    const saved = -this.#row.moveSeconds;
    if (this.#problem.arcPrevious[arc] === 0 || above > SAME_FLOW * this.#served)
      return { least: 0, most: 0 };
    return above < -SAME_FLOW * this.#served ? { least: saved, most: saved } : { least: saved, most: 0 };
  }

  #flow(arc: number): number {
    const ids = this.#idsOf(arc);
    return sum(this.solution.flows.map(({ engineId, rps }) => (ids.has(engineId) ? rps : 0)));
  }

  #weight(arc: number): number {
    const ids = this.#idsOf(arc);
    return sum(this.solution.weights.map(({ engineId, weight }) => (ids.has(engineId) ? weight : 0)));
  }

  #idsOf(arc: number): ReadonlySet<string> {
    const { engines } = this.#input.state.fleet;
    return new Set(this.#column(arc).members.map((member) => engines[member]!.id));
  }

  #flowInForce(arc: number): number {
    return this.#problem.arcPrevious[arc]! * this.#served;
  }

  /** Seconds that the work of one request is worth on the engine. */
  #worth(arc: number): number {
    const { congestionPriceSeconds, scarcityPriceSeconds } = this.#load(arc);
    return this.#problem.arcWork[arc]! * (congestionPriceSeconds + scarcityPriceSeconds);
  }

  #networkSeconds(arc: number): number {
    const { frontends, networkSeconds } = this.#input.state.fleet;
    return networkSeconds[indexById(frontends, this.#row.frontendId)]![this.#column(arc).members[0]!]!;
  }

  #egressSeconds(arc: number): number {
    const { frontends, egressDollarsPerRequest } = this.#input.state.fleet;
    const dollars = egressDollarsPerRequest?.[indexById(frontends, this.#row.frontendId)];
    return this.#input.policy.egressSecondsPerDollar * (dollars?.[this.#column(arc).members[0]!] ?? 0);
  }

  #load(arc: number): EngineLoad {
    return this.#loads.get(this.#input.state.fleet.engines[this.#column(arc).members[0]!]!.id)!;
  }

  #column(arc: number): Column {
    return this.#problem.columns[this.#problem.arcColumn[arc]!]!;
  }
}

function both(name: CostName, seconds: number): CostLine {
  return { name, latencySeconds: seconds, marginalSeconds: seconds };
}

function marginal(name: CostName, seconds: number): CostLine {
  return { name, latencySeconds: 0, marginalSeconds: seconds };
}
