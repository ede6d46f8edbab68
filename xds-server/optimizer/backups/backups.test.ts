import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { workSeconds } from '../../profiles/profile.js';
import { Optimizer } from '../index.js';
import type { EngineWeight, OptimizerInput, Solution, SolutionRow } from '../solution.js';
import { randomInput } from '../testing/random.js';
import { flowOf, threeRegions, weightsOf, worldInput } from '../testing/world.js';
import { OVERLOAD_SLACK } from './backups.js';
import { MOST_LOSS_ARCS } from './owner-backups.js';

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

/**
 * Shares of up to five engines are left out as rounding when they are below a ten-thousandth each, which raises the others
 * by as much in all.
 */
const LEFT_OUT = 6e-4;

/** Shares of a row by which the weights of others grow when an engine is lost. */
function growth(before: SolutionRow, after: SolutionRow, lost: string): readonly EngineWeight[] {
  const gains = after.weights
    .filter(({ engineId }) => engineId !== lost)
    .map(({ engineId, weight }) => ({ engineId, weight: weight - weightOf(before, engineId) }))
    .filter(({ weight }) => weight > 0);
  const total = gains.reduce((sum, { weight }) => sum + weight, 0);
  return gains.map(({ engineId, weight }) => ({ engineId, weight: weight / total }));
}

/**
 * Whether an engine is equal to one before it: the loss of that one is then solved for, and rows between which it makes no
 * difference may share the others in another way.
 */
function hasEqualBefore({ state }: OptimizerInput, at: number): boolean {
  const { engines, pools, networkSeconds } = state.fleet;
  const kindOf = (index: number): string =>
    JSON.stringify([
      engines[index]!.profile,
      state.engines[index]!.replicas.length,
      pools.map(({ engineIds }) => engineIds.includes(engines[index]!.id)),
      networkSeconds.map((row) => row[index]),
    ]);
  return engines.slice(0, at).some((_, index) => kindOf(index) === kindOf(at));
}

/** Whether a load is above what backups may make of it. */
function isAboveSlack({ state }: OptimizerInput, loads: ReadonlyMap<string, number>): boolean {
  return state.engines.some(
    ({ id, replicas }) => (loads.get(id) ?? 0) > (1 + OVERLOAD_SLACK) * replicas.length,
  );
}

/** Loads with one engine's traffic at its backups and everything else where it was, by engine id. */
function loadsAtBackups(input: OptimizerInput, solution: Solution, lost: string): Map<string, number> {
  return loadsAt(input, solution, lost, (row) => sharesOf(row, lost));
}

/** The same with one engine's traffic at these shares of each row. */
function loadsAt(
  input: OptimizerInput,
  solution: Solution,
  lost: string,
  sharesIn: (row: SolutionRow) => readonly EngineWeight[],
): Map<string, number> {
  const loads = new Map<string, number>();
  for (const row of solution.rows) {
    const { uncachedPromptTokens, outputTokens } = input.state.demands.find(
      ({ frontendId, poolId }) => frontendId === row.frontendId && poolId === row.poolId,
    )!;
    for (const { engineId, rps } of row.flows) {
      const parts = engineId === lost ? sharesIn(row) : [{ engineId, weight: 1 }];
      for (const part of parts) {
        const engine = input.state.fleet.engines.find(({ id }) => id === part.engineId)!;
        const profile = input.profiles.get(engine.profile)!;
        const work = workSeconds(profile, { uncachedPromptTokens, outputTokens });
        loads.set(part.engineId, (loads.get(part.engineId) ?? 0) + rps * part.weight * work);
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
        for (const [at, { id }] of input.state.fleet.engines.entries()) {
          if (hasEqualBefore(input, at)) continue;
          const later = await optimizer.solve(without(input, solution, id));
          const planned = solution.rows.map((row, index) => growth(row, later.rows[index]!, id));
          const loads = loadsAt(input, solution, id, (row) => planned[solution.rows.indexOf(row)]!);
          if (isAboveSlack(input, loads)) continue;
          solution.rows.forEach((row, index) => {
            if (weightOf(row, id) === 0) return;
            for (const { engineId, weight } of planned[index]!) {
              const share = sharesOf(row, id).find((each) => each.engineId === engineId)?.weight ?? 0;
              expect(Math.abs(share - weight)).toBeLessThanOrEqual(LEFT_OUT);
            }
          });
        }
      }),
      { numRuns: 10 },
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
