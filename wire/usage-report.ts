import * as L from './layout.js';

/**
 * A usage report: cumulative counters of every VM of one Envoy. The server takes differences per VM incarnation, so
 * lost calls, duplicates and restarts need no ledger. Pools, engines and replicas are named by the 64-bit hash of
 * their id or address (`id64` of `hash.ts`), because indexes change with the snapshot. A row that a later report of
 * the same VM leaves out is gone; when it comes back, it counts from zero.
 */
export interface UsageReport {
  readonly vms: readonly VmUsage[];
  /** Hashes of keys that this Envoy has displaced since its last report, their lowest bit 0; absent: none. */
  readonly displaced?: readonly bigint[];
}

export interface VmUsage {
  /** Random at VM start; a restarted VM counts from zero under a new one. */
  readonly incarnation: bigint;
  /** Grows with everything that the VM reports, so that a late report is known as one. */
  readonly sequence: number;
  readonly pools: readonly PoolUsage[];
  readonly engines: readonly EngineUsage[];
  readonly latencies: readonly LatencyUsage[];
  readonly replicas: readonly ReplicaUsage[];
  readonly loads: readonly LoadUsage[];
  readonly networks: readonly NetworkUsage[];
  readonly turns: readonly TurnUsage[];
  /** Of conversations with at least so many zero bits at the end of the key, all turns that came through are counted. */
  readonly turnLevel: number;
}

/**
 * Counts since the VM started, per class: a pool and a priority. Token counts are of answers that have ended well, and
 * of a sample where there are very many that are not streamed; a prompt counts as the answer tells, else as its body was
 * estimated; an output as the answer tells, else by the events of the stream.
 */
export interface PoolUsage {
  readonly pool: bigint;
  readonly priority: number;
  /** First attempts offered, shed ones included, client retries excluded. */
  readonly offered: number;
  /** Requests whose client says that they are a retry of its own. */
  readonly clientRetries: number;
  readonly shed: number;
  /** Answered with 503 because no engine was usable. */
  readonly unavailable: number;
  readonly withoutKey: number;
  /** Offered requests whose body was read, and those of them that hold an earlier answer. */
  readonly bodiesRead: number;
  readonly followUps: number;
  /** Prompts of known length, and their tokens. */
  readonly promptCount: number;
  readonly promptTokens: number;
  /** Prompt tokens served from a cache, and all prompt tokens of the answers that tell. */
  readonly cachedTokens: number;
  readonly cachedOfTokens: number;
  /** Outputs of known length, and their tokens. */
  readonly outputCount: number;
  readonly outputTokens: number;
}

/** Counts since the VM started, per (pool, engine). */
export interface EngineUsage {
  readonly pool: bigint;
  readonly engine: bigint;
  /** Requests whose first attempt was sent here as planned. */
  readonly planned: number;
  /** Requests whose first attempt was sent here by guardrail, overflow or scan. */
  readonly diverted: number;
  /** Those of both that ended, however they ended. */
  readonly ended: number;
  /**
   * Attempts that failed: connect failures, resets, 5xx, as far as Envoy tells; stalled and broken answers; and those that a
   * replica in doubt refused (401, 403, 404) and another served.
   */
  readonly failures: number;
  readonly status2xx: number;
  readonly status4xx: number;
  readonly status5xx: number;
  /** Requests that ended before response headers. */
  readonly noResponse: number;
  /** Retried attempts, whoever served in the end. */
  readonly retries: number;
  /** Answers that an idle limit ended: the engine had sent headers and then was silent. */
  readonly stalled: number;
  /** Answers that the engine broke off, or ended with an error that is a 5xx. */
  readonly broken: number;
  /** Sum and count of seconds from the request to the first body byte of streamed answers. */
  readonly firstTokenSecondsSum: number;
  readonly firstTokenCount: number;
  /** Sum and count of seconds from the request to the end of answers that are not streamed. */
  readonly wholeSecondsSum: number;
  readonly wholeCount: number;
  /** Seconds from the first body byte of streamed answers to their end, and the tokens that came after the first. */
  readonly paceSecondsSum: number;
  readonly paceTokens: number;
  /** Answers that told their tokens, and what they told. */
  readonly usageCount: number;
  readonly promptTokens: number;
  /** Prompt tokens served from a cache, and all prompt tokens of the answers that tell. */
  readonly cachedTokens: number;
  readonly cachedOfTokens: number;
  readonly outputTokens: number;
}

/** Streamed answers since the VM started, per engine, by how fast they were. */
export interface LatencyUsage {
  readonly engine: bigint;
  /** Answers by seconds to the first body byte; see `FIRST_TOKEN_BOUNDS`. */
  readonly firstTokens: readonly number[];
  /** Answers by mean seconds between tokens; see `PACE_BOUNDS`. */
  readonly paces: readonly number[];
}

/** Attempts since the VM started, of replicas that have any in flight: `sent - ended`. */
export interface ReplicaUsage {
  readonly engine: bigint;
  /** Hash of the address. */
  readonly replica: bigint;
  readonly sent: number;
  readonly ended: number;
}

/**
 * What the responses of a replica said of its load, since the VM started or since these counters have started over; only of
 * replicas that do, and of no more than MOST_LOADS_TOLD in a report: of others the next reports tell.
 */
export interface LoadUsage {
  readonly engine: bigint;
  /** Hash of the address. */
  readonly replica: bigint;
  /** Responses with a load report that could be read, and with one that could not. */
  readonly reports: number;
  readonly garbled: number;
  /** Sums and counts of the readings by `LOAD_NAMES`. */
  readonly sums: readonly number[];
  readonly counts: readonly number[];
}

/** Round trips to an engine since the VM started, each the least of a few in a row; only of VMs that measure. */
export interface NetworkUsage {
  readonly engine: bigint;
  readonly roundTripCount: number;
  readonly roundTripSecondsSum: number;
}

/** Turns of one of the conversations that are watched, since it is. */
export interface TurnUsage {
  readonly pool: bigint;
  /** Hash of pool and affinity key. */
  readonly key: bigint;
  readonly turns: number;
}

/** Upper bounds of the buckets of first-token times, in seconds; one more bucket has no bound. */
export const FIRST_TOKEN_BOUNDS = bounds(L.FIRST_TOKEN_LEAST_SECONDS, L.FIRST_TOKEN_BUCKETS);
/** Upper bounds of the buckets of token paces, in seconds a token; one more bucket has no bound. */
export const PACE_BOUNDS = bounds(L.PACE_LEAST_SECONDS, L.PACE_BUCKETS);

function bounds(least: number, buckets: number): readonly number[] {
  return Array.from({ length: buckets - 1 }, (_, bucket) => least * 2 ** bucket);
}

/**
 * The readings of load reports: application utilisation and KV cache use (1 is full), requests waiting and running,
 * requests and errors per second.
 */
export const LOAD_NAMES = ['utilization', 'kvUse', 'waiting', 'running', 'requestRate', 'errorRate'] as const;
export type LoadName = (typeof LOAD_NAMES)[number];

export function noPoolUsage(pool: bigint, priority = 0): PoolUsage {
  return {
    pool,
    priority,
    offered: 0,
    clientRetries: 0,
    shed: 0,
    unavailable: 0,
    withoutKey: 0,
    bodiesRead: 0,
    followUps: 0,
    promptCount: 0,
    promptTokens: 0,
    cachedTokens: 0,
    cachedOfTokens: 0,
    outputCount: 0,
    outputTokens: 0,
  };
}

export function noEngineUsage(pool: bigint, engine: bigint): EngineUsage {
  return {
    pool,
    engine,
    planned: 0,
    diverted: 0,
    ended: 0,
    failures: 0,
    status2xx: 0,
    status4xx: 0,
    status5xx: 0,
    noResponse: 0,
    retries: 0,
    stalled: 0,
    broken: 0,
    firstTokenSecondsSum: 0,
    firstTokenCount: 0,
    wholeSecondsSum: 0,
    wholeCount: 0,
    paceSecondsSum: 0,
    paceTokens: 0,
    usageCount: 0,
    promptTokens: 0,
    cachedTokens: 0,
    cachedOfTokens: 0,
    outputTokens: 0,
  };
}

/** What a VM reports that has done nothing. */
export function noVmUsage(incarnation: bigint, sequence = 1): VmUsage {
  return {
    incarnation,
    sequence,
    pools: [],
    engines: [],
    latencies: [],
    replicas: [],
    loads: [],
    networks: [],
    turns: [],
    turnLevel: 0,
  };
}
