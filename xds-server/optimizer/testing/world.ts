import type { Engine, Frontend, Pool } from '../../fleet/fleet.js';
import type { Demand, EngineState } from '../../fleet/fleet-state.js';
import type { Policy } from '../../fleet/policy.js';
import { defaultPolicy } from '../../fleet/testing/policy.js';
import type { Profile } from '../../profiles/profile.js';
import type { OptimizerInput, ReferenceMix, RowWeights, Solution } from '../solution.js';

/** Inputs for tests and benches, from a few numbers. */
export interface World {
  readonly frontends: readonly string[];
  readonly engines: readonly WorldEngine[];
  /** Engine ids by pool id; one pool `chat` of all engines without it. */
  readonly pools?: Readonly<Record<string, readonly string[]>>;
  /** Milliseconds, `[frontend][engine]`. */
  readonly networkMs: readonly (readonly number[])[];
  readonly demands: readonly WorldDemand[];
  readonly policy?: Partial<Policy>;
  readonly previousWeights?: readonly RowWeights[];
  readonly referenceMix?: ReadonlyMap<string, ReferenceMix>;
  readonly settledSeconds?: number;
}

export interface WorldEngine extends Partial<Omit<EngineState, 'id' | 'replicas'>> {
  readonly id: string;
  readonly profile?: Profile;
  /** Ready replicas; default 1. */
  readonly replicas?: number;
}

export interface WorldDemand extends Partial<Demand> {
  readonly frontendId: string;
  readonly requestsPerSecond: number;
}

/** One replica serves this many requests per second, whatever their size. */
export function simpleProfile(requestsPerSecond: number, changes: Partial<Profile> = {}): Profile {
  return {
    id: `simple-${requestsPerSecond}`,
    work: {
      secondsPerRequest: 1 / requestsPerSecond,
      secondsPerUncachedPromptToken: 0,
      secondsPerOutputToken: 0,
    },
    ttft: { baseSeconds: 0.03, secondsPerUncachedPromptToken: 3e-5, queueSeconds: 0.002 },
    tbot: { baseSeconds: 0.008, kappa: 0.4 },
    maxFittedRho: 0.95,
    ...changes,
  };
}

export function worldInput(world: World): OptimizerInput {
  const profiles = world.engines.map(({ profile = simpleProfile(100) }) => profile);
  const ids = world.engines.map(({ id }) => id);
  const pools = Object.entries(world.pools ?? { chat: ids });
  return {
    state: {
      fleet: {
        frontends: world.frontends.map(frontendOf),
        engines: world.engines.map(({ id }, at) =>
          engineOf(id, profiles[at]!.id, world.engines[at]!.replicas ?? 1),
        ),
        pools: pools.map(([id, engineIds]): Pool => ({ id, model: id, needs: [], engineIds })),
        networkSeconds: world.networkMs.map((row) => row.map((ms) => ms / 1000)),
      },
      atMs: 0,
      engines: world.engines.map(stateOf),
      demands: world.demands.map((demand) => demandOf(demand, pools[0]![0])),
      settledSeconds: world.settledSeconds ?? 0,
    },
    profiles: new Map(profiles.map((profile) => [profile.id, profile])),
    policy: { ...defaultPolicy, ...world.policy },
    previousWeights: world.previousWeights ?? [],
    referenceMix: world.referenceMix ?? new Map(),
  };
}

/** The weights of a solution, as the next solve gets them. */
export function weightsOf(solution: Solution): readonly RowWeights[] {
  return solution.rows.map(({ frontendId, poolId, weights }) => ({
    frontendId,
    poolId,
    weights: new Map(weights.map(({ engineId, weight }) => [engineId, weight])),
  }));
}

/** Requests per second that one row sends to one engine. */
export function flowOf(solution: Solution, frontendId: string, engineId: string, poolId = 'chat'): number {
  const row = solution.rows.find((each) => each.frontendId === frontendId && each.poolId === poolId);
  return row?.flows.find((flow) => flow.engineId === engineId)?.rps ?? 0;
}

/** Three regions with an engine each: 100, 100 and 80 requests per second; demand of 90, 120 and 40. */
export const threeRegions: World = {
  frontends: ['central', 'east', 'west'],
  engines: [
    { id: 'a', profile: simpleProfile(100) },
    { id: 'b', profile: simpleProfile(100) },
    { id: 'c', profile: simpleProfile(80) },
  ],
  networkMs: [
    [40, 2, 60],
    [110, 60, 2],
    [2, 40, 110],
  ],
  demands: [
    { frontendId: 'west', requestsPerSecond: 90 },
    { frontendId: 'central', requestsPerSecond: 120 },
    { frontendId: 'east', requestsPerSecond: 40 },
  ],
};

function frontendOf(id: string): Frontend {
  return { id, region: id, listen: '127.0.0.1:1' };
}

function engineOf(id: string, profile: string, replicas: number): Engine {
  return {
    id,
    region: id,
    models: ['chat'],
    labels: {},
    profile,
    endpoints: Array.from({ length: replicas }, (_, at) => `127.0.0.1:${at + 1}`),
    metrics: { kind: 'none', path: '/metrics' },
    healthPath: '/health',
  };
}

function stateOf({ id, replicas = 1, ...state }: WorldEngine): EngineState {
  return {
    id,
    replicas: Array.from({ length: replicas }, (_, at) => ({ address: `127.0.0.1:${at + 1}`, ready: true })),
    health: state.health ?? 1,
    ramp: state.ramp ?? 1,
    drain: state.drain ?? 1,
    penalty: state.penalty ?? 0,
    latencyFactor: state.latencyFactor ?? 1,
  };
}

function demandOf(demand: WorldDemand, firstPool: string): Demand {
  return {
    poolId: firstPool,
    priority: 0,
    uncachedPromptTokens: 200,
    promptTokens: 1000,
    outputTokens: 100,
    followUpShare: 0.7,
    turnGapSeconds: 60,
    source: 'measured',
    ...demand,
  };
}
