import { isDeepStrictEqual } from 'node:util';
import type { Config, ServerSettings } from '../config/config.js';

/** Whether settings differ that are only read at the start. */
export function needsRestart(before: ServerSettings, after: ServerSettings): boolean {
  const { edsIntervalSeconds, logLevel } = after;
  return !isDeepStrictEqual({ ...before, edsIntervalSeconds, logLevel }, after);
}

/** Whether two configurations mean the same to a running server. */
export function isSameConfig(a: Config, b: Config): boolean {
  const essence = (config: Config) => {
    const { fleet, profiles, policy, steered, expectedDemand, filter, steering, retryBackstop, server } =
      config;
    return [
      fleet,
      profiles,
      policy,
      steered,
      expectedDemand,
      filter,
      steering,
      retryBackstop,
      server.edsIntervalSeconds,
      server.logLevel,
    ];
  };
  return isDeepStrictEqual(essence(a), essence(b));
}

/**
 * The configuration that a running server goes on with: settings that are only read at the start stay, and an equal
 * fleet stays the same object, so that nobody takes it for another one.
 */
export function takeOver(running: Config, next: Config): Config {
  const { edsIntervalSeconds, logLevel } = next.server;
  return {
    ...next,
    fleet: isDeepStrictEqual(running.fleet, next.fleet) ? running.fleet : next.fleet,
    server: { ...running.server, edsIntervalSeconds, logLevel },
  };
}
