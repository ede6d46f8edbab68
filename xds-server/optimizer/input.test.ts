import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { WardropError } from '../errors.js';
import type { Demand, EngineState } from '../fleet/fleet-state.js';
import { checkSolution, Optimizer } from './index.js';
import { checkInput } from './input.js';
import type { OptimizerInput } from './solution.js';
import { simpleProfile, threeRegions, worldInput } from './testing/world.js';

const optimizer = new Optimizer();
afterAll(() => optimizer.close());

const input = worldInput(threeRegions);

function withState(change: Partial<OptimizerInput['state']>): OptimizerInput {
  return { ...input, state: { ...input.state, ...change } };
}

function withDemand(change: Partial<Demand>): OptimizerInput {
  const [first, ...rest] = input.state.demands;
  return withState({ demands: [{ ...first!, ...change }, ...rest] });
}

function withEngine(change: Partial<EngineState>): OptimizerInput {
  const [first, ...rest] = input.state.engines;
  return withState({ engines: [{ ...first!, ...change }, ...rest] });
}

function withProfile(change: Parameters<typeof simpleProfile>[1]): OptimizerInput {
  const profile = { ...simpleProfile(100, change), id: 'simple-100' };
  return { ...input, profiles: new Map([...input.profiles, [profile.id, profile]]) };
}

function refusal(given: OptimizerInput): WardropError {
  try {
    checkInput(given);
  } catch (error) {
    if (error instanceof WardropError) return error;
    throw error;
  }
  throw new Error('the input was accepted');
}

describe('is refused, with the place of the fault:', () => {
  test.each([
    ['an unknown rate', withDemand({ requestsPerSecond: Number.NaN }), 'requestsPerSecond is NaN'],
    ['a negative rate', withDemand({ requestsPerSecond: -1 }), 'requestsPerSecond is -1'],
    ['an unknown size', withDemand({ outputTokens: Number.NaN }), 'outputTokens is NaN'],
    ['demand for a pool that does not exist', withDemand({ poolId: 'none' }), 'the fleet has no such pool'],
    [
      'demand of a frontend that does not exist',
      withDemand({ frontendId: 'none' }),
      'the fleet has no such frontend',
    ],
    [
      'demand given twice',
      withState({ demands: [...input.state.demands, input.state.demands[0]!] }),
      'was given twice',
    ],
    ['unknown health', withEngine({ health: Number.NaN }), 'engine a: health is NaN'],
    ['a state of another engine', withEngine({ id: 'b' }), 'the state of engine a is labelled b'],
    [
      'a missing state',
      withState({ engines: input.state.engines.slice(1) }),
      '2 engine states were given for 3 engines',
    ],
    ['an unknown latency', withNetwork(Number.NaN), 'networkSeconds[0][0] is NaN'],
    ['a negative latency', withNetwork(-0.001), 'networkSeconds[0][0] is -0.001'],
    [
      'an impossible limit',
      { ...input, policy: { ...input.policy, maxUtilization: 1.2 } },
      'maxUtilization is 1.2',
    ],
    [
      'an impossible bound',
      {
        ...input,
        policy: {
          ...input.policy,
          bounds: [{ frontendId: 'west', poolId: 'chat', engineId: 'a', min: 0.7, max: 0.3 }],
        },
      },
      '0 <= min <= max <= 1 must hold',
    ],
  ])('%s', (_, given, message) => {
    expect(refusal(given)).toMatchObject({
      code: 'WARDROP_INPUT_INVALID',
      message: expect.stringContaining(message) as string,
    });
  });

  test.each([
    ['a missing profile', { ...input, profiles: new Map() }, 'engine a: there is no profile simple-100'],
    [
      'work that is no number',
      withProfile({
        work: { secondsPerRequest: Number.NaN, secondsPerUncachedPromptToken: 0, secondsPerOutputToken: 0 },
      }),
      'secondsPerRequest is NaN',
    ],
    [
      'requests that cost nothing',
      withProfile({
        work: { secondsPerRequest: 0, secondsPerUncachedPromptToken: 1, secondsPerOutputToken: 0 },
      }),
      'would cost no work',
    ],
    ['a batch without end', withProfile({ tbot: { baseSeconds: 0.01, kappa: 1 } }), 'kappa is 1'],
    ['a range beyond full', withProfile({ maxFittedRho: 1.5 }), 'maxFittedRho is 1.5'],
  ])('%s', (_, given, message) => {
    expect(refusal(given)).toMatchObject({
      code: 'WARDROP_PROFILE_INVALID',
      message: expect.stringContaining(message) as string,
    });
  });
});

test('what is merely too large is bounded, and the solution says so', async () => {
  const { warnings, engines } = await optimizer.solve(withEngine({ health: 7, latencyFactor: 1000 }));
  expect(warnings).toEqual([
    'engine a: health is 7; 1.25 is used, the most that is believed',
    'engine a: latencyFactor is 1000; 10 is used, the most that is believed',
  ]);
  expect(engines[0]!.effectiveCapacity).toBe(1.25);
});

test('any numbers give a plan that passes the checks, or a coded error', async () => {
  const number = fc.oneof(fc.double(), fc.double({ min: 0, max: 1000, noNaN: true }));
  const absurd = fc.record(
    {
      requestsPerSecond: number,
      outputTokens: number,
      promptTokens: number,
      uncachedPromptTokens: number,
      followUpShare: number,
      turnGapSeconds: number,
    },
    { requiredKeys: [] },
  );
  await fc.assert(
    fc.asyncProperty(absurd, number, number, async (demand, health, settledSeconds) => {
      const given = {
        ...withDemand(demand),
        state: { ...withDemand(demand).state, engines: withEngine({ health }).state.engines, settledSeconds },
      };
      try {
        const solution = await optimizer.solve(given);
        expect(checkSolution(checkInput(given).input, solution)).toEqual([]);
      } catch (error) {
        expect(error).toMatchObject({ code: 'WARDROP_INPUT_INVALID' });
      }
    }),
    { numRuns: 150 },
  );
});

function withNetwork(seconds: number): OptimizerInput {
  const { fleet } = input.state;
  const networkSeconds = fleet.networkSeconds.map((row, at) => (at === 0 ? row.with(0, seconds) : row));
  return withState({ fleet: { ...fleet, networkSeconds } });
}
