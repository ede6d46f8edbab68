import { resolve } from 'node:path';
import { loadConfig } from '../../xds-server/config/load.js';
import type { Path } from '../../xds-server/config/problem.js';
import { type Profile, type TokenMix, workSeconds } from '../../xds-server/profiles/profile.js';
import type { EngineParameters } from '../engine/parameters.js';
import {
  onePool,
  type RequestClass,
  replicaIds,
  type Scenario,
  type ScenarioDemand,
  type ScenarioEngine,
  type ScenarioPool,
} from '../scenario.js';
import { configuredFleet } from './configured-fleet.js';
import { buildDemand, checkSizes, type FleetPart, kindOf, noneTwice } from './fleet-parts.js';
import { meanRequest } from './mean-request.js';
import type { Problems } from './problems.js';
import { roundTrips } from './round-trips.js';
import type { EngineEntry, FrontendEntry, ScenarioFile } from './schema.js';
import type { Workloads } from './workloads.js';

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
  const demands = frontends.map((frontend, index) =>
    ownDemand(frontend, names, ['frontends', index], workloads, problems),
  );
  const kinds = engines.map((engine, index) => kindOf(engine, ['engines', index], problems));
  if (demands.every((demand) => demand?.rate.peak === 0))
    problems.add(['frontends'], 'send no requests', 'give one a requestsPerSecond or a step above 0');
  if (demands.includes(undefined) || kinds.includes(undefined) || frontends.length === 0) return undefined;
  const mix = meanRequest(
    demands.map((demand, index) => ({
      requestsPerSecond: frontends[index]!.requestsPerSecond!,
      means: demand!.source.expected,
    })),
  );
  const replicas = engines.flatMap((engine, index) => {
    const { parameters, profile } = kinds[index]!;
    return replicasOf(engine, parameters, profile, mix);
  });
  demands.forEach((demand, index) => {
    checkSizes(demand!, replicas, ['frontends', index, 'workload'], problems);
  });
  const rtts = roundTrips(entry, problems);
  if (rtts === undefined) return undefined;
  const rttMs = rtts.map((row) =>
    replicas.map(({ engineId }) => row[engines.findIndex(({ id }) => id === engineId)]!),
  );
  const isDivided = names.needs.length + names.priorities.length > 0;
  return {
    frontends: frontends.map(({ id, region = id, envoys }, index) => ({
      ...{ id, region, envoys },
      demands: [demands[index]!],
    })),
    engines: replicas,
    rttMs,
    ...(isDivided ? dividedPools(entry, replicas, problems) : onePool(replicas)),
  };
}

/** What shares of a frontend's conversations may be called. */
interface ClassNames {
  readonly needs: readonly string[];
  readonly priorities: readonly string[];
}

function ownDemand(
  entry: FrontendEntry,
  names: ClassNames,
  path: Path,
  workloads: Workloads,
  problems: Problems,
): ScenarioDemand | undefined {
  const { id, requestsPerSecond } = entry;
  if (entry.pools !== undefined)
    problems.add([...path, 'pools'], 'are those of a configuration', 'name one as config, or use needs');
  if (requestsPerSecond === undefined) {
    problems.add(path, 'missing key "requestsPerSecond"');
    return undefined;
  }
  const needs = sharesOf(entry.needs, names.needs, 'need', [...path, 'needs'], problems);
  const atPriorities = [...path, 'priorities'];
  const priorities = sharesOf(entry.priorities, names.priorities, 'priority', atPriorities, problems);
  const classShares = needs.flatMap((need) => priorities.map((priority) => need * priority));
  return buildDemand({ ...entry, requestsPerSecond }, { id, classShares }, path, workloads, problems);
}

/** Of conversations of none of the names, and of each. */
function sharesOf(
  given: Readonly<Record<string, number>>,
  names: readonly string[],
  what: string,
  path: Path,
  problems: Problems,
): number[] {
  for (const name of Object.keys(given))
    if (!names.includes(name)) problems.unknown([...path, name], what, name, names);
  const shares = names.map((name) => given[name] ?? 0);
  const rest = 1 - shares.reduce((a, b) => a + b, 0);
  if (rest < -1e-9) problems.add(path, 'shares must not add up to more than 1');
  return [rest, ...shares];
}

function replicasOf(
  { id, region = id, replicas, labels, believedSlowness }: EngineEntry,
  parameters: EngineParameters,
  profile: Profile,
  mix: TokenMix,
): ScenarioEngine[] {
  return replicaIds(id, replicas).map((replicaId) => ({
    id: replicaId,
    engineId: id,
    region,
    labels,
    parameters,
    profile: profile.id,
    work: profile.work,
    believedSlowness,
    nominalRps: 1 / (believedSlowness * workSeconds(profile, mix)),
  }));
}

/** A pool for each need and for none; a class for every one of them with a priority or none, in the order of `classShares`. */
function dividedPools(
  { needs, priorities }: Pick<ScenarioFile, 'needs' | 'priorities'>,
  engines: readonly ScenarioEngine[],
  problems: Problems,
): Pick<Scenario, 'pools' | 'classes'> {
  const pools: ScenarioPool[] = [
    { id: 'none', eligible: engines.map(() => true) },
    ...Object.entries(needs).map(([name, labels]) => {
      const eligible = engines.map((engine) =>
        Object.entries(labels).every(([label, value]) => engine.labels?.[label] === value),
      );
      if (!eligible.includes(true)) problems.add(['needs', name], 'no engine has these labels');
      if (!eligible.includes(false))
        problems.add(['needs', name], 'all engines have these labels: it changes nothing');
      return { id: name, eligible };
    }),
  ];
  const byNeed = [
    {},
    ...Object.entries(needs).map(([name, labels]) => ({
      need: { name, headers: { 'x-need': name }, labels },
    })),
  ];
  const byPriority = [
    {},
    ...Object.entries(priorities).map(([name, value]) => ({
      priority: { name, headers: { 'x-priority': name }, value },
    })),
  ];
  const classes = byNeed.flatMap((a, pool) => byPriority.map((b) => classOf({ ...a, ...b, pool })));
  return { pools, classes };
}

function classOf(parts: Omit<RequestClass, 'id' | 'headers'>): RequestClass {
  const signs = [parts.need, parts.priority].flatMap((sign) => (sign === undefined ? [] : [sign]));
  return {
    ...parts,
    id: signs.map(({ name }) => name).join(' ') || 'none',
    headers: Object.assign({}, ...signs.map(({ headers }) => headers)),
  };
}
