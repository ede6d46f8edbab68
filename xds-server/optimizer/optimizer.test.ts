import { afterAll, describe, expect, test } from 'vitest';
import { Optimizer } from './index.js';
import { flowOf, threeRegions, weightsOf, worldInput } from './testing/world.js';

const optimizer = new Optimizer();
afterAll(() => optimizer.close());

describe('three regions', () => {
  test('what an engine cannot take goes where it costs least in total', async () => {
    const solution = await optimizer.solve(worldInput(threeRegions));
    expect(flowOf(solution, 'west', 'a')).toBeCloseTo(90, 6);
    expect(flowOf(solution, 'east', 'c')).toBeCloseTo(40, 6);
    expect(flowOf(solution, 'central', 'c')).toBeGreaterThan(20);
    expect(flowOf(solution, 'central', 'b') + flowOf(solution, 'central', 'c')).toBeCloseTo(120, 9);
    for (const { rho } of solution.engines) expect(rho).toBeLessThanOrEqual(0.9 + 1e-6);
    expect(solution.objectiveSeconds - solution.lowerBoundSeconds).toBeLessThan(1e-9);
  });

  test('solving again from the weights in force changes not a bit of them', async () => {
    const first = await optimizer.solve(worldInput(threeRegions));
    const second = await optimizer.solve(
      worldInput({ ...threeRegions, previousWeights: weightsOf(first), settledSeconds: 3600 }),
    );
    expect(second.rows.map(({ weights }) => weights)).toEqual(first.rows.map(({ weights }) => weights));
  });
});
