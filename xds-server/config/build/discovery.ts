import { resolve } from 'node:path';
import { parseHostPort } from '../../fleet/address.js';
import type { DiscoverySource } from '../config.js';
import type { ConfigFile } from '../schema/schema.js';

/** Sources of replicas by engine id, of engines that have one. */
export function buildDiscovery(config: ConfigFile, folder: string): ReadonlyMap<string, DiscoverySource> {
  return new Map(
    config.engines.flatMap(({ id, discovery }): [string, DiscoverySource][] => {
      if (discovery?.dns !== undefined) return [[id, { kind: 'dns', ...parseHostPort(discovery.dns)! }]];
      if (discovery?.srv !== undefined) return [[id, { kind: 'srv', name: discovery.srv }]];
      if (discovery?.file !== undefined)
        return [[id, { kind: 'file', path: resolve(folder, discovery.file) }]];
      return [];
    }),
  );
}
