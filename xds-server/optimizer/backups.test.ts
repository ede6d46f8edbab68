import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { OVERLOAD_SLACK } from './backups.js';
import { Optimizer } from './index.js';
import { MOST_LOSS_ARCS } from './owner-backups.js';
import type { OptimizerInput, Solution, SolutionRow } from './solution.js';
import { randomInput } from './testing/random.js';
import { flowOf, threeRegions, weightsOf, worldInput } from './testing/world.js';

const optimizer = new Optimizer();
afterAll(() => optimizer.close());

function without(input: OptimizerInput, solution: Solution, engineId: string): OptimizerInput {
  const engines = input.state.engines.map((engine) =>
    engine.id === engineId ? { ...engine, health: 0 } : engine,
  );
  return { ...input, previousWeights: weightsOf(solution), state: { ...input.state, engines } };
}

function weightOf(row: SolutionRow, engineId: string): number {
  return row.weights.find((each) => each.engineId === engineId)?.weight ?? 0;
}

function sharesOf(row: SolutionRow, ownerId: string): SolutionRow['backups'][number]['shares'] {
  return row.backups.find((each) => each.ownerId === ownerId)?.shares ?? [];
}

/** Loads with one engine's traffic at its backups and everything else where it was, by engine id. */
function loadsAtBackups(input: OptimizerInput, solution: Solution, lost: string): Map<string, number> {
  const loads = new Map<string, number>();
  for (const row of solution.rows) {
    for (const { engineId, rps } of row.flows) {
      const parts = engineId === lost ? sharesOf(row, lost) : [{ engineId, weight: 1 }];
      for (const part of parts) {
        const engine = input.state.fleet.engines.find(({ id }) => id === part.engineId)!;
        const { secondsPerRequest } = input.profiles.get(engine.profile)!.work;
        loads.set(part.engineId, (loads.get(part.engineId) ?? 0) + rps * part.weight * secondsPerRequest);
      }
    }
  }
  return loads;
}

describe('backups', () => {
  test('are where the solution without the owner has more weight, in proportion', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), fc.double({ min: 0.2, max: 0.5, noNaN: true }), async (seed, load) => {
        const input = randomInput(seed, { frontends: 3, engines: 6, pools: 2, eligibility: 0.8, load });
        const solution = await optimizer.solve(input);
        for (const { id } of input.state.fleet.engines) {
          const later = await optimizer.solve(without(input, solution, id));
          if (later.engines.some(({ rho }) => rho > 0.9)) continue;
          solution.rows.forEach((row, at) => {
            if (weightOf(row, id) === 0) return;
            const gains = later.rows[at]!.weights.map(
              ({ engineId, weight }) => [engineId, weight - weightOf(row, engineId)] as const,
            ).filter(([, gain]) => gain > 1e-3);
            const total = gains.reduce((sum, [, gain]) => sum + gain, 0);
            for (const [engineId, gain] of gains) {
              const share = sharesOf(row, id).find((each) => each.engineId === engineId)?.weight ?? 0;
              expect(share).toBeCloseTo(gain / total, 1);
            }
          });
        }
      }),
      // Known fleets: where rows can swap engines at no cost, two solutions may share out the same loads differently.
      { numRuns: 10, seed: 2 },
    );
  });

  test('of one of several equal engines are the others, evenly', async () => {
    const solution = await optimizer.solve(
      worldInput({
        frontends: ['f'],
        engines: ['a', 'b', 'c', 'd', 'far'].map((id) => ({ id })),
        networkMs: [[5, 5, 5, 5, 500]],
        demands: [{ frontendId: 'f', requestsPerSecond: 100 }],
      }),
    );
    expect(sharesOf(solution.rows[0]!, 'b')).toEqual(
      ['a', 'c', 'd'].map((engineId) => ({ engineId, weight: expect.closeTo(1 / 3, 9) })),
    );
  });

  test('make room by traffic that will move, up to half above the hard limit', async () => {
    // b is nearest to a's traffic, and middle's own will leave b for it: b would run at 1.26, or 1.8 times its limit.
    const regions = (factor: number) =>
      worldInput({
        ...threeRegions,
        frontends: ['west', 'middle', 'east'],
        networkMs: [
          [2, 20, 40],
          [20, 2, 20],
          [40, 20, 2],
        ],
        demands: [
          { frontendId: 'west', requestsPerSecond: 90 * factor, followUpShare: 0 },
          { frontendId: 'middle', requestsPerSecond: 120 * factor, followUpShare: 0 },
          { frontendId: 'east', requestsPerSecond: 40 * factor, followUpShare: 0 },
        ],
      });
    const usual = await optimizer.solve(regions(0.6));
    const west = usual.rows.find(({ frontendId }) => frontendId === 'west')!;
    expect(sharesOf(west, 'a')).toEqual([{ engineId: 'b', weight: 1 }]);
    expect(flowOf(usual, 'middle', 'b') + flowOf(usual, 'west', 'a')).toBeGreaterThan(100);

    const input = regions(0.95);
    const loads = loadsAtBackups(input, await optimizer.solve(input), 'a');
    expect(loads.get('b')).toBeCloseTo(1 + OVERLOAD_SLACK, 1);
    expect(loads.get('b')! + loads.get('c')!).toBeCloseTo((250 * 0.95) / 90, 0);
  });

  test('are placed without a solve for each loss in a trial and beyond the bound', async () => {
    const small = randomInput(3, { frontends: 3, engines: 6, pools: 2, eligibility: 0.8, load: 0.7 });
    const backupsOf = async (input: OptimizerInput) =>
      (await optimizer.solve(input)).rows.map(({ backups }) => backups);
    expect(await backupsOf({ ...small, isTrial: true })).not.toEqual(await backupsOf(small));

    const large = randomInput(3, { frontends: 40, engines: 60, pools: 2, eligibility: 0.8, load: 0.5 });
    expect(12 * 2 * 40 * 40).toBeGreaterThan(MOST_LOSS_ARCS);
    expect(await backupsOf({ ...large, isTrial: true })).toEqual(await backupsOf(large));
  });

  test('exist for the engine of a row without demand', async () => {
    const solution = await optimizer.solve(
      worldInput({ ...threeRegions, demands: threeRegions.demands.slice(1) }),
    );
    const idle = solution.rows.find(({ demandRps }) => demandRps === 0)!;
    expect(idle.weights).toEqual([{ engineId: 'a', weight: 1 }]);
    expect(sharesOf(idle, 'a').map(({ weight }) => weight)).toEqual([1]);
  });
});
