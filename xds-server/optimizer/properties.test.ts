import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { Optimizer } from './index.js';
import type { Solution } from './solution.js';
import { shuffled, timesLarger, withNetwork } from './testing/changed.js';
import { inOtherUnit } from './testing/odd.js';
import { randomInput } from './testing/random.js';
import { anyLoad, load, smallInput } from './testing/small.js';
import { flowOf, simpleProfile, threeRegions, type World, weightsOf, worldInput } from './testing/world.js';

const optimizer = new Optimizer();
afterAll(() => optimizer.close());

describe('determinism', () => {
  // The example has costs in the millions, near a hard limit.
  test('the order of all lists is irrelevant, to the byte', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), anyLoad, async (seed, at) => {
        const input = smallInput(seed, at);
        expect(JSON.stringify(await optimizer.solve(shuffled(input, seed)))).toBe(
          JSON.stringify(await optimizer.solve(input)),
        );
      }),
      { numRuns: 15, examples: [[10189663, 1.0066717168243056]] },
    );
  });

  test('what was solved before is irrelevant, to the byte', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.nat(),
        fc.array(fc.tuple(fc.nat(), anyLoad), { maxLength: 4 }),
        anyLoad,
        async (seed, others, at) => {
          const input = randomInput(seed, {
            frontends: 5,
            engines: 12,
            pools: 4,
            eligibility: 0.5,
            load: at,
          });
          const fresh = new Optimizer();
          const expected = JSON.stringify(await fresh.solve(input));
          await fresh.close();
          for (const [otherSeed, otherLoad] of others)
            await optimizer.solve(smallInput(otherSeed, otherLoad));
          expect(JSON.stringify(await optimizer.solve(input))).toBe(expected);
        },
      ),
      { numRuns: 10 },
    );
  });

  test('in overload, a row that asks for nothing keeps its weights, as all that could serve it are full', async () => {
    const overloaded = { frontends: 2, engines: 3, pools: 3, eligibility: 0.8, load: 3 };
    for (const seed of [3, 4, 6, 39]) {
      const input = randomInput(seed, overloaded);
      const idle = { ...input, state: { ...input.state, demands: input.state.demands.slice(1) } };
      const first = await optimizer.solve(idle);
      const again = await optimizer.solve({ ...idle, previousWeights: weightsOf(first) });
      expect(again.rows[0]).toMatchObject({ demandRps: 0, weights: first.rows[0]!.weights });
    }
  });

  test('solving again from its own weights keeps them, however long conditions have held', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), load, fc.constantFrom(0, 100, 4000), async (seed, at, settledSeconds) => {
        const input = smallInput(seed, at);
        const first = await optimizer.solve(input);
        const again = await optimizer.solve({
          ...input,
          previousWeights: weightsOf(first),
          state: { ...input.state, settledSeconds },
        });
        expect(again.rows.map(({ weights }) => weights)).toEqual(first.rows.map(({ weights }) => weights));
      }),
      { numRuns: 20 },
    );
  });
});

describe('sense of direction', () => {
  test("raising one pair's network cost never raises that pair's flow", async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), load, fc.nat(2), fc.nat(5), async (seed, at, frontend, engine) => {
        const input = smallInput(seed, at);
        const raised = withNetwork(input, frontend, engine, (seconds) => seconds + 0.02);
        const { id: frontendId } = input.state.fleet.frontends[frontend]!;
        const { id: engineId } = input.state.fleet.engines[engine]!;
        const flow = (solution: Solution): number =>
          input.state.fleet.pools.reduce(
            (sum, { id }) => sum + flowOf(solution, frontendId, engineId, id),
            0,
          );
        expect(flow(await optimizer.solve(raised))).toBeLessThanOrEqual(
          flow(await optimizer.solve(input)) * (1 + 1e-6) + 1e-6,
        );
      }),
      { numRuns: 25 },
    );
  });

  test('a priority or retry setting changes no weight while nothing is shed', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), fc.nat(9), async (seed, priority) => {
        const input = smallInput(seed, 0.5);
        const split = input.state.demands.flatMap((demand) => [
          { ...demand, requestsPerSecond: demand.requestsPerSecond * 0.3, outputTokens: 50 },
          { ...demand, requestsPerSecond: demand.requestsPerSecond * 0.7, priority: 5 },
        ]);
        const swapped = split.map((demand) => ({
          ...demand,
          priority: demand.priority === 5 ? priority - 10 : 3,
        }));
        const weightsWith = async (demands: typeof split, retries = input.policy.retries) => {
          const given = {
            ...input,
            policy: { ...input.policy, retries },
            state: { ...input.state, demands },
          };
          return (await optimizer.solve(given)).rows.map(({ weights }) => weights);
        };
        const weights = await weightsWith(split);
        expect(await weightsWith(swapped)).toEqual(weights);
        expect(await weightsWith(split, { max: 0.5, min: 0.1 })).toEqual(weights);
      }),
      { numRuns: 15 },
    );
  });

  test('scaling demand and capacity scales flows and leaves weights alone', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), load, fc.constantFrom(2, 7, 1000), async (seed, at, factor) => {
        const input = smallInput(seed, at);
        const small = await optimizer.solve(input);
        const large = await optimizer.solve(timesLarger(input, factor));
        const weights = (solution: Solution): Map<string, number> =>
          new Map(
            solution.rows.flatMap((row) =>
              row.weights.map(({ engineId, weight }) => [
                `${row.frontendId} ${row.poolId} ${engineId}`,
                weight,
              ]),
            ),
          );
        const [before, after] = [weights(small), weights(large)];
        for (const key of [...before.keys(), ...after.keys()]) {
          expect(after.get(key) ?? 0).toBeCloseTo(before.get(key) ?? 0, 5);
        }
        expect(large.objectiveSeconds / factor).toBeCloseTo(small.objectiveSeconds, 6);
      }),
      { numRuns: 15 },
    );
  });
});

test('the unit in which all rates are told changes nothing, in overload either', async () => {
  /** What frontends at one place get is no matter, as it makes no difference who of them goes where. */
  const flows = (solution: Solution, unit: number): Map<string, number> => {
    const sums = new Map<string, number>();
    for (const { poolId, flows } of solution.rows) {
      for (const { engineId, rps } of flows) {
        const key = `${poolId} ${engineId}`;
        sums.set(key, (sums.get(key) ?? 0) + rps / unit);
      }
    }
    return sums;
  };
  await fc.assert(
    fc.asyncProperty(
      fc.nat(),
      anyLoad,
      fc.constantFrom(1e-9, 1e-6, 1e-3, 60, 3600, 1e5),
      async (seed, at, unit) => {
        const input = smallInput(seed, at);
        const told = await optimizer.solve(input);
        const other = await optimizer.solve(inOtherUnit(input, unit));
        for (const [at, { rho }] of told.engines.entries())
          expect(other.engines[at]!.rho).toBeCloseTo(rho, 6);
        for (const [at, { shed }] of told.rows.entries()) {
          expect(other.rows[at]!.shed[0]!.fraction).toBeCloseTo(shed[0]!.fraction, 6);
        }
        const before = flows(told, 1);
        const after = flows(other, unit);
        for (const key of [...before.keys(), ...after.keys()]) {
          const rps = before.get(key) ?? 0;
          expect(Math.abs((after.get(key) ?? 0) - rps)).toBeLessThan(1e-6 * (1 + rps));
        }
      },
    ),
    { numRuns: 30 },
  );
});

test("operators' bounds hold, whatever the load and the weights in force", async () => {
  const share = fc.double({ min: 0, max: 1, noNaN: true });
  await fc.assert(
    fc.asyncProperty(fc.nat(), anyLoad, share, share, async (seed, at, one, other) => {
      const [min, max] = [Math.min(one, other), Math.max(one, other)];
      const input = smallInput(seed, at);
      const { id: frontendId } = input.state.fleet.frontends[0]!;
      const pool = input.state.fleet.pools.find(({ engineIds }) => engineIds.length > 1);
      fc.pre(pool !== undefined);
      const engineId = pool!.engineIds[0]!;
      const bounds = [{ frontendId, poolId: pool!.id, engineId, min, max }];
      const free = await optimizer.solve(input);
      for (const previousWeights of [[], weightsOf(free)]) {
        const { rows } = await optimizer.solve({
          ...input,
          previousWeights,
          policy: { ...input.policy, bounds },
        });
        const row = rows.find((each) => each.frontendId === frontendId && each.poolId === pool!.id)!;
        const weight = row.weights.find((each) => each.engineId === engineId)?.weight ?? 0;
        expect(weight).toBeGreaterThanOrEqual(min - 1e-9);
        expect(weight).toBeLessThanOrEqual(max + 1e-9);
      }
    }),
    { numRuns: 10 },
  );
});

describe('equal engines', () => {
  const twins: World = {
    frontends: ['north', 'south'],
    engines: [{ id: 'a' }, { id: 'b', replicas: 3 }, { id: 'c' }, { id: 'd', replicas: 2 }],
    networkMs: [
      [5, 5, 30, 30],
      [30, 30, 5, 5],
    ],
    demands: [
      { frontendId: 'north', requestsPerSecond: 310 },
      { frontendId: 'south', requestsPerSecond: 90 },
    ],
  };

  test('have the same utilisation at first placement', async () => {
    const { engines } = await optimizer.solve(worldInput(twins));
    expect(engines[0]!.rho).toBeCloseTo(engines[1]!.rho, 12);
    expect(engines[2]!.rho).toBeCloseTo(engines[3]!.rho, 12);
  });

  test('also where they are no single column, and where no queue tells one from the other', async () => {
    const idle = simpleProfile(100, {
      ttft: { baseSeconds: 0.03, secondsPerUncachedPromptToken: 0, queueSeconds: 0 },
      tbot: { baseSeconds: 0, kappa: 0 },
    });
    const loose = { frontendId: 'north', poolId: 'chat', min: 0, max: 1 };
    const { engines } = await optimizer.solve(
      worldInput({
        ...twins,
        engines: twins.engines.map((engine) => ({ ...engine, profile: idle })),
        policy: {
          bounds: [
            { ...loose, engineId: 'a' },
            { ...loose, engineId: 'b' },
          ],
        },
      }),
    );
    expect(engines[0]!.rho / engines[1]!.rho).toBeCloseTo(1, 2);
  });
});

test('after a surge ends, traffic is home within ten minutes', async () => {
  const surge: World = {
    ...threeRegions,
    demands: threeRegions.demands.map((demand) => ({
      ...demand,
      requestsPerSecond: demand.frontendId === 'central' ? 140 : 40,
    })),
  };
  const calm: World = {
    ...surge,
    demands: surge.demands.map((demand) => ({
      ...demand,
      requestsPerSecond: demand.frontendId === 'central' ? 50 : 40,
    })),
  };
  const home = flowOf(await optimizer.solve(worldInput(calm)), 'central', 'b');
  let solution = await optimizer.solve(worldInput(surge));
  expect(solution.rows[0]!.weights[0]!.weight).toBeLessThan(0.6);
  for (let settledSeconds = 0; settledSeconds <= 600; settledSeconds += 20) {
    solution = await optimizer.solve(
      worldInput({ ...calm, previousWeights: weightsOf(solution), settledSeconds }),
    );
  }
  expect(flowOf(solution, 'central', 'b') / home).toBeCloseTo(1, 2);
});
