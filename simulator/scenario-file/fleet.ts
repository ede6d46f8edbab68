import { resolve } from 'node:path';
import { loadConfig } from '../../xds-server/config/load.js';
import { type Profile, type TokenMix, workSeconds } from '../../xds-server/profiles/profile.js';
import type { EngineParameters } from '../engine/parameters.js';
import type { RequestClass, ScenarioEngine } from '../scenario.js';
import { configuredFleet } from './configured-fleet.js';
import { buildFrontend, checkSizes, type FleetPart, kindOf, meanMix } from './fleet-parts.js';
import type { Problems } from './problems.js';
import { roundTrips } from './round-trips.js';
import type { EngineEntry, ScenarioFile } from './schema.js';
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
