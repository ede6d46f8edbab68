import { costTolerance } from './polish/node-prices.js';
import type { PolishedFlows } from './polish/polish.js';
import {
  buildFlowProblem,
  type FlowProblem,
  loadsOf,
  lowerBound,
  objective,
} from './problem/flow-problem.js';
import type { Problem } from './problem/problem.js';
import { markedArcs } from './problem/restrict.js';
import { choosePoints, FlowProgram, type ProgramFlows } from './program/flow-program.js';
import type { LinearSolver } from './program/linear-program.js';
import { missedArcs, polishWhole, workingSet } from './program/working-set.js';

/** Share of a row's flow below which unplaced flow is the solver's rounding. */
const PLACED = 1e-7;
/** Share of all work that rounding may put above hard limits. */
const LOAD_TOLERANCE = 1e-10;
/** A column may be this far above its hard limit, relative, by rounding. */
const LIMIT_TOLERANCE = 2e-6;
/** With more than this share of all work above hard limits, weights in force are no start any more. */
const MOST_OVERLOAD = 0.01;
/** Flows of the linear program this near their lower bound, relative, need no polish: it could not make them better. */
const EXACT = 1e-9;
/** Columns this near the hard limit, relative, are full. */
const FULL = 1e-5;
/** A polish that has not come to an end counts as done when it got this near. */
const CLOSE = 1e-6;
/** Rounds of the linear program, each with finer tangents around the last solution. */
const MOST_ROUNDS = 6;
/** Times that arcs are added for what has no room before it is asked how much of everything can be served. */
const MOST_LOOKS = 2;
/** Arcs that may join for each row, on average, for which the primal simplex is quicker than the dual. */
const FEW_JOINING = 0.5;
/** Cheapest arcs of each row to start with in overload, beside those that are known to be of use. */
const FEW_ARCS = 2;
/** Half the width in utilisation of the finely approximated part in the first round. */
const FIRST_SPREAD = 0.05;

/** The best flows for what is served of each row, and the proof. */
export interface Optimum {
  readonly flowProblem: FlowProblem;
  readonly flows: Float64Array;
  readonly loads: Float64Array;
  /** Value of each column's work, in user-seconds per replica-second. */
  readonly columnPrices: Float64Array;
  readonly objective: number;
  readonly lowerBound: number;
}

export type OptimumResult =
  | { readonly fits: true; readonly optimum: Optimum }
  /**
   * There seems to be no room. Arcs that were of use in the search, the flows where it began or ended, and what had no room
   * by row where it is known.
   */
  | {
      readonly fits: false;
      readonly useful: Uint8Array;
      readonly flows: Float64Array;
      readonly unplaced?: Float64Array;
    };

/**
 * Best flows when `served` of each row (requests per second) goes somewhere. With weights in force the optimum is near
 * them, and the simplex steps of the polish get there by themselves. Without, or when they do not arrive, the linear
 * program finds who goes where, and the polish makes it exact.
 */
export function findOptimum(solver: LinearSolver, problem: Problem, served: Float64Array): OptimumResult {
  if (problem.arcPrevious.some(isPositive)) {
    const result = fromWeightsInForce(buildFlowProblem(problem, served));
    if (result) return result;
  }
  return findByProgram(solver, problem, served);
}

function isPositive(value: number): boolean {
  return value > 0;
}

/** Nothing when the way from the weights in force is too long. */
function fromWeightsInForce(flowProblem: FlowProblem): OptimumResult | undefined {
  const start = flowProblem.kink.slice();
  settleRows(flowProblem, start);
  if (overload(flowProblem, start) > MOST_OVERLOAD) {
    return { fits: false, useful: workingSet(flowProblem, start, FEW_ARCS), flows: start };
  }
  const polished = polishWhole(flowProblem, start, new Uint8Array(start.length));
  if (!polished.converged) return undefined;
  if (overload(flowProblem, polished.flows) > LOAD_TOLERANCE) {
    return { fits: false, useful: polished.useful, flows: polished.flows };
  }
  return { fits: true, optimum: prove(flowProblem, polished) };
}

/**
 * Best flows by way of the linear program.
 * @param carrying marks arcs on which there is said to be room: what has none then, on any arcs, is told. Without, the
 * search is given up soon, and there may be room after all.
 */
export function findByProgram(
  solver: LinearSolver,
  problem: Problem,
  served: Float64Array,
  carrying?: Uint8Array,
): OptimumResult {
  const flowProblem = buildFlowProblem(problem, served);
  const tooMuch = aboveLimitsByBounds(flowProblem);
  if (tooMuch) {
    const flows = flowProblem.kink;
    return { fits: false, unplaced: tooMuch, useful: workingSet(flowProblem, flows), flows };
  }
  let best: Optimum | undefined;
  let spread = FIRST_SPREAD;
  const isNearLimit = carrying !== undefined && !isShed(flowProblem);
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const expected = best && utilisation(flowProblem, best.flows);
    const points = choosePoints(flowProblem, expected, spread, isNearLimit);
    const { flows, basic, unplaced, columnPrices, useful } = solveProgram(
      solver,
      flowProblem,
      points,
      carrying,
    );
    if (isUnplaced(flowProblem, unplaced)) return { fits: false, unplaced, useful, flows };
    const start = prove(flowProblem, { flows, columnPrices: exactPrices(flowProblem, flows, columnPrices) });
    if (Math.abs(gapOf(start)) <= EXACT) return { fits: true, optimum: start };
    const polished = polishWhole(flowProblem, start.flows, basic);
    const optimum = prove(flowProblem, polished);
    // At full engines the polish can end a little beside flows of the program that were at the optimum, or above hard limits.
    const keepsLimits = isWithinLimits(optimum);
    const nearer = keepsLimits && gapOf(optimum) < gapOf(start) ? optimum : start;
    if (!best || nearer.objective < best.objective) best = nearer;
    if ((polished.converged && keepsLimits) || gapOf(best) <= CLOSE) break;
    spread /= 8;
  }
  return { fits: true, optimum: best! };
}

/**
 * What rows must give up, in requests per second, where operators' minima alone drive a column above its hard limit;
 * nothing when they do not. No flows can help there, and the program would have no solution.
 */
function aboveLimitsByBounds(flowProblem: FlowProblem): Float64Array | undefined {
  const { problem, served, lower } = flowProblem;
  const loads = loadsOf(flowProblem, lower);
  let tooMuch: Float64Array | undefined;
  lower.forEach((flow, arc) => {
    const column = problem.arcColumn[arc]!;
    const { congestion, capacity } = problem.columns[column]!;
    const limit = congestion.max * capacity;
    if (!(flow > 0 && loads[column]! > limit)) return;
    const row = problem.arcRow[arc]!;
    tooMuch ??= new Float64Array(served.length);
    tooMuch[row] = Math.max(tooMuch[row]!, served[row]! * (1 - limit / loads[column]!));
  });
  return tooMuch;
}

/** Prices of the program where a column is full, which it knows; elsewhere the curve's own, which tangents blur. */
function exactPrices(flowProblem: FlowProblem, flows: Float64Array, prices: Float64Array): Float64Array {
  const { columns } = flowProblem.problem;
  return utilisation(flowProblem, flows).map((rho, column) => {
    const { congestion } = columns[column]!;
    const price = congestion.price(Math.min(rho, congestion.max));
    return rho < congestion.max * (1 - FULL) ? price : Math.max(price, prices[column]!);
  });
}

function gapOf({ objective, lowerBound }: Optimum): number {
  return objective > 0 ? (objective - lowerBound) / objective : 0;
}

/**
 * Solves the linear program on a working set of arcs, to which those are added that the prices show to be useful. The polish
 * looks at the others too, but it needs flows that fit, so they are added while some do not; and in overload, where it is
 * slow because all engines hang together, until there are none left.
 */
function solveProgram(
  solver: LinearSolver,
  flowProblem: FlowProblem,
  points: readonly (readonly number[])[],
  carrying?: Uint8Array,
): ProgramFlows & { readonly useful: Uint8Array } {
  const { problem } = flowProblem;
  const isKept = workingSet(flowProblem, flowProblem.kink, carrying ? FEW_ARCS : undefined);
  carrying?.forEach((isCarrying, arc) => {
    isKept[arc]! |= isCarrying;
  });
  const program = new FlowProgram(flowProblem, markedArcs(isKept), points);
  let result = program.solve(solver);
  for (let look = 0; carrying || (look < MOST_LOOKS && isUnplaced(flowProblem, result.unplaced)); look++) {
    const limits = result.rowCosts.map((cost) => cost - costTolerance(cost));
    const missed = missedArcs(problem, problem.arcCost, result.columnPrices, limits, isKept);
    if (missed.length === 0) break;
    for (const arc of missed) isKept[arc] = 1;
    program.offer(missed);
    result = program.solve(solver, {
      resume: true,
      isPrimal: missed.length < FEW_JOINING * problem.rows.length,
    });
  }
  return { ...result, useful: isKept };
}

/** Whether somebody who could be served is not, in part; then all that they could use is full. */
function isShed({ problem, served }: FlowProblem): boolean {
  return problem.rows.some(
    ({ demandRps, firstArc, endArc }, row) => endArc > firstArc && served[row]! < demandRps * (1 - PLACED),
  );
}

function isUnplaced({ served }: FlowProblem, unplaced: Float64Array): boolean {
  return unplaced.some((flow, row) => flow > PLACED * served[row]!);
}

function prove(
  flowProblem: FlowProblem,
  { flows, columnPrices }: Pick<PolishedFlows, 'flows' | 'columnPrices'>,
): Optimum {
  settleRows(flowProblem, flows);
  return {
    flowProblem,
    flows,
    loads: loadsOf(flowProblem, flows),
    columnPrices,
    objective: objective(flowProblem, flows),
    lowerBound: lowerBound(flowProblem, columnPrices),
  };
}

function isWithinLimits({ flowProblem, loads }: Optimum): boolean {
  return flowProblem.problem.columns.every(
    ({ capacity, congestion }, column) => loads[column]! <= congestion.max * capacity * (1 + LIMIT_TOLERANCE),
  );
}

/** Work above the hard limits as a share of all work. */
function overload(flowProblem: FlowProblem, flows: Float64Array): number {
  const { columns } = flowProblem.problem;
  const loads = loadsOf(flowProblem, flows);
  let above = 0;
  let all = 0;
  for (let column = 0; column < columns.length; column++) {
    const { capacity, congestion } = columns[column]!;
    above += Math.max(0, loads[column]! - congestion.max * capacity);
    all += loads[column]!;
  }
  return above > 0 ? above / all : 0;
}

function utilisation(flowProblem: FlowProblem, flows: Float64Array): Float64Array {
  return loadsOf(flowProblem, flows).map(
    (load, column) => load / flowProblem.problem.columns[column]!.capacity,
  );
}

/** Makes each row's flows add up to what is served, to the last bits, on the arc with most flow where it has room. */
function settleRows(flowProblem: FlowProblem, flows: Float64Array): void {
  const { problem, served, lower, upper } = flowProblem;
  for (let row = 0; row < problem.rows.length; row++) {
    const { firstArc, endArc } = problem.rows[row]!;
    let missing = served[row]!;
    for (let arc = firstArc; arc < endArc; arc++) missing -= flows[arc]!;
    while (missing !== 0) {
      const arc = arcWithRoom(flowProblem, flows, firstArc, endArc, missing > 0);
      if (arc < 0) break;
      const flow = Math.min(Math.max(flows[arc]! + missing, lower[arc]!), upper[arc]!);
      missing = flow === flows[arc]! + missing ? 0 : missing - (flow - flows[arc]!);
      flows[arc] = flow;
    }
  }
}

/** The arc of most flow, or the cheapest of those without, that can take or give more; -1 without any. */
function arcWithRoom(
  { problem, lower, upper }: FlowProblem,
  flows: Float64Array,
  firstArc: number,
  endArc: number,
  more: boolean,
): number {
  let best = -1;
  for (let arc = firstArc; arc < endArc; arc++) {
    if (more ? flows[arc]! >= upper[arc]! : flows[arc]! <= lower[arc]!) continue;
    const ahead = best < 0 ? 1 : flows[arc]! - flows[best]! || problem.arcCost[best]! - problem.arcCost[arc]!;
    if (ahead > 0) best = arc;
  }
  return best;
}
