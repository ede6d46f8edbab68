import type { OptimizerInput } from '../solution.js';
import { randomInput, randomNumbers } from './random.js';

/** Engines from a millionth of a replica, and rates from nothing to a billion requests per second, in up to two classes. */
export function oddInput(seed: number): OptimizerInput {
  const random = randomNumbers(seed);
  const scale = { frontends: 3, engines: 6, pools: 4, eligibility: 0.5, load: 1 };
  const { state, ...rest } = randomInput(seed, scale);
  const engines = state.engines.map((engine) => ({ ...engine, health: 10 ** (-6 * random()) }));
  const oddRate = (rate: number): number =>
    random() < 0.1 ? 0 : Math.min(1e9, rate * 10 ** (18 * random() - 10));
  const demands = state.demands.flatMap((demand) => {
    const odd = { ...demand, requestsPerSecond: oddRate(demand.requestsPerSecond) };
    if (random() < 0.7) return [odd];
    const longer = {
      outputTokens: 4 * demand.outputTokens,
      requestsPerSecond: oddRate(odd.requestsPerSecond),
    };
    return [
      { ...odd, priority: 5 },
      { ...demand, ...longer },
    ];
  });
  return { ...rest, state: { ...state, engines, demands } };
}

/** The same fleet when time is counted in another unit: so many times the requests, each of so much less work. */
export function inOtherUnit(input: OptimizerInput, factor: number): OptimizerInput {
  const { state, profiles } = input;
  return {
    ...input,
    profiles: new Map(
      [...profiles].map(([id, profile]) => {
        const { secondsPerRequest, secondsPerUncachedPromptToken, secondsPerOutputToken } = profile.work;
        const work = {
          secondsPerRequest: secondsPerRequest / factor,
          secondsPerUncachedPromptToken: secondsPerUncachedPromptToken / factor,
          secondsPerOutputToken: secondsPerOutputToken / factor,
        };
        return [id, { ...profile, work }];
      }),
    ),
    state: {
      ...state,
      demands: state.demands.map((demand) => ({
        ...demand,
        requestsPerSecond: demand.requestsPerSecond * factor,
      })),
    },
  };
}
