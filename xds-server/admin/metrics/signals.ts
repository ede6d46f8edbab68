import { mean, sum } from '../../collections.js';
import type { SignalName } from '../../fleet/fleet.js';
import { trustedValue } from '../../signals/pages/replica-reading.js';
import { now } from '../../steady-clock.js';
import type { ShownServer } from '../shown-server.js';
import { type Family, gauge } from './family.js';

/** What engines say on their metrics pages. */
export function registerSignals(server: ShownServer, families: Family[]): void {
  for (const signal of ['running', 'waiting'] as const) {
    gauge(
      families,
      `wardrop_engine_${signal}_requests`,
      `Requests that the engine itself says are ${signal}; absent while unknown.`,
      ['engine'],
      () => knownValues(server, signal).map(([labels, values]) => [labels, sum(values)] as const),
    );
  }
  gauge(
    families,
    'wardrop_engine_kv_use',
    'Mean use of the key-value cache over replicas, 0 to 1; absent while unknown.',
    ['engine'],
    () => knownValues(server, 'kvUse').map(([labels, values]) => [labels, mean(values)] as const),
  );
  gauge(
    families,
    'wardrop_engine_signal_age_seconds',
    'Age of the oldest reading of a signal among the replicas of an engine; absent while there is none.',
    ['engine', 'signal'],
    () => signalAges(server),
  );
}

/** Values of a signal, of the replicas where it can be trusted. */
function knownValues(
  server: ShownServer,
  signal: SignalName,
): readonly (readonly [{ engine: string }, readonly number[]])[] {
  const nowMs = now();
  return server.config.fleet.engines.flatMap(({ id, endpoints }) => {
    const values = endpoints
      .map((address) => trustedValue(server.engineWatch.readings.get(address)?.signals.get(signal), nowMs))
      .filter((value) => value !== undefined);
    return values.length === 0 ? [] : [[{ engine: id }, values] as const];
  });
}

function signalAges(server: ShownServer): readonly (readonly [{ engine: string; signal: string }, number])[] {
  const nowMs = now();
  return server.config.fleet.engines.flatMap(({ id, endpoints }) => {
    const oldest = new Map<SignalName, number>();
    for (const address of endpoints) {
      for (const [signal, { atMs }] of server.engineWatch.readings.get(address)?.signals ?? []) {
        oldest.set(signal, Math.min(oldest.get(signal) ?? Number.POSITIVE_INFINITY, atMs));
      }
    }
    return [...oldest]
      .filter(([, atMs]) => atMs > 0)
      .map(([signal, atMs]) => [{ engine: id, signal }, (nowMs - atMs) / 1_000] as const);
  });
}
