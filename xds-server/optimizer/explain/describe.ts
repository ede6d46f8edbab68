import { compare } from '../../collections.js';
import type { Demand } from '../../fleet/fleet-state.js';
import { rowKey } from '../../fleet/row-key.js';
import { tbotDelaySeconds, ttftDelaySeconds } from '../../profiles/curves.js';
import type { Optimum } from '../optimum.js';
import type { Problem } from '../problem/problem.js';
import type {
  AppliedBound,
  EngineFlow,
  EngineLoad,
  EngineWeight,
  ShedFraction,
  Solution,
  SolutionRow,
  SolverInput,
} from '../solution.js';

/** Utilisation closer to the hard limit than this share of it is at the limit. */
const AT_LIMIT = 1e-5;
/** Weights this close to a bound are held by it. */
const AT_BOUND = 1e-9;
/** Shed fractions below this are none. */
const LEAST_SHED = 1e-6;

/** A solution without what is found out elsewhere. */
export interface DescribedOptimum extends Omit<Solution, 'rows' | 'warnings'> {
  readonly rows: readonly DescribedRow[];
}

export type DescribedRow = Omit<SolutionRow, 'backups'>;

/**
 * An optimum in terms of frontends, pools and engines.
 * @param served requests per second, by row and class
 * @param weights by arc
 */
export function describe(
  input: SolverInput,
  served: readonly (readonly number[])[],
  optimum: Optimum,
  weights: Float64Array,
): DescribedOptimum {
  return new Description(input, served, optimum, weights).solution();
}

/** One engine's part of what an arc carries. */
interface Part {
  readonly engineId: string;
  readonly arc: number;
  readonly value: number;
}

interface MemberPart extends Part {
  /** Index in `state.fleet.engines`. */
  readonly engine: number;
}

class Description {
  readonly #input: SolverInput;
  readonly #served: readonly (readonly number[])[];
  readonly #optimum: Optimum;
  readonly #problem: Problem;
  readonly #weights: Float64Array;
  readonly #inForce: ReadonlyMap<string, ReadonlyMap<string, number>>;

  constructor(
    input: SolverInput,
    served: readonly (readonly number[])[],
    optimum: Optimum,
    weights: Float64Array,
  ) {
    this.#input = input;
    this.#served = served;
    this.#optimum = optimum;
    this.#problem = optimum.flowProblem.problem;
    this.#weights = weights;
    const inForce = new Map<string, ReadonlyMap<string, number>>();
    for (const row of input.previousWeights) inForce.set(rowKey(row), row.weights);
    this.#inForce = inForce;
  }

  solution(): DescribedOptimum {
    const { objective, lowerBound } = this.#optimum;
    const rows: DescribedRow[] = [];
    for (let row = 0; row < this.#problem.rows.length; row++) rows.push(this.#row(row));
    return {
      rows,
      engines: this.#engineLoads(),
      objectiveSeconds: objective,
      lowerBoundSeconds: Math.min(lowerBound, objective),
      mixErrorSeconds: this.#mixError(),
    };
  }

  #row(at: number): DescribedRow {
    const { frontendId, poolId, demandRps, classes } = this.#problem.rows[at]!;
    return {
      frontendId,
      poolId,
      demandRps,
      flows: this.#rowFlows(at),
      weights: this.#rowWeights(at),
      shed: shedOf(classes, this.#served[at]!),
      bounds: this.#bounds(at),
    };
  }

  /** An arc whose weight stays passes on the very weights in force, so that solving again changes no bit. */
  #rowWeights(row: number): EngineWeight[] {
    const { rows, arcPrevious } = this.#problem;
    const inForce = this.#inForce.get(rowKey(rows[row]!));
    const weights: EngineWeight[] = [];
    for (const { engineId, arc, value } of this.#split(row, this.#weights)) {
      const stays = this.#weights[arc] === arcPrevious[arc];
      weights.push({ engineId, weight: stays ? (inForce?.get(engineId) ?? value) : value });
    }
    return weights;
  }

  #rowFlows(row: number): EngineFlow[] {
    const flows: EngineFlow[] = [];
    for (const { engineId, value } of this.#split(row, this.#optimum.flows)) {
      flows.push({ engineId, rps: value });
    }
    return flows;
  }

  /** Values above 0 of a row's arcs, split among the members of columns by capacity, in the order of engine ids. */
  #split(row: number, values: Float64Array): Part[] {
    const { firstArc, endArc } = this.#problem.rows[row]!;
    const parts: MemberPart[] = [];
    for (let arc = firstArc; arc < endArc; arc++) {
      if (values[arc]! > 0) this.#splitArc(arc, values[arc]!, parts);
    }
    return isOrdered(parts) ? parts : parts.sort(byEngine);
  }

  #splitArc(arc: number, total: number, parts: MemberPart[]): void {
    const { columns, arcColumn } = this.#problem;
    const { members, capacities, capacity } = columns[arcColumn[arc]!]!;
    for (let at = 0; at < members.length; at++) {
      const engine = members[at]!;
      const value = (total * capacities[at]!) / capacity;
      // The smallest numbers there are become nothing when they are shared.
      if (value > 0) parts.push({ engine, engineId: this.#idOf(engine), arc, value });
    }
  }

  #membersOf(arc: number): string[] {
    return this.#problem.columns[this.#problem.arcColumn[arc]!]!.members.map((member) => this.#idOf(member));
  }

  #idOf(engine: number): string {
    return this.#input.state.fleet.engines[engine]!.id;
  }

  /** Engines with bounds are columns of their own. */
  #bounds(row: number): AppliedBound[] {
    const { bounds, firstArc, endArc } = this.#problem.rows[row]!;
    const applied: AppliedBound[] = [];
    for (let arc = firstArc; arc < endArc && bounds.size > 0; arc++) {
      const [engineId] = this.#membersOf(arc);
      const bound = bounds.get(engineId!);
      if (!bound) continue;
      const weight = this.#weights[arc]!;
      const atMin = bound.min > 0 && weight <= bound.min + AT_BOUND;
      const atMax = bound.max < 1 && weight >= bound.max - AT_BOUND;
      applied.push({ engineId: engineId!, ...bound, binding: atMin ? 'min' : atMax ? 'max' : null });
    }
    return applied.sort((a, b) => compare(a.engineId, b.engineId));
  }

  /** Engines without capacity are listed too, with nothing on them. */
  #engineLoads(): EngineLoad[] {
    const loads: EngineLoad[] = [];
    for (const { id } of this.#input.state.fleet.engines) {
      loads.push({
        engineId: id,
        effectiveCapacity: 0,
        rho: 0,
        congestionPriceSeconds: 0,
        scarcityPriceSeconds: 0,
      });
    }
    const { columns } = this.#problem;
    for (let column = 0; column < columns.length; column++) {
      const { members, capacities, capacity, congestion } = columns[column]!;
      const rho = this.#optimum.loads[column]! / capacity;
      const price = congestion.price(Math.min(rho, congestion.max));
      const isFull = rho >= congestion.max * (1 - AT_LIMIT);
      for (let at = 0; at < members.length; at++) {
        loads[members[at]!] = {
          engineId: this.#idOf(members[at]!),
          effectiveCapacity: capacities[at]!,
          rho,
          congestionPriceSeconds: price,
          scarcityPriceSeconds: isFull ? Math.max(0, this.#optimum.columnPrices[column]! - price) : 0,
        };
      }
    }
    return loads;
  }

  /** Queueing delay of the flows at their own sizes, less the same at the reference mix, in user-seconds per second. */
  #mixError(): number {
    const { rows, columns, arcRow, arcColumn, arcWork } = this.#problem;
    const { flows } = this.#optimum;
    let error = 0;
    for (let arc = 0; arc < flows.length; arc++) {
      const flow = flows[arc]!;
      if (!(flow > 0)) continue;
      const { profile, mix, capacity, latencyFactor } = columns[arcColumn[arc]!]!;
      const rho = this.#optimum.loads[arcColumn[arc]!]! / capacity;
      const queue = latencyFactor * ttftDelaySeconds(profile, rho);
      const crowd = latencyFactor * tbotDelaySeconds(profile, rho);
      const laterOfMix = Math.max(0, mix.outputTokensPerWorkSecond - mix.requestsPerWorkSecond);
      const own = queue + (rows[arcRow[arc]!]!.mix.outputTokens - 1) * crowd;
      error += flow * (own - arcWork[arc]! * (mix.requestsPerWorkSecond * queue + laterOfMix * crowd));
    }
    return error;
  }
}

/** @param served requests per second by class */
function shedOf(classes: readonly Demand[], served: readonly number[]): ShedFraction[] {
  const shed: ShedFraction[] = [];
  for (let at = 0; at < classes.length; at++) {
    const { priority, requestsPerSecond } = classes[at]!;
    const fraction = requestsPerSecond > 0 ? 1 - served[at]! / requestsPerSecond : 0;
    shed.push({ priority, fraction: fraction < LEAST_SHED ? 0 : Math.min(1, fraction) });
  }
  return shed;
}

/** As they are where each column is one engine. */
function isOrdered(parts: readonly MemberPart[]): boolean {
  for (let at = 1; at < parts.length; at++) if (parts[at - 1]!.engine > parts[at]!.engine) return false;
  return true;
}

function byEngine(a: MemberPart, b: MemberPart): number {
  return a.engine - b.engine;
}
