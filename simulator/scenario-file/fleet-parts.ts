import type { Config } from '../../xds-server/config/config.js';
import type { Path } from '../../xds-server/config/problem.js';
import type { Profile } from '../../xds-server/profiles/profile.js';
import { type EngineParameters, engineKinds } from '../engine/parameters.js';
import { fittedProfile } from '../fitted-profile.js';
import type { Scenario, ScenarioDemand, ScenarioEngine } from '../scenario.js';
import type { Problems } from './problems.js';
import type { DemandEntry, EngineEntry } from './schema.js';
import { buildRate } from './times.js';
import type { Workloads } from './workloads.js';

export interface FleetPart extends Pick<Scenario, 'frontends' | 'engines' | 'rttMs' | 'pools' | 'classes'> {
  readonly leftOut?: string | undefined;
  readonly config?: Config;
}

/** Memory of the host's that is added by `hostCache`, as a multiple of the card's. */
const HOST_CACHE = 16;

export function noneTwice(
  entries: readonly { readonly id: string }[],
  key: string,
  problems: Problems,
): void {
  entries.forEach(({ id }, index) => {
    if (entries.findIndex((other) => other.id === id) < index)
      problems.add([key, index, 'id'], `${JSON.stringify(id)} is there twice`);
  });
}

/** Undefined where its workload is none. */
export function buildDemand(
  { workload = 'chat', ...entry }: DemandEntry,
  { id, classShares }: Pick<ScenarioDemand, 'id' | 'classShares'>,
  path: Path,
  workloads: Workloads,
  problems: Problems,
): ScenarioDemand | undefined {
  const source = workloads.get(workload);
  if (source === undefined && !workloads.names.includes(workload))
    problems.unknown([...path, 'workload'], 'workload', workload, workloads.names);
  if (source === undefined) return undefined;
  const rate = buildRate(entry);
  return { id, source, rate, expectedRps: entry.expectedRequestsPerSecond ?? rate.at(0), classShares };
}

export function kindOf(
  { kind, profile = kind, hostCache }: EngineEntry,
  path: Path,
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

/** No request may be larger than an engine that may get it. */
export function checkSizes(
  { source }: ScenarioDemand,
  engines: readonly ScenarioEngine[],
  path: Path,
  problems: Problems,
): void {
  const least = Math.min(...engines.map(({ parameters }) => parameters.maxModelTokens));
  if (source.largestTokens <= least) return;
  problems.add(path, `has requests of ${source.largestTokens} tokens, and an engine takes ${least} at most`);
}
