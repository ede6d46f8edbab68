import type { Address } from '../../fleet/fleet.js';
import type { ReplicaLoad } from '../usage/usage-totals.js';
import { confidence, FRESH_MS, type ReplicaReading } from './replica-reading.js';

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
  /** Those of them that wait. */
  readonly waiting: number;
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
  const onPage = loadOf(pages.get(address)?.signals, (signal) => confidence(signal, nowMs) === 1);
  if (onPage !== undefined) return { ...onPage, source: 'page' };
  const reported = loadOf(responses(address)?.readings, ({ atMs }) => nowMs - atMs <= FRESH_MS);
  return reported === undefined ? undefined : { ...reported, source: 'responses' };
}

function loadOf<S extends { readonly value: number | undefined }>(
  signals: { get(name: 'running' | 'waiting'): S | undefined } | undefined,
  isFresh: (signal: S) => boolean,
): { readonly requests: number; readonly waiting: number } | undefined {
  const running = signals?.get('running');
  const waiting = signals?.get('waiting');
  if (running?.value === undefined || waiting?.value === undefined) return undefined;
  if (!isFresh(running) || !isFresh(waiting)) return undefined;
  return { requests: running.value + waiting.value, waiting: waiting.value };
}

/** Requests at several replicas together. */
export interface RequestsAt {
  readonly requests: number;
  /** The fewest that wait at any one of them. */
  readonly leastWaiting: number;
}

/**
 * The same of several replicas together; undefined unless every one says so now, as a sum without one of its terms
 * would be a wrong one.
 */
export function loadAt(
  replicas: readonly Address[],
  sources: LoadSources,
  nowMs: number,
): RequestsAt | undefined {
  let requests = 0;
  let leastWaiting = Number.POSITIVE_INFINITY;
  for (const address of replicas) {
    const at = requestsAtReplica(address, sources, nowMs);
    if (at === undefined) return undefined;
    requests += at.requests;
    leastWaiting = Math.min(leastWaiting, at.waiting);
  }
  return { requests, leastWaiting: replicas.length === 0 ? 0 : leastWaiting };
}

/** Requests at several replicas, if each tells. */
export function requestsAt(
  replicas: readonly Address[],
  sources: LoadSources,
  nowMs: number,
): number | undefined {
  return loadAt(replicas, sources, nowMs)?.requests;
}
