import { MODEL_HEADER } from '../../wire/names.js';
import type { Config } from '../../xds-server/config/config.js';
import type { Engine, Fleet, Pool } from '../../xds-server/fleet/fleet.js';
import { withoutLastResorts } from '../../xds-server/fleet/last-resort.js';
import { idleTtftSeconds } from '../../xds-server/profiles/curves.js';
import { type Profile, workSeconds } from '../../xds-server/profiles/profile.js';
import { engineOf } from '../engine/from-profile.js';
import {
  type RequestClass,
  replicaIds,
  type ScenarioEngine,
  type ScenarioPool,
  type Slo,
} from '../scenario.js';
import { meanRequest, type WeighedMeans } from './mean-request.js';

/** Clients of a fleet that is known: answers of large models take long. */
export const KNOWN_FLEET_TIMEOUT_SECONDS = 120;
/** An answer is in time when it takes at most so many times what the slowest engine takes that is idle. */
const SLO_TTFT = 5;
const SLO_E2E = 3;

/** What comes for a pool at one frontend. */
export interface PoolDemand extends WeighedMeans {
  readonly poolId: string;
  /** Prompt and answer that no request exceeds. */
  readonly largestTokens: number;
}

/**
 * The fleet with needs that show in headers of our own, so that requests can be simulated whatever they show in: bodies,
 * prompts' lengths and tenants are not. Without classes, as no request shows that it is of one.
 */
export function simulatedFleet(fleet: Fleet): Fleet {
  const { classes: _, ...configured } = withoutLastResorts(fleet, new Map());
  if (configured.needs === undefined) return configured;
  const needs = configured.needs.map((need, index) => ({
    ...need,
    when: { kind: 'header' as const, name: needHeader(index) },
  }));
  return { ...configured, needs };
}

/** What reports say of a fleet that is not simulated as a whole. */
export function leftOutOf({ classes }: Fleet): string | undefined {
  return classes === undefined ? undefined : 'Priorities are left out: all requests have 0.';
}

/** What policies expect before anything is measured. */
export function expectedDemandOf(
  { frontends }: Fleet,
  rows: readonly (readonly PoolDemand[])[],
): Config['expectedDemand'] {
  return rows.flatMap((row, frontend) =>
    row.map(({ poolId, requestsPerSecond, means }) => ({
      ...{ frontendId: frontends[frontend]!.id, poolId, requestsPerSecond },
      ...means,
    })),
  );
}

function needHeader(index: number): string {
  return `x-need-${index}`;
}

/** The pools that somebody asks for, each with a class of its own. */
export function poolsOf(
  { pools, needs = [] }: Fleet,
  engines: readonly ScenarioEngine[],
  askedIds: ReadonlySet<string>,
): { readonly pools: readonly ScenarioPool[]; readonly classes: readonly RequestClass[] } {
  const asked = pools.filter(({ id }) => askedIds.has(id));
  const header = (id: string) => [needHeader(needs.findIndex((need) => need.id === id)), '1'] as const;
  return {
    pools: asked.map(({ id, engineIds }) => ({
      id,
      eligible: engines.map(({ engineId }) => engineIds.includes(engineId)),
    })),
    classes: asked.map(({ id, model, needs: carried }, pool) => ({
      id,
      headers: Object.fromEntries([[MODEL_HEADER, model], ...carried.map(header)]),
      pool,
    })),
  };
}

/** The replicas of an engine, which behave as its profile says of the requests that it may get, unless it is told how. */
export function replicasOf(
  engine: Engine,
  profile: Profile,
  pools: readonly Pool[],
  demands: readonly PoolDemand[],
  { parameters, believedSlowness = 1 }: Partial<Pick<ScenarioEngine, 'parameters' | 'believedSlowness'>> = {},
): ScenarioEngine[] {
  const served = pools.filter(({ engineIds }) => engineIds.includes(engine.id)).map(({ id }) => id);
  const own = demands.filter(({ poolId }) => served.includes(poolId));
  const mix = meanRequest(own);
  const largestTokens = Math.max(...own.map((demand) => demand.largestTokens));
  const { id, region, labels, endpoints } = engine;
  const ids = replicaIds(id, endpoints.length);
  return endpoints.map((address, replica) => ({
    ...{ id: ids[replica]!, engineId: id, region, labels, profile: profile.id, work: profile.work, address },
    parameters: parameters ?? engineOf(profile, mix, largestTokens),
    ...{ believedSlowness, nominalRps: 1 / (believedSlowness * workSeconds(profile, mix)) },
  }));
}

/** By the simulated engines, as a profile that knows a rate only has no times of its own. */
export function sloOf(
  { id, eligible }: ScenarioPool,
  profiles: ReadonlyMap<string, Profile>,
  demands: readonly PoolDemand[],
  engines: readonly ScenarioEngine[],
): Slo {
  const { uncachedPromptTokens, outputTokens } = meanRequest(demands.filter(({ poolId }) => poolId === id));
  const times = engines
    .filter((_, index) => eligible[index])
    .map(({ profile, parameters: { stepBaseSeconds, secondsPerSequence } }) => {
      const ttft = Math.max(0.02, idleTtftSeconds(profiles.get(profile)!, uncachedPromptTokens));
      return { ttft, e2e: ttft + (outputTokens - 1) * (stepBaseSeconds + secondsPerSequence) };
    });
  return {
    ttftSeconds: SLO_TTFT * Math.max(...times.map(({ ttft }) => ttft)),
    e2eSeconds: SLO_E2E * Math.max(...times.map(({ e2e }) => e2e)),
  };
}

/** `[frontend][replica]`. */
export function rttMsOf({ networkSeconds, engines }: Fleet, replicas: readonly ScenarioEngine[]): number[][] {
  return networkSeconds.map((row) =>
    replicas.map(({ engineId }) => 1000 * row[engines.findIndex(({ id }) => id === engineId)]!),
  );
}
