import { arcSize, type FlowProblem, flowUnit } from '../problem/flow-problem.js';
import type { Problem } from '../problem/problem.js';
import { type LinearSolution, type LinearSolver, ProgramBuilder, type RunOptions } from './linear-program.js';
import { coarsePoints, segmentsAt, steepPoints } from './tangents.js';

/** Milliseconds rather than seconds, so that the solver's tolerance of 1e-7 is a tenth of a nanosecond of cost. */
const COST_SCALE = 1000;
/** What flow that no arc takes costs: seconds per request, plus a multiple of the dearest arc on a full engine. */
const UNPLACED_SECONDS = 1000;
const UNPLACED_COSTS = 100;

/** What the linear program says about flows. */
export interface ProgramFlows {
  readonly flows: Float64Array;
  /** Arcs whose flow lies in the basis: where it may move without another having to. */
  readonly basic: Uint8Array;
  /** Requests per second by row that found no room. */
  readonly unplaced: Float64Array;
  /** What one more request per second of each row, and work on each column, is worth to the program, in seconds. */
  readonly rowCosts: Float64Array;
  readonly columnPrices: Float64Array;
  /** Optimum of the linear program: a lower bound on the exact objective if all arcs are on offer. */
  readonly bound: number;
}

/**
 * The flow problem with each column's congestion replaced by tangents. Variables: pieces of congestion, unplaced flow,
 * and for the arcs on offer flow below the kink, counted downwards, and above it (x = kink + above - below, which needs
 * no extra rows). Rows: one for each row's served flow, one for each column's load.
 */
export class FlowProgram {
  readonly #flowProblem: FlowProblem;
  readonly #unit: number;
  readonly #builder: ProgramBuilder;
  /** By row and column of the problem: what is served, and what can be done, in units. */
  readonly #sizes: Float64Array;
  readonly #rightHand: Float64Array;
  readonly #constant: number;
  readonly #firstUnplaced: number;
  readonly #belowArcs: Int32Array;
  readonly #firstBelow: number;
  readonly #aboveArcs: number[] = [];
  readonly #firstAbove: number;

  /** All arcs with flow in force or a lower bound must be on offer. */
  constructor(flowProblem: FlowProblem, arcs: Int32Array, points: readonly (readonly number[])[]) {
    const { problem, served, lower, kink } = flowProblem;
    this.#flowProblem = flowProblem;
    this.#unit = flowUnit(served);
    this.#sizes = Float64Array.from([
      ...served.map((flow) => flow / this.#unit),
      ...problem.columns.map(({ capacity }) => capacity / this.#unit),
    ]);
    this.#builder = new ProgramBuilder(this.#sizes);
    this.#rightHand = this.#rightHandSide();
    this.#constant = this.#costAtKinks();
    problem.columns.forEach((_, column) => {
      this.#addSegments(column, points[column]!);
    });
    this.#firstUnplaced = this.#builder.size;
    const unplacedSeconds = UNPLACED_SECONDS + UNPLACED_COSTS * dearestArc(problem);
    served.forEach((flow, row) => {
      this.#builder.add(COST_SCALE * unplacedSeconds, flow / this.#unit, this.#sizes[row]!);
      this.#builder.entry(row, 1);
    });
    this.#firstBelow = this.#builder.size;
    this.#belowArcs = arcs.filter((arc) => kink[arc]! > lower[arc]!);
    for (const arc of this.#belowArcs) this.#addBelow(arc);
    this.#firstAbove = this.#builder.size;
    this.offer(arcs);
  }

  /** Puts more arcs on offer. */
  offer(arcs: Iterable<number>): void {
    const { problem, upper, kink } = this.#flowProblem;
    for (const arc of arcs) {
      this.#aboveArcs.push(arc);
      const most = (upper[arc]! - kink[arc]!) / this.#unit;
      this.#builder.add(COST_SCALE * problem.arcCost[arc]!, most, arcSize(problem, this.#sizes, arc));
      this.#builder.entry(problem.arcRow[arc]!, 1);
      this.#builder.entry(problem.rows.length + problem.arcColumn[arc]!, problem.arcWork[arc]!);
    }
  }

  /** A run that resumes is one with the same arcs on offer as the last, or more. */
  solve(solver: LinearSolver, options: RunOptions = {}): ProgramFlows {
    const program = this.#builder.finish(this.#rightHand, this.#rightHand);
    const solution = solver.solve(program, options);
    const { problem, served } = this.#flowProblem;
    const { rowDuals, values, objective } = solution;
    const unplaced = served.map((_, row) => Math.max(0, values[this.#firstUnplaced + row]!) * this.#unit);
    return {
      ...this.#readFlows(solution),
      unplaced,
      rowCosts: Float64Array.from(problem.rows, (_, row) => rowDuals[row]! / COST_SCALE),
      columnPrices: Float64Array.from(
        problem.columns,
        (_, column) => -rowDuals[problem.rows.length + column]! / COST_SCALE,
      ),
      bound: (objective * this.#unit) / COST_SCALE + this.#constant,
    };
  }

  #readFlows({ values, isBasic }: LinearSolution): Pick<ProgramFlows, 'flows' | 'basic'> {
    const { lower, upper, kink } = this.#flowProblem;
    const flows = Float64Array.from(kink);
    const basic = new Uint8Array(flows.length);
    this.#aboveArcs.forEach((arc, at) => {
      flows[arc]! += values[this.#firstAbove + at]! * this.#unit;
      if (isBasic(this.#firstAbove + at)) basic[arc] = 1;
    });
    this.#belowArcs.forEach((arc, at) => {
      flows[arc]! -= values[this.#firstBelow + at]! * this.#unit;
      if (isBasic(this.#firstBelow + at)) basic[arc] = 1;
    });
    for (let arc = 0; arc < flows.length; arc++) {
      flows[arc] = Math.min(Math.max(flows[arc]!, lower[arc]!), upper[arc]!);
    }
    return { flows, basic };
  }

  #addSegments(column: number, points: readonly number[]): void {
    const { rows, columns } = this.#flowProblem.problem;
    const { congestion } = columns[column]!;
    const { widths, prices } = segmentsAt(congestion, points);
    widths.forEach((width, index) => {
      const size = this.#sizes[rows.length + column]!;
      this.#builder.add(COST_SCALE * prices[index]!, width * size, size);
      this.#builder.entry(rows.length + column, -1);
    });
  }

  #addBelow(arc: number): void {
    const { problem, lower, kink } = this.#flowProblem;
    const row = problem.arcRow[arc]!;
    const saving = problem.arcCost[arc]! - problem.rows[row]!.moveSeconds;
    const most = (kink[arc]! - lower[arc]!) / this.#unit;
    this.#builder.add(-COST_SCALE * saving, most, arcSize(problem, this.#sizes, arc));
    this.#builder.entry(row, -1);
    this.#builder.entry(problem.rows.length + problem.arcColumn[arc]!, -problem.arcWork[arc]!);
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

/** Marginal cost in seconds of the arc that costs most when its engine is full. */
function dearestArc({ columns, arcColumn, arcCost, arcWork }: Problem): number {
  const prices = columns.map(({ congestion }) => congestion.price(congestion.max));
  return arcCost.reduce(
    (most, cost, arc) => Math.max(most, cost + arcWork[arc]! * prices[arcColumn[arc]!]!),
    0,
  );
}

/**
 * Tangent points of every column: coarse everywhere, and fine around the utilisation that is expected.
 * @param isNearLimit whether many columns are nearly full, but not all
 */
export function choosePoints(
  { problem }: FlowProblem,
  expected: Float64Array | undefined,
  spread: number,
  isNearLimit: boolean,
): readonly (readonly number[])[] {
  return problem.columns.map(({ congestion }, column) => {
    const points = isNearLimit ? steepPoints(congestion) : coarsePoints(congestion);
    if (!expected) return points;
    const around = [-1, -0.25, 0.25, 1].map((step) => expected[column]! + step * spread);
    const fine = around.filter((point) => point > 0 && point < congestion.max);
    return [...new Set([...points, ...fine])].sort((a, b) => a - b);
  });
}
