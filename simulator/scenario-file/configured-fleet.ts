import type { Config } from '../../xds-server/config/config.js';
import { workSeconds } from '../../xds-server/profiles/profile.js';
import { engineOf } from '../engine/from-profile.js';
import type { ScenarioEngine } from '../scenario.js';
import {
  buildFrontend,
  type ClassNames,
  checkSizes,
  type FleetPart,
  type FrontendPart,
  kindOf,
  meanMix,
} from './fleet-parts.js';
import type { Problems } from './problems.js';
import type { FrontendEntry, ScenarioFile } from './schema.js';
import type { Workloads } from './workloads.js';

const NO_NAMES: ClassNames = { needs: [], priorities: [] };

/** The fleet of a configuration; what the scenario's own entries say of its frontends and engines comes on top. */
export function configuredFleet(
  entry: ScenarioFile,
  config: Config,
  workloads: Workloads,
  problems: Problems,
): FleetPart | undefined {
  const { fleet } = config;
  checkEntries(entry, config, problems);
  const frontends = configuredFrontends(entry, config, workloads, problems);
  if (frontends.length < fleet.frontends.length) return undefined;
  const engines = configuredEngines(entry, config, frontends, problems);
  checkSizes(frontends, engines, problems);
  const rttMs = fleet.networkSeconds.map((row) =>
    engines.map(({ engineId }) => 1000 * row[fleet.engines.findIndex(({ id }) => id === engineId)]!),
  );
  const pool = fleet.pools[0]!;
  const eligible = engines.map(({ engineId }) => pool.engineIds.includes(engineId));
  const classes = eligible.every(Boolean) ? {} : { classes: [{ id: pool.id, headers: {}, eligible }] };
  return { frontends, engines, rttMs, config, ...classes };
}

/** The scenario may only add to what the configuration has, which must be of one pool. */
function checkEntries(entry: ScenarioFile, { fleet }: Config, problems: Problems): void {
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
  if (fleet.pools.length > 1)
    problems.add(
      ['config'],
      `its fleet has ${fleet.pools.length} pools, and a scenario file tries one`,
      'give the engines of one model without needs, or replay a recording',
    );
}

function configuredFrontends(
  entry: ScenarioFile,
  { fleet, expectedDemand }: Config,
  workloads: Workloads,
  problems: Problems,
): readonly FrontendPart[] {
  return fleet.frontends.flatMap(({ id, region }) => {
    const index = entry.frontends?.findIndex((other) => other.id === id) ?? -1;
    const expected = expectedDemand.find(({ frontendId }) => frontendId === id);
    const own: FrontendEntry = entry.frontends?.[index] ?? {
      id,
      workload: 'chat',
      envoys: 1,
      requestsPerSecond: expected?.requestsPerSecond ?? 0,
      steps: [],
      needs: {},
      priorities: {},
    };
    const parts = buildFrontend(own, ['frontends', index], NO_NAMES, workloads, problems);
    return parts.map((part) => ({ ...part, region }));
  });
}

/** Each replica is an engine of the scenario. */
function configuredEngines(
  entry: ScenarioFile,
  { fleet, profiles }: Config,
  frontends: readonly FrontendPart[],
  problems: Problems,
): readonly ScenarioEngine[] {
  const mix = meanMix(frontends);
  return fleet.engines.flatMap((engine) => {
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
}
