import { createHash } from 'node:crypto';
import { compare } from '../collections.js';
import type { Config, DiscoverySource } from './config.js';

/**
 * Names what a configuration means to a fleet, with what it takes from other files, however these are written. The addresses and files
 * of the server itself are left out, and replicas that are looked for: these come and go, and are found by each server for itself.
 */
export function configId(config: Config): string {
  const { file: _file, server: _server, warnings: _warnings, shown: _shown, ...meaning } = config;
  const { fleet, discovery } = meaning;
  const engines = fleet.engines.map((engine) =>
    discovery.has(engine.id) ? { ...engine, endpoints: [] } : engine,
  );
  const sources = [...discovery].map(([id, source]) => [id, placeless(source)] as const);
  const text = textOf({ ...meaning, fleet: { ...fleet, engines }, discovery: new Map(sources) });
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/** A file of the same replicas may have another place on each machine. */
function placeless(source: DiscoverySource): object {
  return source.kind === 'file' ? { kind: source.kind } : source;
}

/** As JSON, whatever the order in which objects and maps were filled. */
function textOf(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) => {
    if (each instanceof Map) return sorted([...each]);
    if (typeof each !== 'object' || each === null || Array.isArray(each)) return each;
    return Object.fromEntries(sorted(Object.entries(each)));
  });
}

function sorted(entries: [string, unknown][]): [string, unknown][] {
  return entries.sort(([a], [b]) => compare(a, b));
}
