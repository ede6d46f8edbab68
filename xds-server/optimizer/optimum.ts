import { buildFlowProblem, type FlowProblem, loadsOf, lowerBound, objective } from './flow-problem.js';
import { choosePoints, FlowProgram } from './flow-program.js';
import type { LinearSolver } from './linear-program.js';
import { type PolishedFlows, polish } from './polish.js';
import type { Problem } from './problem.js';

/** Share of a row's flow below which unplaced flow is the solver's rounding. */
const PLACED = 1e-7;
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
  /** Requests per second by row for which there is no room. */
  | { readonly fits: false; readonly unplaced: Float64Array };

/**
 * Best flows when `served` of each row (requests per second) goes somewhere: the linear program finds who goes where, the
 * polish takes the flows to the exact optimum.
 */
export function findOptimum(solver: LinearSolver, problem: Problem, served: Float64Array): OptimumResult {
  const flowProblem = buildFlowProblem(problem, served);
  const arcs = Int32Array.from(problem.arcRow.keys());
  let expected = expectedUtilisation(flowProblem);
  let spread = FIRST_SPREAD;
  let best: PolishedFlows | undefined;
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const program = new FlowProgram(flowProblem, arcs, choosePoints(flowProblem, expected, spread));
    const { flows, basic, unplaced } = program.read(solver.solve(program.program));
    if (unplaced.some((flow, row) => flow > PLACED * served[row]!)) return { fits: false, unplaced };
    settleRows(flowProblem, flows);
    const polished = polish(flowProblem, flows, basic);
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

/** Utilisation if the weights in force stayed; nothing before the first plan. */
function expectedUtilisation(flowProblem: FlowProblem): Float64Array | undefined {
  if (!flowProblem.problem.arcPrevious.some((weight) => weight > 0)) return undefined;
  return utilisation(flowProblem, flowProblem.kink);
}

function utilisation(flowProblem: FlowProblem, flows: Float64Array): Float64Array {
  return loadsOf(flowProblem, flows).map(
    (load, column) => load / flowProblem.problem.columns[column]!.capacity,
  );
}

/** Makes each row's flows add up to what is served, to the last bits, by nudging its largest ones. */
function settleRows({ problem, served, lower, upper }: FlowProblem, flows: Float64Array): void {
  problem.rows.forEach(({ firstArc, endArc }, row) => {
    let missing = served[row]!;
    for (let arc = firstArc; arc < endArc; arc++) missing -= flows[arc]!;
    const byFlow = Array.from({ length: endArc - firstArc }, (_, at) => firstArc + at);
    if (missing !== 0)
      byFlow.sort((a, b) => flows[b]! - flows[a]! || problem.arcCost[a]! - problem.arcCost[b]!);
    for (const arc of byFlow) {
      if (missing === 0) break;
      const flow = Math.min(Math.max(flows[arc]! + missing, lower[arc]!), upper[arc]!);
      missing -= flow - flows[arc]!;
      flows[arc] = flow;
    }
  });
}
