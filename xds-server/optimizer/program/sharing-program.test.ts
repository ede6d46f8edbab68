import { expect, test } from 'vitest';
import { WardropError } from '../../errors.js';
import { solveFleet } from '../solve.js';
import { simpleProfile, worldInput } from '../testing/world.js';
import { loadHighs } from './highs.js';
import { LinearSolver } from './linear-program.js';

const highs = await loadHighs();

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
