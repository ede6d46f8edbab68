import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import type { Profile } from '../profiles/profile.js';
import { Optimizer } from './index.js';
import type { Solution } from './solution.js';
import { simpleProfile, type World, type WorldDemand, worldInput } from './testing/world.js';

const optimizer = new Optimizer();
afterAll(() => optimizer.close());

const ten = simpleProfile(10);

/** Two engines of 10 requests per second each, one frontend. */
function twoEngines(demands: readonly WorldDemand[], changes: Partial<World> = {}): World {
  return {
    frontends: ['f'],
    engines: [
      { id: 'a', profile: ten },
      { id: 'b', profile: ten },
    ],
    networkMs: [[5, 5]],
    demands,
    ...changes,
  };
}

async function shedOf(world: World): Promise<Record<string, number>> {
  const { rows } = await optimizer.solve(worldInput(world));
  return Object.fromEntries(
    rows.flatMap(({ frontendId, poolId, shed }) =>
      shed.map(({ priority, fraction }) => [`${frontendId} ${poolId} ${priority}`, fraction]),
    ),
  );
}

describe('demand above capacity', () => {
  test('gets a plan with both engines full and the rest refused', async () => {
    const { rows, engines } = await optimizer.solve(
      worldInput(twoEngines([{ frontendId: 'f', requestsPerSecond: 30 }])),
    );
    expect(rows[0]!.shed[0]!.fraction).toBeCloseTo(1 / 3, 4);
    expect(rows[0]!.weights.reduce((sum, { weight }) => sum + weight, 0)).toBeCloseTo(1, 12);
    for (const { rho } of engines) {
      expect(rho).toBeLessThanOrEqual(1);
      expect(rho).toBeGreaterThan(0.9999);
    }
  });

  test('ends with the surge: nothing is refused as soon as demand fits', async () => {
    expect(await shedOf(twoEngines([{ frontendId: 'f', requestsPerSecond: 12 }]))).toEqual({ 'f chat 0': 0 });
    expect(await shedOf(twoEngines([{ frontendId: 'f', requestsPerSecond: 19.9 }]))).toEqual({
      'f chat 0': 0,
    });
  });

  test('a hard limit below one counts', async () => {
    const shed = await shedOf(
      twoEngines([{ frontendId: 'f', requestsPerSecond: 20 }], { policy: { maxUtilization: 0.8 } }),
    );
    expect(shed['f chat 0']).toBeCloseTo(0.2, 4);
  });
});

describe('who is refused', () => {
  test('of one priority, frontends that nobody hears of before any other, and nobody of a higher one for them', async () => {
    const world = (f: number): World => ({
      ...twoEngines([
        { frontendId: 'f', requestsPerSecond: f },
        { frontendId: 'g', requestsPerSecond: 8, isUnheard: true },
        { frontendId: 'g', requestsPerSecond: 6, priority: 5, isUnheard: true },
      ]),
      frontends: ['f', 'g'],
      networkMs: [
        [5, 5],
        [5, 5],
      ],
    });
    const some = await shedOf(world(10));
    expect(some['f chat 0']).toBeCloseTo(0, 4);
    expect(some['g chat 0']).toBeCloseTo(0.5, 3);
    expect(some['g chat 5']).toBeCloseTo(0, 4);
    const all = await shedOf(world(20));
    expect(all['f chat 0']).toBeCloseTo(0.3, 3);
    expect(all['g chat 0']).toBeCloseTo(1, 4);
    expect(all['g chat 5']).toBeCloseTo(0, 4);
  });

  test('lower priorities first, entirely, before a higher one loses anything', async () => {
    const shed = await shedOf(
      twoEngines([
        { frontendId: 'f', requestsPerSecond: 10, priority: 10 },
        { frontendId: 'f', requestsPerSecond: 15, priority: 5 },
        { frontendId: 'f', requestsPerSecond: 10, priority: 0 },
      ]),
    );
    expect(shed['f chat 10']).toBe(0);
    expect(shed['f chat 5']).toBeCloseTo(1 / 3, 4);
    expect(shed['f chat 0']).toBe(1);
  });

  test('a guaranteed share is served whatever the priority', async () => {
    const shed = await shedOf(
      twoEngines(
        [
          { frontendId: 'f', requestsPerSecond: 30, priority: 10 },
          { frontendId: 'f', requestsPerSecond: 10, priority: 0 },
        ],
        { policy: { minShares: [{ poolId: 'chat', priority: 0, share: 0.4 }] } },
      ),
    );
    expect(shed['f chat 0']).toBeCloseTo(0.6, 4);
    expect(shed['f chat 10']).toBeCloseTo(1 - 16 / 30, 4);
  });

  test('rows at one bottleneck lose the same fraction, others nothing', async () => {
    const world: World = {
      frontends: ['f', 'g', 'h'],
      engines: [
        { id: 'a', profile: ten },
        { id: 'b', profile: ten },
      ],
      pools: { left: ['a'], right: ['b'] },
      networkMs: [
        [5, 5],
        [50, 5],
        [5, 5],
      ],
      demands: [
        { frontendId: 'f', poolId: 'left', requestsPerSecond: 15 },
        { frontendId: 'g', poolId: 'left', requestsPerSecond: 5 },
        { frontendId: 'h', poolId: 'right', requestsPerSecond: 9 },
      ],
    };
    const shed = await shedOf(world);
    expect(shed['f left 0']).toBeCloseTo(0.5, 4);
    expect(shed['g left 0']).toBeCloseTo(0.5, 4);
    expect(shed['h right 0']).toBe(0);
  });

  test('whatever their demand and their engines, rows of one pool lose the same fraction', async () => {
    const rates = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 2, maxLength: 5 });
    const sizes = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(rates, sizes, async (demands, replicas) => {
        const offered = demands.reduce((sum, rate) => sum + rate, 0);
        const room = replicas.reduce((sum, each) => sum + 10 * each, 0);
        const { rows } = await optimizer.solve(
          worldInput({
            frontends: demands.map((_, at) => `f${at}`),
            engines: replicas.map((each, at) => ({ id: `e${at}`, profile: ten, replicas: each })),
            networkMs: demands.map((_, frontend) =>
              replicas.map((_, engine) => 5 + 10 * ((frontend + engine) % 4)),
            ),
            demands: demands.map((requestsPerSecond, at) => ({ frontendId: `f${at}`, requestsPerSecond })),
          }),
        );
        const expected = Math.max(0, 1 - room / offered);
        for (const { shed } of rows) expect(shed[0]?.fraction ?? 0).toBeCloseTo(expected, 4);
      }),
      { numRuns: 12 },
    );
  });

  test('a row with a way out takes it, so that the worst fraction is as small as can be', async () => {
    const world: World = {
      frontends: ['f', 'g'],
      engines: [
        { id: 'a', profile: ten },
        { id: 'b', profile: ten },
      ],
      pools: { narrow: ['a'], wide: ['a', 'b'] },
      networkMs: [
        [5, 200],
        [5, 200],
      ],
      demands: [
        { frontendId: 'f', poolId: 'narrow', requestsPerSecond: 10 },
        { frontendId: 'g', poolId: 'wide', requestsPerSecond: 12 },
      ],
    };
    const shed = await shedOf(world);
    expect(shed['f narrow 0']).toBeCloseTo(1 / 11, 4);
    expect(shed['g wide 0']).toBeCloseTo(1 / 11, 4);
  });

  test('requests of different size count by their work: what is served just fills the engines', async () => {
    const perToken = simpleProfile(1, {
      work: { secondsPerRequest: 0.01, secondsPerUncachedPromptToken: 0, secondsPerOutputToken: 1e-3 },
    });
    const { rows, engines } = await optimizer.solve(
      worldInput({
        ...twoEngines([
          { frontendId: 'f', requestsPerSecond: 10, outputTokens: 90, priority: 1 },
          { frontendId: 'f', requestsPerSecond: 20, outputTokens: 190 },
        ]),
        engines: [
          { id: 'a', profile: perToken },
          { id: 'b', profile: perToken },
        ],
      }),
    );
    expect(rows[0]!.shed).toEqual([
      { priority: 1, fraction: 0 },
      { priority: 0, fraction: expect.closeTo(0.75, 4) as number },
    ]);
    for (const { rho } of engines) expect(rho).toBeGreaterThan(0.9999);
  });

  test('whatever the classes, no capacity is left over and no class is served before a higher one', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 0, max: 3 })), {
          minLength: 1,
          maxLength: 4,
        }),
        async (classes) => {
          const byPriority = new Map(classes.map(([rate, priority]) => [priority, rate]));
          const demands = [...byPriority].map(([priority, requestsPerSecond]) => ({
            frontendId: 'f',
            priority,
            requestsPerSecond,
          }));
          const { rows, engines } = await optimizer.solve(worldInput(twoEngines(demands)));
          const offered = demands.reduce((sum, { requestsPerSecond }) => sum + requestsPerSecond, 0);
          expect(servedRps(rows[0]!)).toBeCloseTo(Math.min(offered, 20), 2);
          const [first, ...rest] = rows[0]!.shed;
          rest.reduce((higher, each) => {
            if (higher.fraction > 1e-5) expect(each.fraction).toBe(1);
            return each;
          }, first!);
          for (const { rho } of engines) expect(rho).toBeLessThanOrEqual(1);
        },
      ),
      { numRuns: 30 },
    );
  });
});

function servedRps({ flows }: Solution['rows'][number]): number {
  return flows.reduce((sum, { rps }) => sum + rps, 0);
}

test('no engine goes above its hard limit where what is left at the limits is taken back by rounding', async () => {
  const profile = (
    id: string,
    work: Profile['work'],
    ttft: Profile['ttft'],
    tbot: Profile['tbot'],
  ): Profile => ({
    ...{ id, work, ttft, tbot, maxFittedRho: 0.95 },
  });
  const quick = profile(
    'quick',
    {
      secondsPerRequest: 1e-3 / 0.45,
      secondsPerUncachedPromptToken: 5.2e-5,
      secondsPerOutputToken: 6e-5 / 0.45,
    },
    { baseSeconds: 0.04, secondsPerUncachedPromptToken: 6.5e-5, queueSeconds: 0.003 },
    { baseSeconds: 0.014, kappa: 0.5 },
  );
  const slow = profile(
    'slow',
    { secondsPerRequest: 4e-3, secondsPerUncachedPromptToken: 1.2e-4, secondsPerOutputToken: 2.4e-4 },
    { baseSeconds: 0.05, secondsPerUncachedPromptToken: 1.5e-4, queueSeconds: 0.005 },
    { baseSeconds: 0.027, kappa: 0.4 },
  );
  const demand = (
    frontendId: string,
    poolId: string,
    requestsPerSecond: number,
    uncachedPromptTokens: number,
    outputTokens: number,
  ) => ({
    ...{ frontendId, poolId, requestsPerSecond, uncachedPromptTokens, outputTokens, followUpShare: 0.5 },
  });
  const input = worldInput({
    frontends: ['f0', 'f1', 'f2'],
    engines: [
      { id: 'e2', profile: quick, replicas: 6 },
      { id: 'e7', profile: slow },
      { id: 'e8', profile: quick, replicas: 103 },
      {
        id: 'e9',
        profile: quick,
        replicas: 10,
        penalty: 0.21757500022649767,
        latencyFactor: 8.727519996697083,
      },
      { id: 'e10', profile: slow, replicas: 6 },
    ],
    pools: { p0: ['e7', 'e8'], p1: ['e2', 'e9', 'e10'], p4: ['e9', 'e10'] },
    networkMs: [
      [5, 100, 30, 5, 60],
      [5, 70, 100, 200, 100],
      [200, 5, 200, 200, 30],
    ],
    demands: [
      demand('f0', 'p4', 470, 376, 388),
      demand('f1', 'p1', 5190, 371, 415),
      demand('f2', 'p0', 2950, 124, 69),
      demand('f2', 'p1', 48_300, 282, 1),
    ],
    settledSeconds: 4000,
  });
  const { objectiveSeconds, lowerBoundSeconds } = await optimizer.solveChecked(input);
  expect(objectiveSeconds - lowerBoundSeconds).toBeLessThan(1e-4 * objectiveSeconds);
});
