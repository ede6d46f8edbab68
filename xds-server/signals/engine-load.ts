import type { Address } from '../fleet/fleet.js';
import { confidence, type ReplicaReading } from './replica-reading.js';

/**
 * Requests running and waiting on these replicas together, by their own account; undefined unless every one says so
 * now, as a sum without one of its terms would be a wrong one.
 */
export function requestsAt(
  replicas: readonly Address[],
  readings: ReadonlyMap<Address, ReplicaReading>,
  nowMs: number,
): number | undefined {
  let sum = 0;
  for (const address of replicas) {
    for (const name of ['running', 'waiting'] as const) {
      const signal = readings.get(address)?.signals.get(name);
      if (signal?.value === undefined || confidence(signal, nowMs) < 1) return undefined;
      sum += signal.value;
    }
  }
  return sum;
}
