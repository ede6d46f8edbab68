import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { checkSolution, recomputedObjective } from './check/check.js';
import { Optimizer } from './index.js';
import type { OptimizerInput, Solution, SolutionRow } from './solution.js';
import { shakenDemand } from './testing/random.js';
import { load, smallInput } from './testing/small.js';
import { weightsOf } from './testing/world.js';

const optimizer = new Optimizer();
afterAll(() => optimizer.close());

describe('optimality', () => {
  test('the objective is within a millionth of its proven lower bound while nothing is at a hard limit', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), load, async (seed, at) => {
        const { objectiveSeconds, lowerBoundSeconds } = await optimizer.solve(smallInput(seed, at));
        expect(objectiveSeconds - lowerBoundSeconds).toBeLessThan(1e-6 * objectiveSeconds);
      }),
      { numRuns: 30 },
    );
  });

  test('no shift of flow between two engines of a row lowers the objective', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), load, async (seed, at) => {
        const input = smallInput(seed, at);
        const solution = await optimizer.solve(input);
        const best = recomputedObjective(input, solution);
        for (const changed of shiftedSolutions(input, solution, 0.02)) {
          if (isOverloaded(input, changed)) continue;
          expect(recomputedObjective(input, changed)).toBeGreaterThan(best * (1 - 1e-9));
        }
      }),
      { numRuns: 15 },
    );
  });

  test('near the limit and above it, from weights in force too, it is within a ten-thousandth, and all that fits is served', async () => {
    const nearLimit = fc.double({ min: 0.9, max: 1.3, noNaN: true });
    await fc.assert(
      fc.asyncProperty(fc.nat(), nearLimit, async (seed, at) => {
        const input = smallInput(seed, at);
        const first = await optimizer.solve(input);
        const again = shakenDemand({ ...input, previousWeights: weightsOf(first) }, 0.05, seed);
        const second = await optimizer.solve(again);
        for (const { objectiveSeconds, lowerBoundSeconds } of [first, second]) {
          expect(objectiveSeconds - lowerBoundSeconds).toBeLessThan(1e-4 * objectiveSeconds);
        }
        const fresh = await optimizer.solve({ ...again, previousWeights: [] });
        expect(servedRps(second) / servedRps(fresh)).toBeCloseTo(1, 4);
      }),
      { numRuns: 12 },
    );
  });

  test('descent by pairwise shifts from an even spread ends at the same objective', async () => {
    const input = smallInput(7, 0.7);
    const { objectiveSeconds } = await optimizer.solve(input);
    const descended = descend(input, evenSpread(input, await optimizer.solve(input)));
    expect(descended).toBeGreaterThan(objectiveSeconds * (1 - 1e-6));
    expect(descended).toBeLessThan(objectiveSeconds * (1 + 1e-4));
  });
});

function isOverloaded(input: OptimizerInput, solution: Solution): boolean {
  return checkSolution(input, solution).some((fault) => fault.includes('hard limit'));
}

/** Each row's flow spread evenly over the engines that may serve it. */
function evenSpread(input: OptimizerInput, solution: Solution): Solution {
  return {
    ...solution,
    rows: solution.rows.map((row) => {
      const { engineIds } = input.state.fleet.pools.find(({ id }) => id === row.poolId)!;
      return {
        ...row,
        flows: engineIds.map((engineId) => ({ engineId, rps: row.demandRps / engineIds.length })),
      };
    }),
  };
}

/** Objective after shifts of ever smaller shares of each row between all pairs of engines, while any of them helps. */
function descend(input: OptimizerInput, start: Solution): number {
  let solution = start;
  let best = recomputedObjective(input, solution);
  for (let share = 0.25; share > 1e-4; share /= 2) {
    for (let improved = true; improved; ) {
      improved = false;
      for (const changed of shiftedSolutions(input, solution, share)) {
        const objective = recomputedObjective(input, changed);
        if (objective >= best * (1 - 1e-12)) continue;
        best = objective;
        solution = changed;
        improved = true;
        break;
      }
    }
  }
  return best;
}

/** The solution with a share of one row's demand moved from one engine to another, for all rows and pairs. */
function* shiftedSolutions(input: OptimizerInput, solution: Solution, share: number): Generator<Solution> {
  for (const [at, row] of solution.rows.entries()) {
    const { engineIds } = input.state.fleet.pools.find(({ id }) => id === row.poolId)!;
    for (const giver of engineIds) {
      for (const taker of engineIds) {
        const changed = shifted(row, giver, taker, share * row.demandRps);
        if (changed) yield { ...solution, rows: solution.rows.with(at, changed) };
      }
    }
  }
}

function shifted(row: SolutionRow, giver: string, taker: string, most: number): SolutionRow | undefined {
  const flows = new Map(row.flows.map(({ engineId, rps }) => [engineId, rps]));
  const amount = Math.min(most, flows.get(giver) ?? 0);
  if (giver === taker || amount <= 0) return undefined;
  flows.set(giver, flows.get(giver)! - amount);
  flows.set(taker, (flows.get(taker) ?? 0) + amount);
  return { ...row, flows: [...flows].map(([engineId, rps]) => ({ engineId, rps })) };
}

function servedRps({ rows }: Solution): number {
  return rows.reduce((total, { flows }) => flows.reduce((sum, { rps }) => sum + rps, total), 0);
}
