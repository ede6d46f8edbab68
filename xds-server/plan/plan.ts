/** The hash space has 2^32 points; partitions are cut at whole points, so that weights add up exactly. */
export const HASH_SPACE = 2 ** 32;

/** A run of the hash space from `start` to the next segment's start (or the end). Starts ascend, the first is 0. */
export interface Segment {
  readonly start: number;
  readonly ownerId: string;
  /** Serves the segment while the owner cannot; null when the pool has no other engine. */
  readonly backupId: string | null;
}

/** A run of the hash space and an engine that owned it before the present owner. */
export interface FormerOwner {
  readonly start: number;
  /** Exclusive, at most 2^32. */
  readonly end: number;
  readonly engineId: string;
}

/** Weights and partition of one (frontend, pool), and how its classes are protected. */
export interface PlanRow {
  readonly frontendId: string;
  readonly poolId: string;
  /** Requests per second the weights were computed for, shed ones included. */
  readonly demandRps: number;
  /** Engines with a weight above 0, sorted by engine id; weights add up to 1 unless nobody can serve the row. */
  readonly weights: readonly Weight[];
  /** Covers the whole hash space; owned lengths over 2^32 equal the weights. Empty when nobody can serve the row. */
  readonly segments: readonly Segment[];
  /**
   * Former owners, latest change first: an engine whose weight grows takes these parts back before any other. Only the
   * next plan reads them, so they are no part of the plan's id. Absent when nothing is remembered.
   */
  readonly former?: readonly FormerOwner[];
  /** Set where no solve found the weights, but the plain rule that holds while none can be had. No part of the plan's id. */
  readonly isPlain?: true;
  /** 0..1, share of retries per first attempt. */
  readonly retryRatio: number;
  /** Share of requests refused, by priority, highest first; priorities without shedding may be absent. */
  readonly shed: readonly ShedEntry[];
}

export interface Weight {
  readonly engineId: string;
  readonly weight: number;
}

export interface ShedEntry {
  readonly priority: number;
  readonly fraction: number;
}

/** Load and price of one engine under the plan. */
export interface PlanEngine {
  readonly engineId: string;
  readonly effectiveCapacity: number;
  readonly rho: number;
  /** Derivative of the congestion cost by work, in user-seconds per replica-second. */
  readonly congestionPriceSeconds: number;
  /** Dual of the hard utilisation limit, in user-seconds per replica-second; 0 when it does not bind. */
  readonly scarcityPriceSeconds: number;
}

/** All weights, partitions and protection settings of one solve. */
export interface Plan {
  /** Content hash of everything a filter or an operator can see of the plan; equal content, equal id. */
  readonly id: string;
  /** Grows by one with every published plan; survives restarts through the state file. */
  readonly sequence: number;
  readonly createdAtMs: number;
  /** Sorted by frontend, then pool; one row for each pair. */
  readonly rows: readonly PlanRow[];
  /** Sorted by engine id. */
  readonly engines: readonly PlanEngine[];
  /** User-seconds per second of the exact convex objective, moves included. */
  readonly objectiveSeconds: number;
}
