import { byId } from '../../collections.js';
import { normaliseAddress } from '../../fleet/address.js';
import type { Engine, Fleet, Frontend, MetricsSource } from '../../fleet/fleet.js';
import type { Profile } from '../../profiles/profile.js';
import { type NetworkTable, rttBetween } from '../network-table.js';
import type { ConfigFile } from '../schema/schema.js';
import { buildAliases, buildClasses, buildNeeds, buildPools } from './needs.js';
import { mostWork } from './profiles.js';

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
