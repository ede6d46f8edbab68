import { dirname, resolve } from 'node:path';
import { normaliseAddress, parseTarget } from '../../fleet/address.js';
import type { ServerSettings } from '../config.js';
import type { ConfigFile } from '../schema/schema.js';

/** `file`: path of the configuration; `secrets`: what is in files of their own. */
export function buildServer(
  { server }: ConfigFile,
  file: string,
  secrets: Pick<ServerSettings, 'tls' | 'token'>,
): ServerSettings {
  return {
    xdsListen: normaliseAddress(server.xds.listen),
    syncListen: normaliseAddress(server.sync.listen),
    adminListen: normaliseAddress(server.admin.listen),
    stateFile: resolve(dirname(file), server.stateFile),
    peers: server.peers.map(({ xds, sync }) => ({ xds: parseTarget(xds)!, sync: parseTarget(sync)! })),
    edsIntervalSeconds: server.edsIntervalSeconds,
    logLevel: server.logLevel,
    ...secrets,
  };
}
