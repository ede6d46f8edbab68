import { compare, sum } from '../collections.js';
import { ownerBackups } from './backups/owner-backups.js';
import { type DescribedRow, describe } from './explain/describe.js';
import { checkInput } from './input.js';
import { findByProgram, findOptimum, type Optimum } from './optimum.js';
import { buildProblem, type Problem } from './problem/problem.js';
import type { LinearSolver } from './program/linear-program.js';
import { relativeSize, type SharedCapacity, shareCapacity } from './shedding.js';
import type { BackupShares, Solution, SolutionRow, SolverInput } from './solution.js';
import { arcWeights } from './weights.js';

/** Classes of different size are shared again, with the mean of what is served, up to this many times. */
const MOST_SHARINGS = 5;
/** Relative change of work below which sharing again would change nothing. */
const SAME_WORK = 1e-6;
/** Relative excess over what has no room by which it is cut, four times as much in each trial. */
const LEAST_CUT = 1e-6;

/**
 * The plan of flows for this input: who serves how much of whose requests, and what is refused.
 * A function of its input: the solver brings speed, no memory.
 * @throws WardropError when the input is unusable or HiGHS fails; never because demand does not fit.
 */
export function solveFleet(solver: LinearSolver, input: SolverInput): Solution {
  const checked = checkInput(input);
  const { problem, served, optimum } = place(solver, checked.input);
  const weights = arcWeights(optimum);
  const described = describe(checked.input, served, optimum, weights);
  const { rows } = described;
  const backups = ownerBackups(
    { input: checked.input, optimum, weights, rows },
    (changed) => place(solver, changed).optimum,
  );
  const solved: SolutionRow[] = [];
  for (let row = 0; row < rows.length; row++) solved.push(withBackups(rows[row]!, backups[row]!));
  return {
    rows: solved,
    engines: described.engines,
    objectiveSeconds: described.objectiveSeconds,
    lowerBoundSeconds: described.lowerBoundSeconds,
    mixErrorSeconds: described.mixErrorSeconds,
    warnings: [...new Set([...checked.warnings, ...problem.warnings])].sort(compare),
  };
}

/** Written out: an object made by spreading another has a shape of its own, which dies with the solve. */
function withBackups(row: DescribedRow, backups: readonly BackupShares[]): SolutionRow {
  const { frontendId, poolId, demandRps, flows, weights, shed, bounds } = row;
  return { frontendId, poolId, demandRps, flows, weights, shed, bounds, backups };
}

interface Placement {
  readonly problem: Problem;
  /** Requests per second served, by row and class. */
  readonly served: readonly (readonly number[])[];
  readonly optimum: Optimum;
}

function place(solver: LinearSolver, input: SolverInput): Placement {
  let problem = buildProblem(input);
  const everything = new Float64Array(problem.rows.length);
  const served: number[][] = [];
  for (let row = 0; row < everything.length; row++) {
    const { asked, askedRps } = problem.rows[row]!;
    everything[row] = askedRps;
    served.push([...asked]);
  }
  const result = findOptimum(solver, problem, everything);
  if (result.fits) return { problem, served, optimum: result.optimum };
  const { minShares } = input.policy;
  let shared = shareCapacity(solver, problem, minShares, result);
  for (let sharing = 0; ; sharing++) {
    const reweighed = buildProblem(input, shared.served.flat());
    const settled = isSameWork(problem, reweighed, shared.served);
    problem = reweighed;
    if (settled || sharing === MOST_SHARINGS) break;
    shared = shareCapacity(solver, problem, minShares, result);
  }
  return trim(solver, input, problem, shared);
}

/** Places what was found to fit; should a little be without room after all, that is refused as well. */
function trim(
  solver: LinearSolver,
  input: SolverInput,
  reweighed: Problem,
  shared: SharedCapacity,
): Placement {
  let problem = reweighed;
  const served = shared.served.map((rates) => [...rates]);
  for (let trial = 0; ; trial++) {
    const totals = Float64Array.from(served, sum);
    const result = findByProgram(solver, problem, totals, shared.carrying);
    if (result.fits) return { problem, served, optimum: result.optimum };
    const { unplaced } = result;
    for (let row = 0; unplaced && row < unplaced.length; row++) {
      if (unplaced[row]! > 0)
        cutLowest(problem, row, served[row]!, unplaced[row]! * (1 + LEAST_CUT * 4 ** trial));
    }
    problem = buildProblem(input, served.flat());
  }
}

/** Takes mean requests per second off the classes of a row, given from the highest priority to the lowest. */
function cutLowest(problem: Problem, row: number, rates: number[], amount: number): void {
  const { classes } = problem.rows[row]!;
  let rest = amount;
  for (let at = rates.length - 1; at >= 0 && rest > 0; at--) {
    const size = relativeSize(problem, row, classes[at]!);
    const cut = Math.min(rest / size, rates[at]!);
    rates[at]! -= cut;
    rest -= cut * size;
  }
}

/**
 * Whether what is served makes the same work on each engine by the mean request of a row as by the sizes of its classes
 * relative to the mean before. It does where sizes differ by the same factor on all engines.
 */
function isSameWork(before: Problem, after: Problem, served: readonly (readonly number[])[]): boolean {
  return before.rows.every((row, at) => {
    const sizes = row.classes.map((request) => relativeSize(before, at, request));
    const requests = sum(served[at]!);
    const meanRequests = sum(served[at]!.map((rate, index) => rate * sizes[index]!));
    for (let arc = row.firstArc; arc < row.endArc; arc++) {
      const error = requests * after.arcWork[arc]! - meanRequests * before.arcWork[arc]!;
      if (Math.abs(error) > SAME_WORK * requests * after.arcWork[arc]!) return false;
    }
    return true;
  });
}
