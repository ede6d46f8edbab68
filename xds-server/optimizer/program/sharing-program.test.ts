import { describe, expect, test } from 'vitest';
import { WardropError } from '../../errors.js';
import { checkSolution } from '../check/check.js';
import { solveFleet } from '../solve.js';
import { simpleProfile, type World, worldInput } from '../testing/world.js';
import { loadHighs } from './highs.js';
import { LinearSolver } from './linear-program.js';

const highs = await loadHighs();

/** Two pools with an engine for 10 requests/s each, more of the first refused than of the second. */
const unlike: World = {
  frontends: ['f'],
  engines: ['a', 'b'].map((id) => ({ id, profile: simpleProfile(10) })),
  pools: { first: ['a'], second: ['b'] },
  networkMs: [[5, 5]],
  demands: [
    { frontendId: 'f', poolId: 'first', requestsPerSecond: 20 },
    { frontendId: 'f', poolId: 'second', requestsPerSecond: 12.5 },
    { frontendId: 'f', poolId: 'second', requestsPerSecond: 1, priority: -5 },
  ],
};

/** A solver that fails at all programs with this many fractions fixed. */
function failingAt(fixed: number): LinearSolver {
  const real = new LinearSolver(highs);
  const solver: Pick<LinearSolver, 'solve'> = {
    solve(program, options) {
      const found = program.lower.filter((value, at) => value !== 0 && value === program.upper[at]).length;
      if (found === fixed) throw new WardropError('WARDROP_SOLVER_FAILED', 'infeasible');
      return real.solve(program, options);
    },
  };
  return solver as LinearSolver;
}

/** A solver that takes programs of a second round for ones without a solution, until less of the first row is asked for. */
function finickySolver(): { readonly solver: LinearSolver; readonly refused: () => number } {
  const real = new LinearSolver(highs);
  let first: number | undefined;
  let refused = 0;
  const solver: Pick<LinearSolver, 'solve'> = {
    solve(program, options) {
      const isSecond = program.lower.some((value, at) => value > 0 && value === program.upper[at]);
      const asked = program.rowLower[0]!;
      if (isSecond) first ??= asked;
      if (isSecond && asked > first! - 5e-8) {
        refused++;
        throw new WardropError('WARDROP_SOLVER_FAILED', 'infeasible');
      }
      return real.solve(program, options);
    },
  };
  return { solver: solver as LinearSolver, refused: () => refused };
}

test('what fits within the tolerance of one round only is given a little more room in the next, until it fits', () => {
  const { solver, refused } = finickySolver();
  const ten = simpleProfile(10);
  const { rows } = solveFleet(
    solver,
    worldInput({
      frontends: ['f'],
      engines: [
        { id: 'a', profile: ten },
        { id: 'b', profile: ten },
      ],
      networkMs: [[5, 5]],
      demands: [
        { frontendId: 'f', requestsPerSecond: 30, priority: 5 },
        { frontendId: 'f', requestsPerSecond: 10, priority: 0 },
      ],
    }),
  );
  expect(refused()).toBeGreaterThan(0);
  expect(rows[0]!.shed).toEqual([
    { priority: 5, fraction: expect.closeTo(1 / 3, 4) as number },
    { priority: 0, fraction: expect.closeTo(1, 4) as number },
  ]);
});

describe('where HiGHS loses its way at a round, what was found before it holds', () => {
  const fractions = (fixed: number, world: World = unlike) =>
    solveFleet(failingAt(fixed), worldInput(world)).rows.map(({ shed }) => shed.map((each) => each.fraction));
  const about = (value: number) => expect.closeTo(value, 4) as number;

  test('of a new level nothing is served', () => {
    expect(fractions(2)).toEqual([[about(0.5)], [about(0.2), 1]]);
  });

  test('of a level that is begun as much as in the round before, which checks refuse where engines are left with room', () => {
    const oneLevel = { ...unlike, demands: unlike.demands.slice(0, 2) };
    expect(fractions(1, oneLevel)).toEqual([[about(0.5)], [about(0.5)]]);
    const input = worldInput(oneLevel);
    const faults = checkSolution(input, solveFleet(failingAt(1), input));
    expect(faults).toEqual([expect.stringMatching(/f and second: 0\.5.* is shed although b is not full/)]);
  });

  test('unless operators bound weights, as nobody could tell that too much is refused', () => {
    const bounds = [{ frontendId: 'f', poolId: 'first', engineId: 'a', min: 0.5, max: 1 }];
    expect(() => fractions(2, { ...unlike, policy: { bounds } })).toThrow('infeasible');
  });

  test('but without any round there is no solution', () => {
    expect(() => fractions(0)).toThrow('infeasible');
  });
});
