import type { Address } from '../fleet/fleet.js';
import { confidence, FRESH_MS, type ReplicaReading } from './replica-reading.js';
import type { ReplicaLoad } from './usage-totals.js';

/** Where replicas say how many requests they have. */
export interface LoadSources {
  /** Their metrics pages, by replica. */
  readonly pages: ReadonlyMap<Address, ReplicaReading>;
  /** Load reports in their responses; undefined for a replica that sends none. */
  readonly responses: (address: Address) => ReplicaLoad | undefined;
}

/** Requests running and waiting at a replica by its own account, and which account that is. */
export interface RequestsAtReplica {
  readonly requests: number;
  readonly source: 'page' | 'responses';
}

/**
 * What a replica says now. Its page decides while it is fresh, its responses only when it is not: a report is as old
 * as the response that brought it, and between two sources that take turns a value would jump. Both numbers are from
 * the same source. Undefined while neither has both.
 */
export function requestsAtReplica(
  address: Address,
  { pages, responses }: LoadSources,
  nowMs: number,
): RequestsAtReplica | undefined {
  const onPage = sumOf(pages.get(address)?.signals, (signal) => confidence(signal, nowMs) === 1);
  if (onPage !== undefined) return { requests: onPage, source: 'page' };
  const reported = sumOf(responses(address)?.readings, ({ atMs }) => nowMs - atMs <= FRESH_MS);
  return reported === undefined ? undefined : { requests: reported, source: 'responses' };
}

function sumOf<S extends { readonly value: number | undefined }>(
  signals: { get(name: 'running' | 'waiting'): S | undefined } | undefined,
  isFresh: (signal: S) => boolean,
): number | undefined {
  const running = signals?.get('running');
  const waiting = signals?.get('waiting');
  if (running?.value === undefined || waiting?.value === undefined) return undefined;
  return isFresh(running) && isFresh(waiting) ? running.value + waiting.value : undefined;
}

/**
 * The same of several replicas together; undefined unless every one says so now, as a sum without one of its terms
 * would be a wrong one.
 */
export function requestsAt(
  replicas: readonly Address[],
  sources: LoadSources,
  nowMs: number,
): number | undefined {
  let sum = 0;
  for (const address of replicas) {
    const at = requestsAtReplica(address, sources, nowMs);
    if (at === undefined) return undefined;
    sum += at.requests;
  }
  return sum;
}
