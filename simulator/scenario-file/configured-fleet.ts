import type { Config } from '../../xds-server/config/config.js';
import type { Path } from '../../xds-server/config/problem.js';
import type { ScenarioDemand, ScenarioEngine } from '../scenario.js';
import { steady } from '../workloads/rate-curve.js';
import { largestRecorded, recorded } from '../workloads/recorded.js';
import { buildDemand, checkSizes, type FleetPart, kindOf, noneTwice } from './fleet-parts.js';
import {
  expectedDemandOf,
  leftOutOf,
  type PoolDemand,
  poolsOf,
  replicasOf,
  rttMsOf,
  simulatedFleet,
  sloOf,
} from './known-fleet.js';
import type { Problems } from './problems.js';
import type { DemandEntry, EngineEntry, FrontendEntry, ScenarioFile } from './schema.js';
import type { Workloads } from './workloads.js';

/** Requests of a run may be larger than the largest of those that were drawn for the means: at most by so many times. */
const DRAWN_MARGIN = 2;

const CONFIGURED = 'must not be there: the configuration says it';

/** What comes for a pool at a frontend, and where the scenario says so. */
interface RowPart extends PoolDemand {
  readonly path: Path;
  /** Requests/s that policies start with. */
  readonly expectedRps: number;
  /** Undefined where nobody ever asks. */
  readonly demand?: ScenarioDemand;
}

/** The fleet of a configuration; what the scenario's own entries say of its frontends and engines comes on top. */
export function configuredFleet(
  entry: ScenarioFile,
  given: Config,
  workloads: Workloads,
  problems: Problems,
): FleetPart | undefined {
  const config = { ...given, fleet: simulatedFleet(given.fleet) };
  const { fleet } = config;
  checkEntries(entry, config, problems);
  const rows = fleet.frontends.map(({ id }) => rowsOf(id, entry, config, workloads, problems));
  if (rows.includes(undefined)) return undefined;
  const parts = rows.flatMap((own) => own!);
  const engines = configuredEngines(entry, config, parts, problems);
  const asked = parts.filter(({ demand }) => demand !== undefined);
  const { pools, classes } = poolsOf(fleet, engines, new Set(asked.map(({ poolId }) => poolId)));
  if (pools.length === 0) {
    problems.add(['config'], 'expects no requests', 'give rates under "frontends", or its "demand"');
    return undefined;
  }
  for (const { path, poolId, demand } of asked) {
    const { eligible } = pools.find(({ id }) => id === poolId)!;
    const own = engines.filter((_, engine) => eligible[engine]);
    checkSizes(demand!, own, path, problems);
  }
  const frontends = fleet.frontends.map(({ id, region }, index) => ({
    ...{ id, region, envoys: entry.frontends?.find((other) => other.id === id)?.envoys ?? 1 },
    demands: rows[index]!.flatMap(({ demand, poolId }) => {
      const classShares = classes.map((requestClass) => Number(requestClass.id === poolId));
      return demand === undefined ? [] : [{ ...demand, classShares }];
    }),
  }));
  const expected = rows.map((own) => own!.map((row) => ({ ...row, requestsPerSecond: row.expectedRps })));
  const withSlo = pools.map((pool) => ({ ...pool, slo: sloOf(pool, config.profiles, parts, engines) }));
  return {
    ...{ frontends, engines, rttMs: rttMsOf(fleet, engines), pools: withSlo, classes },
    leftOut: leftOutOf(given.fleet),
    config: { ...config, expectedDemand: expectedDemandOf(fleet, expected) },
  };
}

/** The scenario may only add to what the configuration has. */
function checkEntries(entry: ScenarioFile, { fleet }: Config, problems: Problems): void {
  if (entry.network !== undefined) problems.add(['network'], 'must not be there: the configuration has one');
  if (Object.keys(entry.needs).length > 0)
    problems.add(['needs'], 'must not be there: the configuration has them');
  if (Object.keys(entry.priorities).length > 0)
    problems.add(['priorities'], 'must not be there: classes of a configuration are not tried');
  noneTwice(entry.frontends ?? [], 'frontends', problems);
  noneTwice(entry.engines ?? [], 'engines', problems);
  const ids = fleet.frontends.map(({ id }) => id);
  const poolIds = fleet.pools.map(({ id }) => id);
  (entry.frontends ?? []).forEach((frontend, index) => {
    const path = ['frontends', index];
    if (!ids.includes(frontend.id)) problems.unknown([...path, 'id'], 'frontend', frontend.id, ids);
    if (frontend.region !== undefined) problems.add([...path, 'region'], CONFIGURED);
    for (const id of Object.keys(frontend.pools ?? {}))
      if (!poolIds.includes(id)) problems.unknown([...path, 'pools', id], 'pool', id, poolIds);
    for (const key of ['needs', 'priorities'] as const)
      if (Object.keys(frontend[key]).length > 0)
        problems.add([...path, key], 'must not be there: say under "pools" what comes for each');
    checkRates(frontend, path, poolIds, problems);
  });
  const engineIds = fleet.engines.map(({ id }) => id);
  (entry.engines ?? []).forEach((engine, index) => {
    const path = ['engines', index];
    if (!engineIds.includes(engine.id)) problems.unknown([...path, 'id'], 'engine', engine.id, engineIds);
    for (const key of configuredKeys(engine)) problems.add([...path, key], CONFIGURED);
    if (engine.hostCache && engine.kind === undefined)
      problems.add([...path, 'hostCache'], 'is of a kind of simulated engine', 'give one as "kind"');
  });
  for (const { id, endpoints } of fleet.engines)
    if (endpoints.length === 0)
      problems.add(['config'], `engine ${id} lists no endpoints`, 'give as many as it has replicas');
}

/** What an entry says that is the configuration's to say. */
function configuredKeys({ region, labels, profile, replicas }: EngineEntry): string[] {
  const isGiven = {
    region: region !== undefined,
    labels: Object.keys(labels).length > 0,
    profile: profile !== undefined,
    replicas: replicas !== 1,
  };
  return Object.entries(isGiven).flatMap(([key, given]) => (given ? [key] : []));
}

/** A frontend's own rate is that of the only pool. */
function checkRates(entry: FrontendEntry, path: Path, poolIds: readonly string[], problems: Problems): void {
  const { workload, day, bursts, steps, expectedRequestsPerSecond, requestsPerSecond } = entry;
  const isShaped =
    steps.length > 0 ||
    [workload, day, bursts, expectedRequestsPerSecond].some((value) => value !== undefined);
  if (requestsPerSecond === undefined) {
    if (isShaped) problems.add(path, 'missing key "requestsPerSecond"');
    return;
  }
  if (poolIds.length > 1 || entry.pools !== undefined)
    problems.add(
      [...path, 'requestsPerSecond'],
      `must not be there: the configuration has the pools ${poolIds.join(', ')}`,
      'say under "pools" what comes for each',
    );
}

/** What comes for every pool at a frontend; undefined where the scenario is wrong about it. */
function rowsOf(
  frontendId: string,
  entry: ScenarioFile,
  { fleet: { pools }, expectedDemand }: Config,
  workloads: Workloads,
  problems: Problems,
): RowPart[] | undefined {
  const index = entry.frontends?.findIndex(({ id }) => id === frontendId) ?? -1;
  const rows = pools.map(({ id: poolId }): RowPart | undefined => {
    const given = entryOf(entry.frontends?.[index], poolId);
    const id = pools.length === 1 ? frontendId : `${frontendId} ${poolId}`;
    if (given === undefined) return expectedRow(id, frontendId, poolId, expectedDemand);
    const path: Path = ['frontends', index, ...('id' in given ? [] : ['pools', poolId])];
    const demand = buildDemand(given, { id, classShares: [] }, path, workloads, problems);
    if (demand === undefined) return undefined;
    const { expected, largestTokens } = demand.source;
    return {
      ...{
        poolId,
        requestsPerSecond: given.requestsPerSecond,
        means: expected,
        largestTokens: DRAWN_MARGIN * largestTokens,
        expectedRps: demand.expectedRps,
        path,
      },
      ...(demand.rate.peak > 0 ? { demand } : {}),
    };
  });
  return rows.some((row) => row === undefined) ? undefined : (rows as RowPart[]);
}

/** What the configuration expects, for as long as the scenario takes. */
function expectedRow(
  id: string,
  frontendId: string,
  poolId: string,
  expectedDemand: Config['expectedDemand'],
): RowPart {
  const { requestsPerSecond, ...means } = expectedDemand.find(
    (other) => other.frontendId === frontendId && other.poolId === poolId,
  )!;
  const row = {
    ...{ poolId, requestsPerSecond, means, largestTokens: largestRecorded(means) },
    ...{ expectedRps: requestsPerSecond, path: ['config'] },
  };
  if (requestsPerSecond === 0) return row;
  const source = { ...recorded(means), largestTokens: row.largestTokens };
  const rate = steady(requestsPerSecond);
  return { ...row, demand: { id, source, rate, expectedRps: requestsPerSecond, classShares: [] } };
}

function entryOf(frontend: FrontendEntry | undefined, poolId: string): DemandEntry | undefined {
  if (frontend?.requestsPerSecond === undefined) return frontend?.pools?.[poolId];
  return { ...frontend, requestsPerSecond: frontend.requestsPerSecond };
}

/** Each replica is an engine of the scenario. */
function configuredEngines(
  entry: ScenarioFile,
  { fleet, profiles }: Config,
  demands: readonly PoolDemand[],
  problems: Problems,
): readonly ScenarioEngine[] {
  return fleet.engines.flatMap((engine) => {
    const index = entry.engines?.findIndex(({ id }) => id === engine.id) ?? -1;
    const own = entry.engines?.[index];
    const kind = own?.kind === undefined ? undefined : kindOf(own, ['engines', index], problems);
    const profile = profiles.get(engine.profile)!;
    return replicasOf(engine, profile, fleet.pools, demands, {
      ...(kind === undefined ? {} : { parameters: kind.parameters }),
      believedSlowness: own?.believedSlowness ?? 1,
    });
  });
}
