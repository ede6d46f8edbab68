import { resolve } from 'node:path';
import { byId } from '../../collections.js';
import { normaliseAddress, parseHostPort } from '../../fleet/address.js';
import type { Engine, Fleet, Frontend, MetricsSource } from '../../fleet/fleet.js';
import type { Policy } from '../../fleet/policy.js';
import type { Profile } from '../../profiles/profile.js';
import type { DiscoverySource, ExpectedDemand } from '../config.js';
import { type NetworkTable, rttBetween } from '../network-table.js';
import type { ConfigFile } from '../schema/schema.js';
import { buildAliases, buildClasses, buildNeeds, buildPools } from './needs.js';

// Every function here takes a file that passed all checks.

/** Profile of engines that name none, when the file describes none at all: one request per second and replica. */
const ASSUMED_PROFILE_ID = 'assumed';

/** Path of the page unless the configuration says otherwise. */
const METRICS_PATHS: Readonly<Record<MetricsSource['kind'], string>> = {
  vllm: '/metrics',
  sglang: '/metrics',
  trtllm: '/prometheus/metrics',
  triton: '/metrics',
  tgi: '/metrics',
  custom: '/metrics',
  none: '/metrics',
};

/** What is assumed about requests that the file does not describe. */
const ASSUMED_RATE = {
  requestsPerSecond: 0,
  promptTokens: 512,
  outputTokens: 128,
  followUpShare: 0.5,
  turnGapSeconds: 30,
};

export function buildProfiles(config: ConfigFile): ReadonlyMap<string, Profile> {
  const profiles = Object.entries(config.profiles).map(([id, entry]) => buildProfile(id, entry));
  if (profiles.length === 0)
    profiles.push(buildProfile(ASSUMED_PROFILE_ID, { requestsPerSecond: 1, maxFittedRho: 0.98 }));
  return new Map(profiles.sort(byId).map((profile) => [profile.id, profile]));
}

function buildProfile(id: string, entry: ConfigFile['profiles'][string]): Profile {
  const { work, ttft, tbot, requestsPerSecond, maxFittedRho } = entry;
  // The waiting time of one server with exponential service times (M/M/1) is service time x rho / (1 - rho).
  const serviceSeconds = 1 / (requestsPerSecond ?? 1);
  return {
    id,
    work: work ?? {
      secondsPerRequest: serviceSeconds,
      secondsPerUncachedPromptToken: 0,
      secondsPerOutputToken: 0,
    },
    ttft: ttft ?? { baseSeconds: 0, secondsPerUncachedPromptToken: 0, queueSeconds: serviceSeconds },
    tbot: tbot ?? { baseSeconds: 0, kappa: 0 },
    maxFittedRho,
  };
}

export function buildFleet(
  config: ConfigFile,
  profiles: ReadonlyMap<string, Profile>,
  table: NetworkTable | undefined,
): Fleet {
  const frontends: readonly Frontend[] = config.frontends
    .map(({ id, region, listen }) => ({ id, region, listen: normaliseAddress(listen) }))
    .sort(byId);
  const engines: readonly Engine[] = config.engines
    .map((engine) => ({
      id: engine.id,
      region: engine.region,
      models: [...engine.models].sort(),
      labels: engine.labels,
      profile: engine.profile ?? mostWork(profiles),
      endpoints: (engine.endpoints ?? []).map(normaliseAddress).sort(),
      metrics: buildMetrics(engine.metrics),
      healthPath: engine.healthPath,
      slowStartSeconds: engine.slowStartSeconds,
      ...(engine.maxInFlight === undefined ? {} : { maxInFlight: engine.maxInFlight }),
    }))
    .sort(byId);
  const aliases = buildAliases(config.aliases);
  const classes = buildClasses(config.classes);
  const dollars = config.network?.egressDollarsPerRequest;
  return {
    frontends,
    engines,
    ...buildPools(engines, buildNeeds(config.needs)),
    ...(aliases.length === 0 ? {} : { aliases }),
    ...(classes.length === 0 ? {} : { classes }),
    networkSeconds: frontends.map((frontend) =>
      engines.map((engine) => rttMs(config, table, frontend, engine) / 1000),
    ),
    ...(measuresNetwork(config) && { measuresNetwork: true }),
    ...(dollars === undefined
      ? {}
      : {
          egressDollarsPerRequest: frontends.map((frontend) =>
            engines.map((engine) => dollars[frontend.id]?.[engine.id] ?? 0),
          ),
        }),
  };
}

/** Sources of replicas by engine id, of engines that have one. */
export function buildDiscovery(config: ConfigFile, folder: string): ReadonlyMap<string, DiscoverySource> {
  return new Map(
    config.engines.flatMap(({ id, discovery }): [string, DiscoverySource][] => {
      if (discovery?.dns !== undefined) return [[id, { kind: 'dns', ...parseHostPort(discovery.dns)! }]];
      if (discovery?.srv !== undefined) return [[id, { kind: 'srv', name: discovery.srv }]];
      if (discovery?.file !== undefined)
        return [[id, { kind: 'file', path: resolve(folder, discovery.file) }]];
      return [];
    }),
  );
}

function buildMetrics({ kind, path, ...rest }: ConfigFile['engines'][number]['metrics']): MetricsSource {
  return { kind, path: path ?? METRICS_PATHS[kind], ...rest };
}

/** Only a filter that names the host can tell which one it measures. */
function measuresNetwork({ network, steering }: ConfigFile): boolean {
  return (network?.measure ?? true) && steering === 'filter';
}

function rttMs(
  config: ConfigFile,
  table: NetworkTable | undefined,
  frontend: Frontend,
  engine: Engine,
): number {
  const matrix = config.network?.rttMs;
  if (matrix !== undefined) return matrix[frontend.id]![engine.id] ?? Number.POSITIVE_INFINITY;
  return table === undefined ? 0 : rttBetween(table, frontend.region, engine.region);
}

/** The most careful guess for an engine that nobody described. */
function mostWork(profiles: ReadonlyMap<string, Profile>): string {
  const cost = ({ work }: Profile) =>
    work.secondsPerRequest +
    work.secondsPerUncachedPromptToken * ASSUMED_RATE.promptTokens +
    work.secondsPerOutputToken * ASSUMED_RATE.outputTokens;
  return [...profiles.values()].reduce((most, profile) => (cost(profile) > cost(most) ? profile : most)).id;
}

export function buildExpectedDemand(config: ConfigFile, fleet: Fleet): readonly ExpectedDemand[] {
  return fleet.frontends.flatMap((frontend) =>
    fleet.pools.map((pool) => {
      const { models, pools, ...common } = config.demand[frontend.id] ?? {};
      const rate = {
        ...ASSUMED_RATE,
        ...common,
        ...models?.[pool.model],
        // Nobody can say how many requests of a model carry needs.
        ...(pool.needs.length > 0 ? { requestsPerSecond: 0 } : {}),
        ...pools?.[pool.id],
      };
      const uncachedPromptTokens = Math.min(
        rate.uncachedPromptTokens ?? rate.promptTokens,
        rate.promptTokens,
      );
      return { frontendId: frontend.id, poolId: pool.id, ...rate, uncachedPromptTokens };
    }),
  );
}

export function buildPolicy(config: ConfigFile): Policy {
  const {
    bounds,
    minShares,
    outlierPenalty: _penalty,
    mode: _mode,
    steerPercent: _percent,
    ...policy
  } = config.policy;
  return {
    ...policy,
    retries: { max: policy.retries.max, min: policy.retries.min },
    bounds: bounds.map(({ frontend, pool, engine, min, max, pin }) => ({
      frontendId: frontend,
      poolId: pool,
      engineId: engine,
      min: pin ?? min,
      max: pin ?? max,
    })),
    minShares: minShares.map(({ pool, priority, share }) => ({ poolId: pool, priority, share })),
  };
}
