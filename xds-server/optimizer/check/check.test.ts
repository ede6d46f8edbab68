import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { checkSolution, Optimizer } from '../index.js';
import type { Solution } from '../solution.js';
import { randomInput } from '../testing/random.js';
import { simpleProfile, threeRegions, weightsOf, worldInput } from '../testing/world.js';

const optimizer = new Optimizer();
afterAll(() => optimizer.close());

test('every solution passes, with room and without, first and later', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(), fc.double({ min: 0.2, max: 1.4, noNaN: true }), async (seed, load) => {
      const input = randomInput(seed, { frontends: 3, engines: 7, pools: 3, eligibility: 0.5, load });
      const first = await optimizer.solve(input);
      expect(checkSolution(input, first)).toEqual([]);
      const { demands, ...state } = input.state;
      const later = {
        ...input,
        previousWeights: weightsOf(first),
        state: {
          ...state,
          settledSeconds: 200,
          engines: state.engines.map((engine, at) => (at === 0 ? { ...engine, health: 0 } : engine)),
          demands: demands.map((demand, at) => ({
            ...demand,
            requestsPerSecond: demand.requestsPerSecond * (0.7 + 0.1 * (at % 6)),
          })),
        },
      };
      expect(checkSolution(later, await optimizer.solve(later))).toEqual([]);
    }),
    { numRuns: 40 },
  );
});

test('half of a small engine may be empty in overload where that is next to nothing of all that pools tie to it, but not else', async () => {
  const faultsWith = async (replicas: number, pools: Readonly<Record<string, readonly string[]>>) => {
    const input = worldInput({
      frontends: ['f'],
      engines: [{ id: 'large', replicas }, { id: 'small' }],
      pools,
      networkMs: [[1, 2]],
      demands: Object.keys(pools).map((poolId) => ({
        frontendId: 'f',
        poolId,
        requestsPerSecond: 200 * replicas,
      })),
    });
    const solution = await optimizer.solve(input);
    const rows = solution.rows.map((row) => {
      const flows = row.flows.map(({ engineId, rps }) => ({
        engineId,
        rps: engineId === 'small' ? rps / 2 : rps,
      }));
      const served = flows.reduce((sum, { rps }) => sum + rps, 0);
      return { ...row, flows, shed: [{ priority: 0, fraction: 1 - served / row.demandRps }] };
    });
    return checkSolution(input, { ...solution, rows }).filter((fault) => fault.includes('is not full'));
  };
  const both = ['large', 'small'];
  expect(await faultsWith(20_000, { both })).toEqual([]);
  expect(await faultsWith(1000, { both })).toHaveLength(1);
  expect(await faultsWith(30_000, { apart: ['large'], one: ['small'] })).toHaveLength(1);
});

test('what breaks ties between equal engines is no fault, even where all else costs next to nothing', async () => {
  const none = { baseSeconds: 0, secondsPerUncachedPromptToken: 0, queueSeconds: 0 };
  const profile = simpleProfile(100, { ttft: none, tbot: { baseSeconds: 0, kappa: 0 } });
  const input = worldInput({
    frontends: ['west'],
    engines: ['a', 'b', 'c'].map((id) => ({ id, profile })),
    networkMs: [[0, 0, 0]],
    demands: [{ frontendId: 'west', requestsPerSecond: 20 }],
  });
  expect(checkSolution(input, await optimizer.solve(input))).toEqual([]);
});

test.each([
  ['one', 10, 5000, 10, 1],
  ['one much slower', 10, 5000, 1, 10],
  ['one a hundred times slower', 1000, 500, 10, 2],
])(
  'what all engines leave empty at their hard limits may be all at %s',
  async (_, rate, replicas, smallRate, smallReplicas) => {
    const input = worldInput({
      frontends: ['west'],
      engines: [
        { id: 'large', profile: simpleProfile(rate), replicas },
        { id: 'small', profile: simpleProfile(smallRate), replicas: smallReplicas },
      ],
      networkMs: [[5, 5000]],
      demands: [{ frontendId: 'west', requestsPerSecond: 2 * rate * replicas }],
    });
    expect(checkSolution(input, await optimizer.solve(input))).toEqual([]);
  },
);

describe('a tampered solution fails:', () => {
  const input = worldInput(threeRegions);
  const faultsOf = async (change: (solution: Solution) => Solution): Promise<string> =>
    checkSolution(input, change(await optimizer.solve(input))).join('\n');
  const withFirstRow = (solution: Solution, change: Partial<Solution['rows'][number]>): Solution => ({
    ...solution,
    rows: solution.rows.map((row, at) => (at === 0 ? { ...row, ...change } : row)),
  });

  test('a flow that got lost', async () => {
    const faults = await faultsOf((solution) =>
      withFirstRow(solution, { flows: solution.rows[0]!.flows.slice(1) }),
    );
    expect(faults).toMatch(/central and chat: flows add up to 30\.6\d* instead of 120/);
  });

  test('a flow to an engine outside the pool', async () => {
    const faults = await faultsOf((solution) =>
      withFirstRow(solution, {
        flows: [{ engineId: 'z', rps: 120 }],
        weights: [{ engineId: 'z', weight: 1 }],
      }),
    );
    expect(faults).toContain('z may not serve them');
  });

  test('more than an engine can take', async () => {
    const faults = await faultsOf((solution) =>
      withFirstRow(solution, { flows: [{ engineId: 'b', rps: 120 }] }),
    );
    expect(faults).toMatch(/engine b gets 1\.2 replica-seconds per second, its hard limit is 1/);
  });

  test('weights that do not add up to one', async () => {
    const faults = await faultsOf((solution) =>
      withFirstRow(solution, { weights: [{ engineId: 'b', weight: 0.9 }] }),
    );
    expect(faults).toContain('weights add up to 0.9 instead of 1');
  });

  test('shedding while there is room', async () => {
    const faults = await faultsOf((solution) =>
      withFirstRow(solution, {
        flows: solution.rows[0]!.flows.map(({ engineId, rps }) => ({ engineId, rps: rps / 2 })),
        shed: [{ priority: 0, fraction: 0.5 }],
      }),
    );
    expect(faults).toMatch(/0\.5 of a class is shed although a is not full/);
  });

  test('a wrong objective, and a bound above it', async () => {
    const { objectiveSeconds } = await optimizer.solve(input);
    const faults = await faultsOf((solution) => ({ ...solution, objectiveSeconds: 300 }));
    expect(faults).toContain(`the objective is 300 instead of ${objectiveSeconds.toFixed(4)}`);
    expect(faults).toContain(`the lower bound ${objectiveSeconds.toFixed(4)}`);
  });
});
