import type { Problem, Row } from './problem.js';

/**
 * The convex problem that remains once it is decided how much of each row is served: find flows x on the arcs,
 *
 *     minimise  sum cost * x  +  sum move * max(0, previous - x)  +  sum capacity * congestion(load / capacity)
 *     subject to  sum of a row's x = served,  lower <= x <= upper,  load = sum work * x <= max * capacity
 *
 * Moved flow, half the sum of all changes, is counted where it leaves, so that leaving an engine without capacity, which
 * has no arc, is free.
 */
export interface FlowProblem extends ArcProblem {
  readonly problem: Problem;
}

/** As much of it as the search for the best flows needs. */
export interface ArcProblem {
  readonly problem: Pick<Problem, 'columns' | 'arcRow' | 'arcColumn' | 'arcCost' | 'arcWork'> & {
    readonly rows: readonly ArcRow[];
  };
  /** Requests per second by row. */
  readonly served: Float64Array;
  readonly lower: Float64Array;
  readonly upper: Float64Array;
  /** Flow of the weight in force, within the bounds: above it one more request costs `cost`, below it `cost - move`. */
  readonly kink: Float64Array;
}

export type ArcRow = Pick<Row, 'firstArc' | 'endArc' | 'moveSeconds'>;

export function buildFlowProblem(problem: Problem, served: Float64Array): FlowProblem {
  const arcs = problem.arcRow.length;
  const lower = new Float64Array(arcs);
  const upper = new Float64Array(arcs);
  const kink = new Float64Array(arcs);
  for (let arc = 0; arc < arcs; arc++) {
    const flow = served[problem.arcRow[arc]!]!;
    lower[arc] = problem.arcMin[arc]! * flow;
    upper[arc] = problem.arcMax[arc]! * flow;
    kink[arc] = Math.min(Math.max(problem.arcPrevious[arc]! * flow, lower[arc]!), upper[arc]!);
  }
  return { problem, served, lower, upper, kink };
}

/** Replica-seconds per second that arrive at each column. */
export function loadsOf({ problem }: Pick<ArcProblem, 'problem'>, flows: Float64Array): Float64Array {
  const loads = new Float64Array(problem.columns.length);
  for (let arc = 0; arc < flows.length; arc++) {
    const flow = flows[arc]!;
    if (flow > 0) loads[problem.arcColumn[arc]!]! += problem.arcWork[arc]! * flow;
  }
  return loads;
}

/** Exact objective in user-seconds per second. */
export function objective(flowProblem: FlowProblem, flows: Float64Array): number {
  const { problem, served } = flowProblem;
  let total = 0;
  for (let arc = 0; arc < flows.length; arc++) {
    const row = problem.arcRow[arc]!;
    const flow = flows[arc]!;
    const left = problem.arcPrevious[arc]! * served[row]! - flow;
    if (flow > 0) total += problem.arcCost[arc]! * flow;
    if (left > 0) total += problem.rows[row]!.moveSeconds * left;
  }
  const loads = loadsOf(flowProblem, flows);
  for (let column = 0; column < loads.length; column++) {
    const { capacity, congestion } = problem.columns[column]!;
    total += capacity * congestion.cost(loads[column]! / capacity);
  }
  return total;
}

/**
 * Lower bound on the objective of any flows, by weak duality: with any price on each column's work, rows and columns
 * part, and each is minimised exactly on its own. Tight at the prices of an optimum.
 */
export function lowerBound(flowProblem: FlowProblem, prices: Float64Array): number {
  const { problem } = flowProblem;
  let total = 0;
  for (let column = 0; column < prices.length; column++) {
    const { capacity, congestion } = problem.columns[column]!;
    total += capacity * congestion.dual(prices[column]!);
  }
  for (let row = 0; row < problem.rows.length; row++) total += rowBound(flowProblem, prices, row);
  return total;
}

/** Least cost of one row at these prices: its cheapest pieces, filled up to the served flow. */
function rowBound(
  { problem, served, lower, upper, kink }: FlowProblem,
  prices: Float64Array,
  row: number,
): number {
  const { firstArc, endArc, moveSeconds } = problem.rows[row]!;
  let rest = served[row]!;
  let total = 0;
  const pieces: Piece[] = [];
  let cheapestAll = Infinity;
  for (let arc = firstArc; arc < endArc; arc++) {
    const slope = problem.arcCost[arc]! + problem.arcWork[arc]! * prices[problem.arcColumn[arc]!]!;
    const previous = problem.arcPrevious[arc]! * served[row]!;
    total += slope * lower[arc]! + moveSeconds * Math.max(0, previous - lower[arc]!);
    rest -= lower[arc]!;
    if (kink[arc]! > lower[arc]!)
      pieces.push({ slope: slope - moveSeconds, width: kink[arc]! - lower[arc]! });
    if (upper[arc]! - kink[arc]! >= served[row]!) cheapestAll = Math.min(cheapestAll, slope);
    else if (upper[arc]! > kink[arc]!) pieces.push({ slope, width: upper[arc]! - kink[arc]! });
  }
  if (cheapestAll < Infinity) pieces.push({ slope: cheapestAll, width: served[row]! });
  pieces.sort(bySlope);
  for (const { slope, width } of pieces) {
    if (rest <= 0) break;
    total += slope * Math.min(rest, width);
    rest -= width;
  }
  return total;
}

/** Flow of a row that costs the same per request. */
interface Piece {
  readonly slope: number;
  /** Requests per second. */
  readonly width: number;
}

function bySlope(a: Piece, b: Piece): number {
  return a.slope - b.slope;
}

/** A power of two near the mean flow of a row, so that dividing by it is exact. */
export function flowUnit(served: Float64Array): number {
  const flows = served.filter((flow) => flow > 0);
  if (flows.length === 0) return 1;
  const mean = flows.reduce((sum, flow) => sum + flow / flows.length, 0);
  return 2 ** Math.round(Math.log2(mean));
}

/** As much as its row and its column could have of an arc; `sizes`: of all rows, then of all columns. */
export function arcSize(
  { rows, arcRow, arcColumn, arcWork }: Problem,
  sizes: Float64Array,
  arc: number,
): number {
  return Math.min(sizes[arcRow[arc]!]!, sizes[rows.length + arcColumn[arc]!]! / arcWork[arc]!);
}
