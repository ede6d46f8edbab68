import type { Config } from '../../config/config.js';
import type { Address, Fleet } from '../../fleet/fleet.js';
import type { Discovered } from '../../signals/discovery/discovery.js';

export interface DiscoveredConfig {
  readonly config: Config;
  /** What is wrong with the discovery of an engine, by its id. */
  readonly problems: ReadonlyMap<string, string>;
}

/** The configuration with the replicas that were found. An address belongs to the first engine that has it. */
export function withDiscovered(
  config: Config,
  discovered: ReadonlyMap<string, Discovered>,
): DiscoveredConfig {
  const problems = new Map<string, string>();
  const listed = config.fleet.engines.filter(({ id }) => !config.discovery.has(id));
  const owners = new Map<Address, string>(
    listed.flatMap(({ id, endpoints }) => endpoints.map((address) => [address, id] as const)),
  );
  const engines = config.fleet.engines.map((engine) => {
    if (!config.discovery.has(engine.id)) return engine;
    const { addresses, problem } = discovered.get(engine.id) ?? { addresses: undefined, problem: null };
    if (problem !== null) problems.set(engine.id, problem);
    const endpoints = (addresses ?? []).filter((address) => {
      const owner = owners.get(address) ?? engine.id;
      owners.set(address, owner);
      if (owner !== engine.id) problems.set(engine.id, `${address} already belongs to engine ${owner}`);
      return owner === engine.id;
    });
    return { ...engine, endpoints };
  });
  return { config: { ...config, fleet: { ...config.fleet, engines } }, problems };
}

/** Whether a pool has nobody only because nothing is known yet of engines that are to be found. */
export function isUndiscovered(
  { pools, engines }: Fleet,
  sources: Config['discovery'],
  discovered: ReadonlyMap<string, Discovered>,
): boolean {
  // It is asked at every tick, and most fleets list all replicas.
  if (sources.size === 0) return false;
  const replicas = new Map(engines.map(({ id, endpoints }) => [id, endpoints.length]));
  return pools.some(
    ({ engineIds }) =>
      engineIds.every((id) => (replicas.get(id) ?? 0) === 0) &&
      engineIds.some((id) => sources.has(id) && discovered.get(id)?.addresses === undefined),
  );
}
