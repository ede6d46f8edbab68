import type { Config } from '../../xds-server/config/config.js';
import type { Profile, TokenMix } from '../../xds-server/profiles/profile.js';
import { type EngineParameters, engineKinds } from '../engine/parameters.js';
import { fittedProfile } from '../fitted-profile.js';
import type { RequestClass, ScenarioEngine, ScenarioFrontend } from '../scenario.js';
import type { Problems } from './problems.js';
import type { EngineEntry, FrontendEntry } from './schema.js';
import type { Workloads } from './workloads.js';

export type FrontendPart = Omit<ScenarioFrontend, 'rate'> & { readonly entry: FrontendEntry };

export interface FleetPart {
  readonly frontends: readonly FrontendPart[];
  readonly engines: readonly ScenarioEngine[];
  readonly rttMs: readonly (readonly number[])[];
  readonly classes?: readonly RequestClass[];
  readonly config?: Config;
}

/** What shares of a frontend's conversations may be called. */
export interface ClassNames {
  readonly needs: readonly string[];
  readonly priorities: readonly string[];
}

/** Memory of the host's that is added by `hostCache`, as a multiple of the card's. */
const HOST_CACHE = 16;

export function buildFrontend(
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

export function kindOf(
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
  return { parameters: { ...parameters, kvBlocks }, profile: { ...fitted, id: profile! } };
}

/** Mean sizes over all requests of all frontends. */
export function meanMix(frontends: readonly FrontendPart[]): TokenMix & { readonly promptTokens: number } {
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
export function checkSizes(
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
