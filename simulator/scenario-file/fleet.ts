import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parse } from 'yaml';
import type { Config } from '../../xds-server/config/config.js';
import { loadConfig } from '../../xds-server/config/load.js';
import { parseNetworkTable } from '../../xds-server/config/network-table.js';
import { type Profile, type TokenMix, workSeconds } from '../../xds-server/profiles/profile.js';
import { engineOf } from '../engine/from-profile.js';
import { type EngineParameters, engineKinds } from '../engine/parameters.js';
import { packageFile } from '../virtual/package-root.js';
import type { RequestClass, ScenarioEngine, ScenarioFrontend } from '../virtual/scenario.js';
import type { Problems } from './problems.js';
import type { EngineEntry, FrontendEntry, ScenarioFile } from './schema.js';
import type { Workloads } from './workloads.js';

type FrontendPart = Omit<ScenarioFrontend, 'rate'> & { readonly entry: FrontendEntry };

export interface FleetPart {
  readonly frontends: readonly FrontendPart[];
  readonly engines: readonly ScenarioEngine[];
  readonly rttMs: readonly (readonly number[])[];
  readonly classes?: readonly RequestClass[];
  readonly config?: Config;
}

interface ClassNames {
  readonly needs: readonly string[];
  readonly priorities: readonly string[];
}

const NO_NAMES: ClassNames = { needs: [], priorities: [] };

/** Memory of the host's that is added by `hostCache`, as a multiple of the card's. */
const HOST_CACHE = 16;

/** The frontends, engines and network of a scenario file; undefined when too much of it is wrong. */
export function buildFleet(
  entry: ScenarioFile,
  folder: string,
  workloads: Workloads,
  problems: Problems,
): FleetPart | undefined {
  return entry.config === undefined
    ? ownFleet(entry, workloads, problems)
    : configuredFleet(entry, loadConfig(resolve(folder, entry.config)), workloads, problems);
}

function ownFleet(entry: ScenarioFile, workloads: Workloads, problems: Problems): FleetPart | undefined {
  const { frontends = [], engines = [], needs, priorities } = entry;
  if (frontends.length === 0)
    problems.add([], 'missing key "frontends"', 'or name a Wardrop configuration as config');
  if (engines.length === 0)
    problems.add([], 'missing key "engines"', 'or name a Wardrop configuration as config');
  noneTwice(frontends, 'frontends', problems);
  noneTwice(engines, 'engines', problems);
  const names = { needs: Object.keys(needs), priorities: Object.keys(priorities) };
  const builtFrontends = frontends.flatMap((frontend, index) =>
    buildFrontend(frontend, ['frontends', index], names, workloads, problems),
  );
  const kinds = engines.map((engine, index) => kindOf(engine, ['engines', index], problems));
  if (builtFrontends.length < frontends.length || kinds.includes(undefined) || frontends.length === 0)
    return undefined;
  const mix = meanMix(builtFrontends);
  const replicas = engines.flatMap((engine, index) => {
    const { parameters, profile } = kinds[index]!;
    return replicasOf(engine, parameters, profile, mix);
  });
  checkSizes(builtFrontends, replicas, problems);
  const rtts = roundTrips(entry, problems);
  if (rtts === undefined) return undefined;
  const rttMs = rtts.map((row) =>
    replicas.map(({ engineId }) => row[engines.findIndex(({ id }) => id === engineId)]!),
  );
  const isDivided = names.needs.length + names.priorities.length > 0;
  const classes = isDivided ? classesOf(entry, replicas, problems) : undefined;
  return {
    frontends: builtFrontends,
    engines: replicas,
    rttMs,
    ...(classes === undefined ? {} : { classes }),
  };
}

function noneTwice(entries: readonly { readonly id: string }[], key: string, problems: Problems): void {
  entries.forEach(({ id }, index) => {
    if (entries.findIndex((other) => other.id === id) < index)
      problems.add([key, index, 'id'], `${JSON.stringify(id)} is there twice`);
  });
}

function buildFrontend(
  entry: FrontendEntry,
  path: readonly (string | number)[],
  names: ClassNames,
  workloads: Workloads,
  problems: Problems,
): FrontendPart[] {
  const source = workloads.get(entry.workload);
  if (source === undefined && !workloads.names.includes(entry.workload))
    problems.unknown([...path, 'workload'], 'workload', entry.workload, workloads.names);
  const needs = sharesOf(entry.needs, names.needs, 'need', [...path, 'needs'], problems);
  const atPriorities = [...path, 'priorities'];
  const priorities = sharesOf(entry.priorities, names.priorities, 'priority', atPriorities, problems);
  if (source === undefined) return [];
  const classShares = needs.flatMap((need) => priorities.map((priority) => need * priority));
  const { id, region = id, envoys } = entry;
  return [{ id, region, envoys, source, entry, ...(classShares.length === 1 ? {} : { classShares }) }];
}

/** Of conversations of none of the names, and of each. */
function sharesOf(
  given: Readonly<Record<string, number>>,
  names: readonly string[],
  what: string,
  path: readonly (string | number)[],
  problems: Problems,
): number[] {
  for (const name of Object.keys(given))
    if (!names.includes(name)) problems.unknown([...path, name], what, name, names);
  const shares = names.map((name) => given[name] ?? 0);
  const rest = 1 - shares.reduce((a, b) => a + b, 0);
  if (rest < -1e-9) problems.add(path, 'shares must not add up to more than 1');
  return [rest, ...shares];
}

function kindOf(
  { kind, profile = kind, hostCache }: EngineEntry,
  path: readonly (string | number)[],
  problems: Problems,
): { readonly parameters: EngineParameters; readonly profile: Profile } | undefined {
  const known = Object.keys(engineKinds);
  if (kind === undefined) {
    problems.add(path, 'missing key "kind"', `one of ${known.join(', ')}`);
    return undefined;
  }
  const parameters = engineKinds[kind];
  if (parameters === undefined) {
    problems.unknown([...path, 'kind'], 'kind of engine', kind, known);
    return undefined;
  }
  const fitted = fittedProfile(profile!);
  if (fitted === undefined) {
    problems.add([...path, 'profile'], `there is no simulator/profiles/${profile}.yaml`);
    return undefined;
  }
  const kvBlocks = (hostCache ? HOST_CACHE : 1) * parameters.kvBlocks;
  return { parameters: { ...parameters, kvBlocks }, profile: fitted };
}

function fittedProfile(id: string): Profile | undefined {
  const file = packageFile('simulator', 'profiles', `${id}.yaml`);
  if (!existsSync(file)) return undefined;
  const { profiles } = parse(readFileSync(file, 'utf8')) as { profiles: Record<string, Omit<Profile, 'id'>> };
  return { ...profiles[id]!, id };
}

function replicasOf(
  { id, region = id, replicas, labels, believedSlowness }: EngineEntry,
  parameters: EngineParameters,
  profile: Profile,
  mix: TokenMix,
): ScenarioEngine[] {
  return Array.from({ length: replicas }, (_, replica) => ({
    id: replicas === 1 ? id : `${id}-${replica}`,
    engineId: id,
    region,
    labels,
    parameters,
    profile: profile.id,
    believedSlowness,
    nominalRps: 1 / workSeconds(profile, mix),
  }));
}

/** Mean sizes over all requests of all frontends. */
function meanMix(frontends: readonly FrontendPart[]): TokenMix & { readonly promptTokens: number } {
  const total = frontends.reduce((sum, { entry }) => sum + entry.requestsPerSecond, 0) || 1;
  const mean = (name: 'promptTokens' | 'uncachedPromptTokens' | 'outputTokens') =>
    frontends.reduce(
      (sum, { source, entry }) => sum + source.expected[name] * (total === 1 ? 1 : entry.requestsPerSecond),
      0,
    ) / total;
  return {
    promptTokens: mean('promptTokens'),
    uncachedPromptTokens: mean('uncachedPromptTokens'),
    outputTokens: mean('outputTokens'),
  };
}

/** No request may be larger than the engines. */
function checkSizes(
  frontends: readonly FrontendPart[],
  engines: readonly ScenarioEngine[],
  problems: Problems,
): void {
  const least = Math.min(...engines.map(({ parameters }) => parameters.maxModelTokens));
  frontends.forEach(({ source, entry }, index) => {
    const largest = source.largestTokens;
    if (largest > least)
      problems.add(
        ['frontends', index, 'workload'],
        `${entry.workload} has requests of ${largest} tokens, and an engine takes ${least} at most`,
      );
  });
}

/** Every combination of a need or none with a priority or none, in the order of `classShares`. */
function classesOf(
  { needs, priorities }: Pick<ScenarioFile, 'needs' | 'priorities'>,
  engines: readonly ScenarioEngine[],
  problems: Problems,
): RequestClass[] {
  const byNeed = [
    { eligible: engines.map(() => true) },
    ...Object.entries(needs).map(([name, labels]) => {
      const eligible = engines.map((engine) =>
        Object.entries(labels).every(([label, value]) => engine.labels?.[label] === value),
      );
      if (!eligible.includes(true)) problems.add(['needs', name], 'no engine has these labels');
      if (!eligible.includes(false))
        problems.add(['needs', name], 'all engines have these labels: it changes nothing');
      return { eligible, need: { name, headers: { 'x-need': name }, labels } };
    }),
  ];
  const byPriority = [
    {},
    ...Object.entries(priorities).map(([name, value]) => ({
      priority: { name, headers: { 'x-priority': name }, value },
    })),
  ];
  return byNeed.flatMap((a) => byPriority.map((b) => classOf({ ...a, ...b })));
}

function classOf(parts: Omit<RequestClass, 'id' | 'headers'>): RequestClass {
  const signs = [parts.need, parts.priority].flatMap((sign) => (sign === undefined ? [] : [sign]));
  return {
    ...parts,
    id: signs.map(({ name }) => name).join(' ') || 'none',
    headers: Object.assign({}, ...signs.map(({ headers }) => headers)),
  };
}

/** `[frontend][engine entry]` in milliseconds. */
function roundTrips(
  { frontends = [], engines = [], network }: ScenarioFile,
  problems: Problems,
): number[][] | undefined {
  if (network?.regions !== undefined) return azureRoundTrips(frontends, engines, problems);
  if (network?.rttMs === undefined) return frontends.map(() => engines.map(() => 0));
  const { rttMs } = network;
  let isWhole = true;
  const rows = frontends.map(({ id }) =>
    engines.map((engine) => {
      const ms = rttMs[id]?.[engine.id];
      if (ms === undefined) {
        isWhole = false;
        problems.add(
          ['network', 'rttMs', ...(id in rttMs ? [id] : [])],
          `lacks the way from ${id} to ${engine.id}`,
        );
      }
      return ms ?? 0;
    }),
  );
  return isWhole ? rows : undefined;
}

function azureRoundTrips(
  frontends: readonly FrontendEntry[],
  engines: readonly EngineEntry[],
  problems: Problems,
): number[][] | undefined {
  const file = packageFile('simulator', 'data', 'azure-rtt-ms.csv');
  const result = parseNetworkTable(readFileSync(file, 'utf8'), file);
  if (!('table' in result)) throw new Error(`${file} is damaged`);
  const { sources, destinations, rttMs } = result.table;
  const short = (names: readonly string[]) => names.map((name) => name.replaceAll(' ', ''));
  const place = (
    names: readonly string[],
    { id, region = id }: EngineEntry | FrontendEntry,
    path: string[],
  ) => {
    const index = short(names).indexOf(region);
    if (index < 0) problems.unknown(path, 'region', region, short(names));
    return index;
  };
  const rows = frontends.map((frontend, index) =>
    place(sources, frontend, ['frontends', `${index}`, 'region']),
  );
  const columns = engines.map((engine, index) =>
    place(destinations, engine, ['engines', `${index}`, 'region']),
  );
  if (rows.includes(-1) || columns.includes(-1)) return undefined;
  return rows.map((row) => columns.map((column) => rttMs[row]![column]!));
}

/** The fleet of a configuration; what the scenario's own entries say of its frontends and engines comes on top. */
function configuredFleet(
  entry: ScenarioFile,
  config: Config,
  workloads: Workloads,
  problems: Problems,
): FleetPart | undefined {
  const { fleet, profiles } = config;
  if (entry.network !== undefined) problems.add(['network'], 'must not be there: the configuration has one');
  if (Object.keys(entry.needs).length > 0)
    problems.add(['needs'], 'must not be there: the configuration has them');
  if (Object.keys(entry.priorities).length > 0)
    problems.add(['priorities'], 'must not be there: classes of a configuration are not tried');
  const ids = fleet.frontends.map(({ id }) => id);
  (entry.frontends ?? []).forEach(({ id }, index) => {
    if (!ids.includes(id)) problems.unknown(['frontends', index, 'id'], 'frontend', id, ids);
  });
  const engineIds = fleet.engines.map(({ id }) => id);
  (entry.engines ?? []).forEach(({ id }, index) => {
    if (!engineIds.includes(id)) problems.unknown(['engines', index, 'id'], 'engine', id, engineIds);
  });
  const [pool, ...others] = fleet.pools;
  if (others.length > 0)
    problems.add(
      ['config'],
      `its fleet has ${fleet.pools.length} pools, and a scenario file tries one`,
      'give the engines of one model without needs, or replay a recording',
    );
  const frontends = fleet.frontends.flatMap(({ id, region }) => {
    const index = entry.frontends?.findIndex((other) => other.id === id) ?? -1;
    const expected = config.expectedDemand.find(({ frontendId }) => frontendId === id);
    const own = entry.frontends?.[index] ?? {
      ...{
        id,
        workload: 'chat',
        envoys: 1,
        requestsPerSecond: expected?.requestsPerSecond ?? 0,
        steps: [],
        needs: {},
        priorities: {},
      },
    };
    return buildFrontend(own, ['frontends', index], NO_NAMES, workloads, problems).map((part) => ({
      ...part,
      region,
    }));
  });
  if (frontends.length < fleet.frontends.length) return undefined;
  const mix = meanMix(frontends);
  const engines = fleet.engines.flatMap((engine) => {
    const index = entry.engines?.findIndex(({ id }) => id === engine.id) ?? -1;
    const own = entry.engines?.[index];
    const profile = profiles.get(engine.profile)!;
    const parameters =
      own?.kind === undefined
        ? engineOf(profile, mix)
        : kindOf(own, ['engines', index], problems)?.parameters;
    if (engine.endpoints.length === 0)
      problems.add(['config'], `engine ${engine.id} lists no endpoints`, 'give as many as it has replicas');
    if (parameters === undefined) return [];
    return engine.endpoints.map((address, replica) => ({
      id: engine.endpoints.length === 1 ? engine.id : `${engine.id}-${replica}`,
      engineId: engine.id,
      region: engine.region,
      parameters,
      profile: profile.id,
      believedSlowness: own?.believedSlowness ?? 1,
      nominalRps: 1 / workSeconds(profile, mix),
      address,
    }));
  });
  checkSizes(frontends, engines, problems);
  const rttMs = fleet.networkSeconds.map((row) =>
    engines.map(({ engineId }) => 1000 * row[fleet.engines.findIndex(({ id }) => id === engineId)]!),
  );
  const eligible = engines.map(({ engineId }) => pool!.engineIds.includes(engineId));
  const classes = eligible.every(Boolean) ? {} : { classes: [{ id: pool!.id, headers: {}, eligible }] };
  return { frontends, engines, rttMs, config, ...classes };
}
