import { sum } from '../../collections.js';
import { WardropError } from '../../errors.js';
import type { Optimum } from '../optimum.js';
import type { Problem } from '../problem/problem.js';
import type { RowWeights, SolutionRow, SolverInput } from '../solution.js';
import { arcWeights } from '../weights.js';
import type { ArcShare } from './backups.js';

/** Shares of a lost engine's traffic below this are rounding. */
const LEAST_SHARE = 1e-4;

/** An optimum and its weights. */
export interface Placed {
  readonly input: SolverInput;
  readonly optimum: Optimum;
  /** By arc. */
  readonly weights: Float64Array;
  /** The weights by engine. */
  readonly rows: readonly Pick<SolutionRow, 'frontendId' | 'poolId' | 'weights'>[];
}

/** Solves checked input. */
export type Solve = (input: SolverInput) => Optimum;

/** Tells what the plan will be when an engine is lost. */
export class LossPlanner {
  readonly #solve: Solve;
  readonly #input: SolverInput;
  readonly #problem: Problem;
  readonly #weights: Float64Array;
  /** Column by engine, -1 without one. */
  readonly #columnOf: Int32Array;

  constructor({ input, optimum, weights, rows }: Placed, solve: Solve) {
    this.#solve = solve;
    // A loss ends what was settled, so moves cost again what they cost when conditions are new.
    const state = { ...input.state, settledSeconds: 0, settledSecondsByPool: {} };
    this.#input = { ...input, state, previousWeights: rows.map(inForce) };
    this.#problem = optimum.flowProblem.problem;
    this.#weights = weights;
    this.#columnOf = new Int32Array(state.engines.length).fill(-1);
    this.#problem.columns.forEach(({ members }, column) => {
      for (const member of members) this.#columnOf[member] = column;
    });
  }

  /**
   * Where the next plan serves what an engine serves now: by arc to the engine's column, the arcs of the row whose
   * weights grow, in proportion. Solves the same problem without the engine, from these weights: leaving it is free,
   * moves of others are charged. Nothing when that fails, as a plan must not be lost for a question of what if.
   */
  without(engine: number): ReadonlyMap<number, readonly ArcShare[]> {
    const { state } = this.#input;
    const engines = state.engines.map((each, at) => (at === engine ? { ...each, health: 0 } : each));
    try {
      const optimum = this.#solve({ ...this.#input, state: { ...state, engines } });
      return this.#growth(engine, this.#weightsOf(optimum));
    } catch (error) {
      if (error instanceof WardropError) return new Map();
      throw error;
    }
  }

  /** Weights of an optimum of the same rows with other columns, by arc of this problem. */
  #weightsOf(other: Optimum): Float64Array {
    const { problem } = other.flowProblem;
    const otherWeights = arcWeights(other);
    const weights = new Float64Array(this.#weights.length);
    const arcTo = new Int32Array(this.#problem.columns.length);
    this.#problem.rows.forEach((row, at) => {
      for (let arc = row.firstArc; arc < row.endArc; arc++) arcTo[this.#problem.arcColumn[arc]!] = arc;
      const { firstArc, endArc } = problem.rows[at]!;
      for (let arc = firstArc; arc < endArc; arc++) {
        const { members, capacities, capacity } = problem.columns[problem.arcColumn[arc]!]!;
        members.forEach((member, index) => {
          weights[arcTo[this.#columnOf[member]!]!]! += (otherWeights[arc]! * capacities[index]!) / capacity;
        });
      }
    });
    return weights;
  }

  #growth(engine: number, after: Float64Array): ReadonlyMap<number, readonly ArcShare[]> {
    const { rows, columns, arcColumn } = this.#problem;
    const column = this.#columnOf[engine]!;
    const { members, capacities, capacity } = columns[column]!;
    const left = 1 - capacities[members.indexOf(engine)]! / capacity;
    const growth = new Map<number, readonly ArcShare[]>();
    for (const { firstArc, endArc } of rows) {
      const gains: ArcShare[] = [];
      let lostArc = -1;
      for (let arc = firstArc; arc < endArc; arc++) {
        if (arcColumn[arc] === column) lostArc = arc;
        const before = this.#weights[arc]! * (arc === lostArc ? left : 1);
        if (after[arc]! > before) gains.push({ arc, share: after[arc]! - before });
      }
      if (lostArc >= 0) growth.set(lostArc, normalised(gains));
    }
    return growth;
  }
}

function inForce({ frontendId, poolId, weights }: Placed['rows'][number]): RowWeights {
  return { frontendId, poolId, weights: new Map(weights.map(({ engineId, weight }) => [engineId, weight])) };
}

/** Shares that add up to 1, without those that are rounding. */
function normalised(gains: readonly ArcShare[]): readonly ArcShare[] {
  const least = LEAST_SHARE * sum(gains.map(({ share }) => share));
  const kept = gains.filter(({ share }) => share >= least);
  const total = sum(kept.map(({ share }) => share));
  return kept.map(({ arc, share }) => ({ arc, share: share / total }));
}
