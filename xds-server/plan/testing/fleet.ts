import type { Engine, Fleet } from '../../fleet/fleet.js';
import type { FleetState } from '../../fleet/fleet-state.js';
import { engineStates } from '../../fleet/testing/engine-states.js';
import { defaultPolicy } from '../../fleet/testing/policy.js';
import type { Solution, SolutionRow } from '../../optimizer/solution.js';
import type { Profile } from '../../profiles/profile.js';
import type { EvolveInput } from '../evolve.js';

/** One row for a test: weights by engine, and what else is not ordinary. */
export interface TestRow {
  readonly frontendId?: string;
  readonly demandRps?: number;
  readonly weights: Readonly<Record<string, number>>;
  readonly shed?: SolutionRow['shed'];
  readonly backups?: SolutionRow['backups'];
}

export const POOL = 'llama/0';

/** A profile whose work is 10 ms of a replica for each request, so that one replica serves 100 requests/s. */
export const profile: Profile = {
  id: 'plain',
  work: { secondsPerRequest: 0.01, secondsPerUncachedPromptToken: 0, secondsPerOutputToken: 0 },
  ttft: { baseSeconds: 0.1, secondsPerUncachedPromptToken: 0, queueSeconds: 0.01 },
  tbot: { baseSeconds: 0.01, kappa: 0.5 },
  maxFittedRho: 0.95,
};

/**
 * Everything `evolvePlan` wants, for one pool of the engines `e0`, `e1`, …; `replicas[i]` of `e<i>` are ready, each
 * good for 100 requests/s.
 */
export function evolveInput(
  rows: readonly TestRow[],
  replicas: readonly number[],
  rest: Partial<EvolveInput> = {},
): EvolveInput {
  const fleet = testFleet(replicas, [...new Set(rows.map(({ frontendId }) => frontendId ?? 'west'))].sort());
  const state: FleetState = {
    fleet,
    atMs: 0,
    engines: engineStates(fleet, (engine, replica) => replica < replicas[fleet.engines.indexOf(engine)]!),
    demands: rows.map((row) => ({
      frontendId: row.frontendId ?? 'west',
      poolId: POOL,
      priority: 0,
      requestsPerSecond: row.demandRps ?? 100,
      uncachedPromptTokens: 100,
      promptTokens: 100,
      outputTokens: 10,
      followUpShare: 0.5,
      turnGapSeconds: 30,
      source: 'measured',
    })),
    settledSeconds: 600,
  };
  return {
    previous: null,
    solution: testSolution(rows, replicas),
    state,
    profiles: new Map([[profile.id, profile]]),
    policy: defaultPolicy,
    createdAtMs: 1_700_000_000_000,
    ...rest,
  };
}

function testFleet(replicas: readonly number[], frontendIds: readonly string[]): Fleet {
  const engines = replicas.map(
    (count, index): Engine => ({
      id: `e${index}`,
      region: 'west',
      models: ['llama'],
      labels: {},
      profile: profile.id,
      endpoints: Array.from(
        { length: Math.max(1, count) },
        (_, replica) => `10.0.${index}.${replica + 1}:8000`,
      ),
      metrics: { kind: 'none', path: '' },
      healthPath: '/health',
    }),
  );
  return {
    frontends: frontendIds.map((id) => ({ id, region: id, listen: '127.0.0.1:10000' })),
    engines,
    pools: [{ id: POOL, model: 'llama', needs: [], engineIds: engines.map(({ id }) => id) }],
    networkSeconds: frontendIds.map(() => engines.map(() => 0.01)),
  };
}

function testSolution(rows: readonly TestRow[], replicas: readonly number[]): Solution {
  const load = replicas.map(() => 0);
  const solved = rows.map((row): SolutionRow => {
    const demandRps = row.demandRps ?? 100;
    const shed = row.shed ?? [];
    const served = demandRps * (1 - (shed[0]?.fraction ?? 0));
    const weights = Object.entries(row.weights)
      .filter(([, weight]) => weight > 0)
      .map(([engineId, weight]) => ({ engineId, weight }));
    for (const { engineId, weight } of weights) load[Number(engineId.slice(1))]! += weight * served * 0.01;
    return {
      frontendId: row.frontendId ?? 'west',
      poolId: POOL,
      demandRps,
      flows: weights.map(({ engineId, weight }) => ({ engineId, rps: weight * served })),
      weights,
      shed,
      bounds: [],
      backups: row.backups ?? proportionalBackups(weights),
    };
  });
  return {
    rows: solved,
    engines: replicas.map((count, index) => ({
      engineId: `e${index}`,
      effectiveCapacity: count,
      rho: count > 0 ? load[index]! / count : 0,
      congestionPriceSeconds: 0.1,
      scarcityPriceSeconds: 0,
    })),
    objectiveSeconds: 10,
    lowerBoundSeconds: 10,
    mixErrorSeconds: 0,
    warnings: [],
  };
}

function proportionalBackups(weights: SolutionRow['weights']): SolutionRow['backups'] {
  return weights.map(({ engineId }) => {
    const others = weights.filter((other) => other.engineId !== engineId);
    const sum = others.reduce((total, { weight }) => total + weight, 0);
    return {
      ownerId: engineId,
      shares: others.map((other) => ({ engineId: other.engineId, weight: other.weight / sum })),
    };
  });
}
