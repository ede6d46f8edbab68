import { buildFlowProblem, type FlowProblem, loadsOf, lowerBound, objective } from './flow-problem.js';
import { choosePoints, FlowProgram } from './flow-program.js';
import type { LinearSolver } from './linear-program.js';
import type { PolishedFlows } from './polish.js';
import type { Problem } from './problem.js';
import { polishWhole } from './working-set.js';

/** Share of a row's flow below which unplaced flow is the solver's rounding. */
const PLACED = 1e-7;
/** Share by which rounding may take a load over the hard limit. */
const LOAD_TOLERANCE = 1e-9;
/** Rounds of the linear program, each with finer tangents around the last solution. */
const MOST_ROUNDS = 6;
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
  /** Requests per second by row for which there is no room, where they are known. */
  | { readonly fits: false; readonly unplaced?: Float64Array };

/**
 * Best flows when `served` of each row (requests per second) goes somewhere. With weights in force the optimum is near
 * them, and the simplex steps of the polish get there by themselves. Without, or when they do not arrive, the linear
 * program finds who goes where, and the polish makes it exact.
 */
export function findOptimum(solver: LinearSolver, problem: Problem, served: Float64Array): OptimumResult {
  if (problem.arcPrevious.some((weight) => weight > 0)) {
    const result = fromWeightsInForce(buildFlowProblem(problem, served));
    if (result) return result;
  }
  return findByProgram(solver, problem, served);
}

/** Nothing when the way from the weights in force is too long. */
function fromWeightsInForce(flowProblem: FlowProblem): OptimumResult | undefined {
  const start = Float64Array.from(flowProblem.kink);
  settleRows(flowProblem, start);
  const polished = polishWhole(flowProblem, start, new Uint8Array(start.length));
  if (!polished.converged) return undefined;
  if (!isWithinLimits(flowProblem, polished.flows)) return { fits: false };
  return { fits: true, optimum: prove(flowProblem, polished) };
}

/** Best flows by way of the linear program; how much has no room when not everything has. */
export function findByProgram(solver: LinearSolver, problem: Problem, served: Float64Array): OptimumResult {
  const flowProblem = buildFlowProblem(problem, served);
  const arcs = Int32Array.from(problem.arcRow.keys());
  let best: PolishedFlows | undefined;
  let expected: Float64Array | undefined;
  let spread = FIRST_SPREAD;
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const program = new FlowProgram(flowProblem, arcs, choosePoints(flowProblem, expected, spread));
    const { flows, basic, unplaced } = program.read(solver.solve(program.program));
    if (unplaced.some((flow, row) => flow > PLACED * served[row]!)) return { fits: false, unplaced };
    settleRows(flowProblem, flows);
    const polished = polishWhole(flowProblem, flows, basic);
    best = better(flowProblem, best, polished);
    if (polished.converged) break;
    expected = utilisation(flowProblem, polished.flows);
    spread /= 8;
  }
  return { fits: true, optimum: prove(flowProblem, best!) };
}

function prove(flowProblem: FlowProblem, { flows, columnPrices }: PolishedFlows): Optimum {
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

function better(flowProblem: FlowProblem, a: PolishedFlows | undefined, b: PolishedFlows): PolishedFlows {
  if (!a || b.converged) return b;
  return objective(flowProblem, b.flows) < objective(flowProblem, a.flows) ? b : a;
}

function isWithinLimits(flowProblem: FlowProblem, flows: Float64Array): boolean {
  const { columns } = flowProblem.problem;
  return utilisation(flowProblem, flows).every(
    (rho, column) => rho <= columns[column]!.congestion.max * (1 + LOAD_TOLERANCE),
  );
}

function utilisation(flowProblem: FlowProblem, flows: Float64Array): Float64Array {
  return loadsOf(flowProblem, flows).map(
    (load, column) => load / flowProblem.problem.columns[column]!.capacity,
  );
}

/** Makes each row's flows add up to what is served, to the last bits, on the arc with most flow where it has room. */
function settleRows(flowProblem: FlowProblem, flows: Float64Array): void {
  const { problem, served, lower, upper } = flowProblem;
  problem.rows.forEach(({ firstArc, endArc }, row) => {
    let missing = served[row]!;
    for (let arc = firstArc; arc < endArc; arc++) missing -= flows[arc]!;
    while (missing !== 0) {
      const arc = arcWithRoom(flowProblem, flows, firstArc, endArc, missing > 0);
      if (arc < 0) break;
      const flow = Math.min(Math.max(flows[arc]! + missing, lower[arc]!), upper[arc]!);
      missing = flow === flows[arc]! + missing ? 0 : missing - (flow - flows[arc]!);
      flows[arc] = flow;
    }
  });
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
