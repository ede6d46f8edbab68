import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { type ExplainedPair, explain, explanationText, Optimizer } from '../index.js';
import type { OptimizerInput, Solution } from '../solution.js';
import { randomInput } from '../testing/random.js';
import { threeRegions, type World, weightsOf, worldInput } from '../testing/world.js';

const optimizer = new Optimizer();
afterAll(() => optimizer.close());

const central = { frontendId: 'central', poolId: 'chat' };

async function explained(world: World, pair: ExplainedPair) {
  const input = worldInput(world);
  return explain(input, await optimizer.solve(input), pair);
}

function scaled(world: World, factor: number): World {
  return {
    ...world,
    demands: world.demands.map((demand) => ({
      ...demand,
      requestsPerSecond: factor * demand.requestsPerSecond,
    })),
  };
}

/** Spread of marginal cost in seconds among the used engines of each row without bounds, and least distance of others. */
function rowCosts(input: OptimizerInput, solution: Solution) {
  return solution.rows.map(({ frontendId, poolId }) => {
    const engineId = input.state.fleet.engines[0]!.id;
    const { choices, rowMarginalSeconds } = explain(input, solution, { frontendId, poolId, engineId });
    const used = choices.filter(({ rps }) => rps > 0).map(({ marginalSeconds }) => marginalSeconds);
    const unused = choices.filter(({ rps }) => rps === 0).map(({ marginalSeconds }) => marginalSeconds);
    return { used, unused, row: rowMarginalSeconds! };
  });
}

describe('the two columns', () => {
  test('add up to their totals, line by line', async () => {
    const { choices } = await explained(threeRegions, { ...central, engineId: 'b' });
    expect(choices.map(({ engineId }) => engineId)).toEqual(['b', 'c', 'a']);
    for (const { lines, latencySeconds, marginalSeconds } of choices) {
      expect(lines.reduce((sum, line) => sum + line.latencySeconds, 0)).toBe(latencySeconds);
      expect(lines.reduce((sum, line) => sum + line.marginalSeconds, 0)).toBe(marginalSeconds);
    }
  });

  test('add up on any fleet, at and above its limit too', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), fc.double({ min: 0.3, max: 1.3, noNaN: true }), async (seed, load) => {
        const input = randomInput(seed, { frontends: 3, engines: 6, pools: 2, eligibility: 0.7, load });
        const solution = await optimizer.solve(input);
        for (const { frontendId, poolId, weights } of solution.rows) {
          const { choices } = explain(input, solution, {
            frontendId,
            poolId,
            engineId: weights[0]!.engineId,
          });
          for (const { lines, latencySeconds, marginalSeconds } of choices) {
            expect(lines.reduce((sum, line) => sum + line.latencySeconds, 0)).toBe(latencySeconds);
            expect(lines.reduce((sum, line) => sum + line.marginalSeconds, 0)).toBe(marginalSeconds);
          }
        }
      }),
      { numRuns: 8 },
    );
  });

  test('used engines cost a row the same within a millisecond, unused ones no less; on any fleet, with moves or without', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), fc.double({ min: 0.3, max: 0.9, noNaN: true }), async (seed, load) => {
        const input = randomInput(seed, { frontends: 4, engines: 8, pools: 3, eligibility: 0.6, load });
        const first = await optimizer.solve(input);
        const surge = {
          ...input,
          previousWeights: weightsOf(first),
          state: {
            ...input.state,
            demands: input.state.demands.map((demand, at) => ({
              ...demand,
              requestsPerSecond: demand.requestsPerSecond * (at % 2 ? 0.8 : 1.1),
            })),
          },
        };
        const second = await optimizer.solve(surge);
        for (const [given, solution] of [
          [input, first],
          [surge, second],
        ] as const) {
          for (const { used, unused, row } of rowCosts(given, solution)) {
            for (const cost of used) expect(Math.abs(cost - row)).toBeLessThan(1e-3);
            for (const cost of unused) expect(cost - row).toBeGreaterThan(-1e-3);
          }
        }
      }),
      { numRuns: 25 },
    );
  });

  test('the delay to others is the exact derivative of their latency', async () => {
    const { choices, load } = await explained(threeRegions, { ...central, engineId: 'c' });
    const line = choices
      .find(({ engineId }) => engineId === 'c')!
      .lines.find(({ name }) => name === 'delay to others')!;
    // 100 tokens on the profile of `simpleProfile`: queue of 2 ms * rho / (1 - rho), tokens of 8 ms / (1 - 0.4 rho).
    const latency = (rho: number): number => (0.002 * rho) / (1 - rho) + (99 * 0.008) / (1 - 0.4 * rho);
    const step = 1e-6;
    const slope = (latency(load.rho + step) - latency(load.rho - step)) / (2 * step);
    expect(line.marginalSeconds).toBeCloseTo(load.rho * slope, 4);
  });
});

describe('reasons', () => {
  test('an unused engine says how far it is from being used', async () => {
    const { engine, rowMarginalSeconds } = await explained(threeRegions, { ...central, engineId: 'a' });
    expect(engine.use).toBe('unused');
    expect(engine.shortSeconds).toBeCloseTo(engine.marginalSeconds - rowMarginalSeconds!, 5);
    expect(engine.shortSeconds).toBeGreaterThan(0);
  });

  test('scarcity has a price only at the hard limit', async () => {
    const calm = await explained(threeRegions, { ...central, engineId: 'b' });
    expect(calm.load.scarcityPriceSeconds).toBe(0);
    const full = await explained(scaled(threeRegions, 1.5), { ...central, engineId: 'b' });
    expect(full.load.scarcityPriceSeconds).toBeGreaterThan(0);
    expect(full.shed[0]!.fraction).toBeGreaterThan(0.2);
  });

  test('an engine outside the pool, without capacity or out of reach says so', async () => {
    const world: World = {
      ...threeRegions,
      engines: [...threeRegions.engines, { id: 'd', replicas: 0 }, { id: 'e' }, { id: 'f' }],
      pools: { chat: ['a', 'b', 'c', 'd', 'e'] },
      networkMs: threeRegions.networkMs.map((row) => [...row, 5, Infinity, 5]),
    };
    const uses = await Promise.all(
      ['d', 'e', 'f'].map(async (engineId) => (await explained(world, { ...central, engineId })).engine.use),
    );
    expect(uses).toEqual(['without capacity', 'unreachable', 'not eligible']);
    const text = explanationText(await explained(world, { ...central, engineId: 'd' }));
    expect(text).toContain('Engine d has no capacity now.');
    const [first, ...others] = threeRegions.engines;
    const lost = worldInput({ ...threeRegions, engines: [first!, ...others] });
    const replicas = [{ address: '10.0.0.1:1', ready: false }];
    const engines = lost.state.engines.map((engine, at) => (at === 0 ? { ...engine, replicas } : engine));
    const input = { ...lost, state: { ...lost.state, engines } };
    const pair = { ...central, engineId: first!.id };
    expect(explanationText(explain(input, await optimizer.solve(input), pair))).toContain(
      'has no capacity now.\nIts state: 0 of 1 replicas are ready.',
    );
  });

  test('an engine that only other pools have nobody else than says so', async () => {
    const input = worldInput(threeRegions);
    const [chat] = input.state.fleet.pools;
    const pools = [{ ...chat!, engineIds: ['a', 'b'], lastResortIds: ['c'] }];
    const narrowed = { ...input, state: { ...input.state, fleet: { ...input.state.fleet, pools } } };
    const found = explain(narrowed, await optimizer.solve(narrowed), { ...central, engineId: 'c' });
    expect(found.engine).toMatchObject({ use: 'last resort', weight: 0 });
    expect(explanationText(found)).toContain(
      'weight 0, because the engine is lost or drained and only in service for pools that have nobody else',
    );
  });

  test('a bound that decides carries the difference in cost', async () => {
    const bounds = [{ ...central, engineId: 'a', min: 0.1, max: 0.1 }];
    const { engine, rowMarginalSeconds } = await explained(
      { ...threeRegions, policy: { bounds } },
      { ...central, engineId: 'a' },
    );
    expect(engine.weight).toBeCloseTo(0.1, 9);
    expect(engine.bound?.binding).toBe('min');
    expect(engine.lines.find(({ name }) => name === 'bound')!.marginalSeconds).toBeLessThan(0);
    expect(engine.marginalSeconds).toBeCloseTo(rowMarginalSeconds!, 5);
  });

  test('a row of which all weights are pinned costs what its engines do by their weights', async () => {
    for (const factor of [1, 0]) {
      const pins = { a: 0.2, b: 0.3, c: 0.5 };
      const bounds = Object.entries(pins).map(([engineId, pin]) => ({
        ...central,
        ...{ engineId, min: pin, max: pin },
      }));
      const { choices, rowMarginalSeconds } = await explained(
        { ...scaled(threeRegions, factor), policy: { bounds } },
        { ...central, engineId: 'a' },
      );
      const unbound = ({ lines, marginalSeconds }: (typeof choices)[number]) =>
        marginalSeconds - lines.find(({ name }) => name === 'bound')!.marginalSeconds;
      const mean = choices.reduce((sum, choice) => sum + choice.weight * unbound(choice), 0);
      expect(rowMarginalSeconds).toBeCloseTo(mean, 6);
      for (const { marginalSeconds } of choices) expect(marginalSeconds).toBeCloseTo(mean, 6);
    }
  });
});

test('the text says what a bound of nothing keeps away, and what would not come anyway', async () => {
  const textOf = async (engineId: string, factor: number) => {
    const bounds = [{ ...central, engineId, min: 0, max: 0 }];
    return explanationText(
      await explained({ ...scaled(threeRegions, factor), policy: { bounds } }, { ...central, engineId }),
    );
  };
  const near = await textOf('b', 1);
  expect(near).toContain('A bound pins the weight to 0.0 %, and that decides it.');
  expect(near).toContain('without the bound this engine would be used.');
  const far = await textOf('c', 0.1);
  expect(far).toContain('; it would be that without the bound, too.');
  expect(far).toMatch(/this engine is (?!0\.0)\d+\.\d ms short of being used/);
});

test('the text says what makes an engine another one than its profile says', async () => {
  const textOf = async (change: object) => {
    const engines = threeRegions.engines.map((engine) =>
      engine.id === 'b' ? { ...engine, ...change } : engine,
    );
    return explanationText(await explained({ ...threeRegions, engines }, { ...central, engineId: 'b' }));
  };
  expect(await textOf({})).not.toContain('Its state:');
  expect(await textOf({ penalty: 0.85, latencyFactor: 6.5 })).toContain(
    'Its state: a penalty takes 85 % of its capacity; its latencies count 6.5 times, as it answers so much slower than its profile says.',
  );
  expect(await textOf({ drain: 0 })).toContain('Engine b has no capacity now.\nIts state: it is drained.');
  expect(await textOf({ drain: 0.5, ramp: 0.25, health: 0.6 })).toContain(
    'Its state: it counts as 60 % of its profile, by what it gets done and what comes from elsewhere; ' +
      'it is starting, at 25 %; it is being drained, at 50 %.',
  );
});

test('the text compares with those of many engines that count most', async () => {
  const engines = Array.from({ length: 40 }, (_, at) => ({ id: `e${at}`, health: 1 - at / 100 }));
  const networkMs = threeRegions.networkMs.map(() => engines.map((_, at) => 1 + at));
  const text = explanationText(
    await explained({ ...threeRegions, engines, networkMs }, { ...central, engineId: 'e0' }),
  );
  expect(text.match(/^e\d+ /gm)).toHaveLength(20);
  expect(text).toContain('… and 19 more with less weight or at a higher cost; JSON has all');
});

test('the text does not blame capacity for what a bound refuses', async () => {
  const bounds = [{ ...central, engineId: 'a', min: 1, max: 1 }];
  const world = { ...scaled(threeRegions, 1.2), policy: { bounds } };
  const text = explanationText(await explained(world, { ...central, engineId: 'a' }));
  expect(text).toMatch(/find no engine below 100\.0 % that the operator’s bounds allow and are refused/);
  expect(text).not.toContain('its capacity is not scarce');
});

test('the text does not blame load for what no engine may, can or is there to serve', async () => {
  const networkMs = threeRegions.networkMs.map((row, at) => (at === 0 ? row.map(() => Infinity) : row));
  const frontendId = threeRegions.frontends[0]!;
  const text = explanationText(
    await explained({ ...threeRegions, networkMs }, { frontendId, poolId: 'chat', engineId: 'a' }),
  );
  expect(text).toContain('weight 0, because the frontend cannot reach the engine');
  expect(text).toMatch(
    /No engine can serve these requests of \w+ now\. All \d+\.\d requests\/s are refused\./,
  );
  expect(text).not.toContain('Demand above capacity');
});

test('the text names weight, both columns, the limit and the other engines', async () => {
  const text = explanationText(await explained(scaled(threeRegions, 1.5), { ...central, engineId: 'b' }));
  expect(text).toContain('central → b, pool chat: weight');
  expect(text).toContain('expected latency       marginal cost');
  expect(text).toMatch(/Engine b is 100\.0 % utilised/);
  expect(text).toMatch(/Demand above capacity: of 180\.0 requests\/s, 25\.3 % of priority 0/);
  expect(text).toContain('short by');
});
