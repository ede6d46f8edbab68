import { isDeepStrictEqual } from 'node:util';
import type { Config, ServerSettings } from '../../config/config.js';

/** Settings that are only read at the start, as the configuration calls them. */
const READ_AT_START: Readonly<
  Record<Exclude<keyof ServerSettings, 'edsIntervalSeconds' | 'logLevel'>, string>
> = {
  xdsListen: 'server.xds',
  syncListen: 'server.sync',
  adminListen: 'server.admin',
  stateFile: 'server.stateFile',
  token: 'server.token',
  tls: 'server.tls',
  peers: 'server.peers',
};

/** Those of them that differ. */
export function waitingForRestart(before: ServerSettings, after: ServerSettings): readonly string[] {
  const keys = Object.keys(READ_AT_START) as (keyof typeof READ_AT_START)[];
  const differing = keys.filter((key) => !isDeepStrictEqual(before[key], after[key]));
  return differing
    .filter((key) => key !== 'tls' || !isRenewal(before, after))
    .map((key) => READ_AT_START[key]);
}

/** Whether certificates take the place of others, and nobody is asked for more or less than before. */
function isRenewal({ tls: before }: ServerSettings, { tls: after }: ServerSettings): boolean {
  if (before === undefined || after === undefined) return false;
  return (before.clientCa === undefined) === (after.clientCa === undefined);
}

/** Whether two configurations mean the same to a running server. */
export function isSameConfig(a: Config, b: Config): boolean {
  const essence = (config: Config) => {
    const { file: _file, warnings: _warnings, shown: _shown, discovery: _found, ...meaning } = config;
    const { edsIntervalSeconds, logLevel, tls } = config.server;
    return { ...meaning, server: { edsIntervalSeconds, logLevel, tls } };
  };
  return isDeepStrictEqual(essence(a), essence(b));
}

/**
 * The configuration that a running server goes on with: settings that are only read at the start stay, and an equal
 * fleet stays the same object, so that nobody takes it for another one.
 */
export function takeOver(running: Config, next: Config): Config {
  const { edsIntervalSeconds, logLevel, tls } = next.server;
  const isRenewed = isRenewal(running.server, next.server) && !isDeepStrictEqual(running.server.tls, tls);
  return {
    ...next,
    fleet: isDeepStrictEqual(running.fleet, next.fleet) ? running.fleet : next.fleet,
    server: { ...running.server, edsIntervalSeconds, logLevel, ...(isRenewed && tls && { tls }) },
  };
}
