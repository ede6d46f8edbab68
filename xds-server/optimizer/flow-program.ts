import { type FlowProblem, flowUnit } from './flow-problem.js';
import { type LinearProgram, type LinearSolution, ProgramBuilder } from './linear-program.js';
import { coarsePoints, segmentsAt } from './tangents.js';

/** Milliseconds rather than seconds, so that the solver's tolerance of 1e-7 is a tenth of a nanosecond of cost. */
const COST_SCALE = 1000;
/** Seconds per request of flow that no arc takes; far above what any detour or price can add up to. */
const UNPLACED_SECONDS = 10_000;

/** What the linear program says about flows. */
export interface ProgramFlows {
  readonly flows: Float64Array;
  /** Arcs whose flow lies in the basis: where it may move without another having to. */
  readonly basic: Uint8Array;
  /** Requests per second by row that found no room. */
  readonly unplaced: Float64Array;
  /** Optimum of the linear program, a lower bound on the exact objective. */
  readonly bound: number;
}

/**
 * The flow problem with each column's congestion replaced by tangents. Variables, for the arcs on offer only: flow above
 * the kink, flow below it counted downwards (x = kink + above - below, which needs no extra rows), pieces of
 * congestion, unplaced flow. Rows: one for each row's served flow, one for each column's load.
 */
export class FlowProgram {
  readonly program: LinearProgram;
  readonly #flowProblem: FlowProblem;
  readonly #unit: number;
  readonly #arcs: Int32Array;
  readonly #belowArcs: Int32Array;
  readonly #constant: number;

  constructor(flowProblem: FlowProblem, arcs: Int32Array, points: readonly (readonly number[])[]) {
    const { problem, served, lower, upper, kink } = flowProblem;
    this.#flowProblem = flowProblem;
    this.#arcs = arcs;
    this.#belowArcs = arcs.filter((arc) => kink[arc]! > lower[arc]!);
    this.#unit = flowUnit(served);
    const columns = new ProgramBuilder();
    const rows = problem.rows.length;
    for (const arc of arcs) {
      const row = problem.arcRow[arc]!;
      columns.add(COST_SCALE * problem.arcCost[arc]!, (upper[arc]! - kink[arc]!) / this.#unit);
      columns.entry(row, 1);
      columns.entry(rows + problem.arcColumn[arc]!, problem.arcWork[arc]!);
    }
    for (const arc of this.#belowArcs) {
      const row = problem.arcRow[arc]!;
      columns.add(
        COST_SCALE * (problem.rows[row]!.moveSeconds - problem.arcCost[arc]!),
        (kink[arc]! - lower[arc]!) / this.#unit,
      );
      columns.entry(row, -1);
      columns.entry(rows + problem.arcColumn[arc]!, -problem.arcWork[arc]!);
    }
    problem.columns.forEach(({ capacity, congestion }, column) => {
      const { widths, prices } = segmentsAt(congestion, points[column]!);
      widths.forEach((width, index) => {
        columns.add(COST_SCALE * prices[index]!, (width * capacity) / this.#unit);
        columns.entry(rows + column, -1);
      });
    });
    for (let row = 0; row < rows; row++) {
      columns.add(COST_SCALE * UNPLACED_SECONDS, served[row]! / this.#unit);
      columns.entry(row, 1);
    }
    const rightHand = this.#rightHandSide();
    this.program = columns.finish(rightHand, rightHand);
    this.#constant = this.#costAtKinks();
  }

  /** Translates the solver's answer back. */
  read({ values, isBasic, objective }: LinearSolution): ProgramFlows {
    const { problem, lower, upper, kink } = this.#flowProblem;
    const flows = Float64Array.from(kink);
    const basic = new Uint8Array(flows.length);
    this.#arcs.forEach((arc, at) => {
      flows[arc]! += values[at]! * this.#unit;
      if (isBasic(at)) basic[arc] = 1;
    });
    this.#belowArcs.forEach((arc, index) => {
      const at = this.#arcs.length + index;
      flows[arc]! -= values[at]! * this.#unit;
      if (isBasic(at)) basic[arc] = 1;
    });
    for (let arc = 0; arc < flows.length; arc++) {
      flows[arc] = Math.min(Math.max(flows[arc]!, lower[arc]!), upper[arc]!);
    }
    const firstUnplaced = values.length - problem.rows.length;
    const unplaced = values.slice(firstUnplaced).map((value) => Math.max(0, value) * this.#unit);
    return { flows, basic, unplaced, bound: (objective * this.#unit) / COST_SCALE + this.#constant };
  }

  #rightHandSide(): Float64Array {
    const { problem, served, kink } = this.#flowProblem;
    const rows = problem.rows.length;
    const side = new Float64Array(rows + problem.columns.length);
    served.forEach((flow, row) => {
      side[row] = flow / this.#unit;
    });
    kink.forEach((flow, arc) => {
      if (flow === 0) return;
      side[problem.arcRow[arc]!]! -= flow / this.#unit;
      side[rows + problem.arcColumn[arc]!]! -= (problem.arcWork[arc]! * flow) / this.#unit;
    });
    return side;
  }

  #costAtKinks(): number {
    const { problem, served, kink } = this.#flowProblem;
    let total = 0;
    kink.forEach((flow, arc) => {
      const row = problem.arcRow[arc]!;
      const left = problem.arcPrevious[arc]! * served[row]! - flow;
      total += problem.arcCost[arc]! * flow + problem.rows[row]!.moveSeconds * Math.max(0, left);
    });
    return total;
  }
}

/** Tangent points of every column: coarse everywhere, and fine around the utilisation that is expected. */
export function choosePoints(
  { problem }: FlowProblem,
  expected: Float64Array | undefined,
  spread: number,
): readonly (readonly number[])[] {
  return problem.columns.map(({ congestion }, column) => {
    const points = coarsePoints(congestion);
    if (!expected) return points;
    const around = [-1, -0.25, 0.25, 1].map((step) => expected[column]! + step * spread);
    const fine = around.filter((point) => point > 0 && point < congestion.max);
    return [...new Set([...points, ...fine])].sort((a, b) => a - b);
  });
}
