/** What Envoy's own statistics say of one engine of a pool: counts since its last report, and attempts under way. */
export interface EngineLoadCounts {
  readonly engineId: string;
  /** Attempts sent, retries included. */
  readonly issued: number;
  /** Answers below 500. */
  readonly succeeded: number;
  /** 5xx, resets and time-outs. */
  readonly failed: number;
  readonly inProgress: number;
}

export interface PoolLoadCounts {
  readonly poolId: string;
  /** Requests that Envoy refused without an attempt. */
  readonly dropped: number;
  readonly engines: readonly EngineLoadCounts[];
}

/** One load report (LRS) of an Envoy, by pool. */
export type LoadReport = readonly PoolLoadCounts[];
