/**
 * A usage report: cumulative counters of every VM of one Envoy. The server takes differences per VM incarnation, so
 * lost calls, duplicates and restarts need no ledger. Pools and engines are named by the 64-bit hash of their id
 * (`id64` of `hash.ts`), because indexes change with the snapshot.
 */
export interface UsageReport {
  readonly vms: readonly VmUsage[];
}

export interface VmUsage {
  /** Random at VM start; a restarted VM counts from zero under a new one. */
  readonly incarnation: bigint;
  readonly pools: readonly PoolUsage[];
  readonly engines: readonly EngineUsage[];
}

/** Counts since the VM started. */
export interface PoolUsage {
  readonly pool: bigint;
  /** First attempts offered, shed ones included, client retries excluded. */
  readonly offered: number;
  /** Requests whose client says that they are a retry of its own. */
  readonly clientRetries: number;
  readonly shed: number;
  /** Answered with 503 because no engine was usable. */
  readonly unavailable: number;
  readonly withoutKey: number;
}

/** Counts since the VM started, per (pool, engine). */
export interface EngineUsage {
  readonly pool: bigint;
  readonly engine: bigint;
  /** Requests whose first attempt was sent here as planned. */
  readonly planned: number;
  /** Requests whose first attempt was sent here by guardrail, overflow or scan. */
  readonly diverted: number;
  /** Requests that ended, however they ended; picked - ended is the number in flight. */
  readonly ended: number;
  /** Attempts that failed: connect failures, resets, 5xx, as far as Envoy tells. */
  readonly failures: number;
  readonly status2xx: number;
  readonly status4xx: number;
  readonly status5xx: number;
  /** Requests that ended before response headers. */
  readonly noResponse: number;
  /** Retried attempts, whoever served in the end. */
  readonly retries: number;
  /** Sum and count of seconds to the first response body byte. */
  readonly firstByteSecondsSum: number;
  readonly firstByteCount: number;
}
