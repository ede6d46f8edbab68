import { tbotDelaySeconds, ttftDelaySeconds } from '../profiles/curves.js';
import { BackupPlanner } from './backups.js';
import { compare } from './collections.js';
import { checkInput } from './input.js';
import type { LinearSolver } from './linear-program.js';
import { findOptimum, type Optimum } from './optimum.js';
import { buildProblem, type Problem } from './problem.js';
import { shareCapacity } from './shedding.js';
import type {
  AppliedBound,
  BackupShares,
  EngineLoad,
  EngineWeight,
  OptimizerInput,
  ShedFraction,
  Solution,
  SolutionRow,
} from './solution.js';
import { arcWeights } from './weights.js';

/** Utilisation closer to the hard limit than this share of it is at the limit. */
const AT_LIMIT = 1e-5;
/** Classes of different size are shared again, with the mean of what is served, up to this many times. */
const MOST_SHARINGS = 5;
/** Shed fractions below this are none. */
const LEAST_SHED = 1e-6;

/**
 * The plan of flows for this input: who serves how much of whose requests, and what is refused.
 * A function of its input: the solver brings speed, no memory.
 * @throws WardropError when the input is unusable or HiGHS fails; never because demand does not fit.
 */
export function solveFleet(solver: LinearSolver, input: OptimizerInput): Solution {
  const checked = checkInput(input);
  const { problem, served, optimum } = place(solver, checked.input);
  return {
    ...describe(checked.input, problem, served, optimum),
    warnings: [...new Set([...checked.warnings, ...problem.warnings])].sort(compare),
  };
}

interface Placement {
  readonly problem: Problem;
  /** Requests per second served, by row and class. */
  readonly served: readonly (readonly number[])[];
  readonly optimum: Optimum;
}

function place(solver: LinearSolver, input: OptimizerInput): Placement {
  let problem = buildProblem(input);
  const offered = problem.rows.map(({ classes }) =>
    classes.map(({ requestsPerSecond }) => requestsPerSecond),
  );
  const everything = Float64Array.from(problem.rows, ({ firstArc, endArc, demandRps }) =>
    endArc > firstArc ? demandRps : 0,
  );
  const result = findOptimum(solver, problem, everything);
  if (result.fits) {
    const served = offered.map((rates, row) => (everything[row]! > 0 ? rates : rates.map(() => 0)));
    return { problem, served, optimum: result.optimum };
  }
  let served = shareCapacity(solver, problem, input.policy.minShares);
  for (let sharing = 0; sharing < MOST_SHARINGS; sharing++) {
    const reweighed = buildProblem(input, served.flat());
    const settled = sameWork(problem, reweighed);
    problem = reweighed;
    if (settled) break;
    served = shareCapacity(solver, problem, input.policy.minShares);
  }
  return trim(solver, problem, served);
}

/** Places what was found to fit; should rounding leave a little without room after all, that is refused as well. */
function trim(solver: LinearSolver, problem: Problem, shared: readonly (readonly number[])[]): Placement {
  const served = shared.map((rates) => [...rates]);
  for (;;) {
    const totals = Float64Array.from(served, (rates) => rates.reduce((sum, rate) => sum + rate, 0));
    const result = findOptimum(solver, problem, totals);
    if (result.fits) return { problem, served, optimum: result.optimum };
    result.unplaced.forEach((unplaced, row) => {
      let rest = unplaced * (1 + 1e-6);
      for (let at = served[row]!.length - 1; at >= 0 && rest > 0; at--) {
        const cut = Math.min(rest, served[row]![at]!);
        served[row]![at]! -= cut;
        rest -= cut;
      }
    });
  }
}

function sameWork(a: Problem, b: Problem): boolean {
  return a.arcWork.every((work, arc) => Math.abs(work - b.arcWork[arc]!) <= 1e-6 * work);
}

function describe(
  input: OptimizerInput,
  problem: Problem,
  served: readonly (readonly number[])[],
  optimum: Optimum,
): Omit<Solution, 'warnings'> {
  const weights = arcWeights(optimum);
  const planner = new BackupPlanner(optimum, weights);
  const engineIds = input.state.fleet.engines.map(({ id }) => id);
  const backups = backupsByRow(problem, planner, engineIds);
  const rows = problem.rows.map((row, at): SolutionRow => {
    const flows = split(problem, at, optimum.flows, engineIds);
    return {
      frontendId: row.frontendId,
      poolId: row.poolId,
      demandRps: row.demandRps,
      flows: flows.map(({ engineId, value }) => ({ engineId, rps: value })),
      weights: split(problem, at, weights, engineIds).map(({ engineId, value }) => ({
        engineId,
        weight: value,
      })),
      shed: row.classes.map((demand, index) =>
        shedFraction(demand.priority, demand.requestsPerSecond, served[at]![index]!),
      ),
      backups: backups[at]!,
      bounds: appliedBounds(problem, at, weights, engineIds),
    };
  });
  return {
    rows,
    engines: engineLoads(input, optimum),
    objectiveSeconds: optimum.objective,
    lowerBoundSeconds: Math.min(optimum.lowerBound, optimum.objective),
    mixErrorSeconds: mixError(optimum),
  };
}

/** Values above 0 of a row's arcs, split among the members of columns by capacity, in the order of engine ids. */
function split(
  { rows, columns, arcColumn }: Problem,
  row: number,
  values: Float64Array,
  engineIds: readonly string[],
): { readonly engineId: string; readonly value: number }[] {
  const { firstArc, endArc } = rows[row]!;
  const parts: { engineId: string; value: number }[] = [];
  for (let arc = firstArc; arc < endArc; arc++) {
    if (!(values[arc]! > 0)) continue;
    const { members, capacities, capacity } = columns[arcColumn[arc]!]!;
    members.forEach((member, at) => {
      parts.push({ engineId: engineIds[member]!, value: (values[arc]! * capacities[at]!) / capacity });
    });
  }
  return parts.sort((a, b) => compare(a.engineId, b.engineId));
}

function shedFraction(priority: number, offered: number, served: number): ShedFraction {
  const fraction = offered > 0 ? 1 - served / offered : 0;
  return { priority, fraction: fraction < LEAST_SHED ? 0 : Math.min(1, fraction) };
}

function backupsByRow(
  problem: Problem,
  planner: BackupPlanner,
  engineIds: readonly string[],
): BackupShares[][] {
  const backups: BackupShares[][] = problem.rows.map(() => []);
  problem.columns.forEach(({ members }, column) => {
    members.forEach((member, at) => {
      for (const [arc, shares] of planner.withoutMember(column, at)) {
        const engines = shares.flatMap((share) =>
          splitShare(problem, share.column, share.share, member, engineIds),
        );
        backups[problem.arcRow[arc]!]!.push({
          ownerId: engineIds[member]!,
          shares: engines.sort((a, b) => compare(a.engineId, b.engineId)),
        });
      }
    });
  });
  for (const row of backups) row.sort((a, b) => compare(a.ownerId, b.ownerId));
  return backups;
}

/** A column's share by capacity among its members, the absent one excluded. */
function splitShare(
  { columns }: Problem,
  column: number,
  share: number,
  absent: number,
  engineIds: readonly string[],
): EngineWeight[] {
  const { members, capacities } = columns[column]!;
  const present = members.flatMap((member, at) =>
    member === absent ? [] : [{ member, capacity: capacities[at]! }],
  );
  const total = present.reduce((sum, { capacity }) => sum + capacity, 0);
  return present.map(({ member, capacity }) => ({
    engineId: engineIds[member]!,
    weight: (share * capacity) / total,
  }));
}

function appliedBounds(
  { rows, columns, arcColumn }: Problem,
  row: number,
  weights: Float64Array,
  engineIds: readonly string[],
): AppliedBound[] {
  const { bounds, firstArc, endArc } = rows[row]!;
  return [...bounds]
    .map(([engineId, { min, max }]): AppliedBound => {
      let weight = 0;
      for (let arc = firstArc; arc < endArc; arc++) {
        if (engineIds[columns[arcColumn[arc]!]!.members[0]!] === engineId) weight = weights[arc]!;
      }
      const atMin = min > 0 && weight <= min + 1e-9;
      const atMax = max < 1 && weight >= max - 1e-9;
      return { engineId, min, max, binding: atMin ? 'min' : atMax ? 'max' : null };
    })
    .sort((a, b) => compare(a.engineId, b.engineId));
}

/** Engines without capacity are listed too, with nothing on them. */
function engineLoads(input: OptimizerInput, optimum: Optimum): EngineLoad[] {
  const { columns } = optimum.flowProblem.problem;
  const loads = new Map<number, EngineLoad>();
  const { engines } = input.state.fleet;
  columns.forEach(({ members, capacities, capacity, congestion }, column) => {
    const rho = optimum.loads[column]! / capacity;
    const price = congestion.price(Math.min(rho, congestion.max));
    const atLimit = rho >= congestion.max * (1 - AT_LIMIT);
    members.forEach((member, at) => {
      loads.set(member, {
        engineId: engines[member]!.id,
        effectiveCapacity: capacities[at]!,
        rho,
        congestionPriceSeconds: price,
        scarcityPriceSeconds: atLimit ? Math.max(0, optimum.columnPrices[column]! - price) : 0,
      });
    });
  });
  return engines.map(
    ({ id }, at) =>
      loads.get(at) ?? {
        engineId: id,
        effectiveCapacity: 0,
        rho: 0,
        congestionPriceSeconds: 0,
        scarcityPriceSeconds: 0,
      },
  );
}

/** Queueing delay of the flows with their own sizes, minus the same at the reference mix, in user-seconds per second. */
function mixError({ flowProblem, flows, loads }: Optimum): number {
  const { rows, columns, arcRow, arcColumn, arcWork } = flowProblem.problem;
  let error = 0;
  flows.forEach((flow, arc) => {
    if (!(flow > 0)) return;
    const column = arcColumn[arc]!;
    const { profile, mix, capacity, latencyFactor } = columns[column]!;
    const rho = loads[column]! / capacity;
    const later = rows[arcRow[arc]!]!.mix.outputTokens - 1;
    const laterOfMix = Math.max(0, mix.outputTokensPerWorkSecond - mix.requestsPerWorkSecond);
    const own = ttftDelaySeconds(profile, rho) + later * tbotDelaySeconds(profile, rho);
    const reference =
      arcWork[arc]! *
      (mix.requestsPerWorkSecond * ttftDelaySeconds(profile, rho) +
        laterOfMix * tbotDelaySeconds(profile, rho));
    error += flow * latencyFactor * (own - reference);
  });
  return error;
}
