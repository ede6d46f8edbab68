import type { Profile } from '../../profiles/profile.js';
import { workSeconds } from '../../profiles/profile.js';
import type { OptimizerInput } from '../solution.js';
import { type World, type WorldDemand, type WorldEngine, worldInput } from './world.js';

export interface RandomFleetOptions {
  readonly frontends: number;
  readonly engines: number;
  readonly pools: number;
  /** Share of the engines that may serve a pool. */
  readonly eligibility: number;
  /** Work offered over capacity, of the whole fleet. */
  readonly load: number;
}

/** Numbers in 0..1 that depend on the seed alone (mulberry32). */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Three kinds of hardware; seconds of an 8B model on one replica each. */
const hardware: readonly Profile[] = [
  kind('h100', 1, { base: 0.03, prefill: 2.6e-5, queue: 0.0015, token: 0.0075, kappa: 0.45 }),
  kind('a100', 0.45, { base: 0.04, prefill: 6.5e-5, queue: 0.003, token: 0.014, kappa: 0.5 }),
  kind('l40s', 0.25, { base: 0.05, prefill: 1.5e-4, queue: 0.005, token: 0.027, kappa: 0.4 }),
];

function kind(
  id: string,
  speed: number,
  at: { base: number; prefill: number; queue: number; token: number; kappa: number },
): Profile {
  return {
    id,
    work: {
      secondsPerRequest: 1e-3 / speed,
      secondsPerUncachedPromptToken: 0.8 * at.prefill,
      secondsPerOutputToken: 6e-5 / speed,
    },
    ttft: { baseSeconds: at.base, secondsPerUncachedPromptToken: at.prefill, queueSeconds: at.queue },
    tbot: { baseSeconds: at.token, kappa: at.kappa },
    maxFittedRho: 0.95,
  };
}

/** A fleet in places on a plane, with latencies by distance, pools of some engines, and demand for every row. */
export function randomInput(seed: number, options: RandomFleetOptions): OptimizerInput {
  return worldInput(randomWorld(seed, options));
}

function randomWorld(seed: number, options: RandomFleetOptions): World {
  const random = randomNumbers(seed);
  const name = (prefix: string, at: number): string => `${prefix}${String(at).padStart(4, '0')}`;
  const regions = Array.from({ length: Math.max(3, Math.round(options.frontends / 3)) }, () => [
    random(),
    random(),
  ]);
  const place = (): number[] => regions[Math.floor(random() * regions.length)]!;
  const frontends = Array.from({ length: options.frontends }, (_, at) => ({
    id: name('f', at),
    at: place(),
  }));
  const engines = Array.from({ length: options.engines }, (_, at) => ({
    id: name('e', at),
    at: place(),
    profile: hardware[Math.floor(random() * hardware.length)]!,
    replicas: 1 + Math.floor(random() * 12),
  }));
  const pools: Record<string, string[]> = {};
  for (let at = 0; at < options.pools; at++) {
    const ids = engines.filter(() => random() < options.eligibility).map(({ id }) => id);
    pools[name('p', at)] = ids.length > 0 ? ids : [engines[Math.floor(random() * engines.length)]!.id];
  }
  const sizes = Object.keys(pools).map(() => ({
    promptTokens: Math.round(300 + 3000 * random()),
    outputTokens: Math.round(20 + 400 * random()),
    cached: random() * 0.8,
    followUpShare: random(),
    turnGapSeconds: 20 + 100 * random(),
  }));
  const demands = frontends.flatMap(({ id }) =>
    Object.keys(pools).map((poolId, at): WorldDemand => {
      const { cached, ...size } = sizes[at]!;
      return {
        frontendId: id,
        poolId,
        ...size,
        uncachedPromptTokens: Math.round(size.promptTokens * (1 - cached)),
        requestsPerSecond: Math.exp(3 * random()),
      };
    }),
  );
  return {
    frontends: frontends.map(({ id }) => id),
    engines: engines.map(({ id, profile, replicas }): WorldEngine => ({ id, profile, replicas })),
    pools,
    networkMs: frontends.map((frontend) => engines.map((engine) => distanceMs(frontend.at, engine.at))),
    demands: scaled(demands, engines, pools, options.load),
  };
}

/** The same demand, each rate changed by up to this share either way. */
export function shakenDemand(input: OptimizerInput, share: number, seed: number): OptimizerInput {
  const random = randomNumbers(seed);
  const demands = input.state.demands.map((demand) => ({
    ...demand,
    requestsPerSecond: demand.requestsPerSecond * (1 + share * (2 * random() - 1)),
  }));
  return { ...input, state: { ...input.state, demands } };
}

/** Each pool gets its part of the load: what its engines have, shared by the number of pools that may use them. */
function scaled(
  demands: readonly WorldDemand[],
  engines: readonly { readonly id: string; readonly profile: Profile; readonly replicas: number }[],
  pools: Readonly<Record<string, readonly string[]>>,
  load: number,
): WorldDemand[] {
  const users = new Map<string, number>();
  for (const ids of Object.values(pools)) for (const id of ids) users.set(id, (users.get(id) ?? 0) + 1);
  const factors = new Map(
    Object.entries(pools).map(([poolId, ids]) => {
      const own = demands.filter((demand) => demand.poolId === poolId);
      const rate = own.reduce((sum, demand) => sum + demand.requestsPerSecond, 0);
      const mix = {
        uncachedPromptTokens: own[0]!.uncachedPromptTokens!,
        outputTokens: own[0]!.outputTokens!,
      };
      const most = engines.reduce(
        (sum, { id, profile, replicas }) =>
          ids.includes(id) ? sum + replicas / users.get(id)! / workSeconds(profile, mix) : sum,
        0,
      );
      return [poolId, (load * most) / rate];
    }),
  );
  return demands.map((demand) => ({
    ...demand,
    requestsPerSecond: demand.requestsPerSecond * factors.get(demand.poolId!)!,
  }));
}

function distanceMs(a: readonly number[], b: readonly number[]): number {
  return 2 + 200 * Math.hypot(a[0]! - b[0]!, a[1]! - b[1]!);
}
