/**
 * What one frontend's filters need of a plan, as plain values: the input of the snapshot writer and the output of
 * its reader. Indexes point into the lists of the same view.
 */
export interface SnapshotView {
  /** Grows with every snapshot a server issues to a frontend; below 2^53. */
  readonly version: number;
  /** 16 hex digits, lower case. */
  readonly planId: string;
  readonly issuedAtMs: number;
  readonly frontendId: string;
  /** Mixed into every key hash, so that keys map alike for all Envoys but not predictably for clients. */
  readonly salt: string;
  /** Sorted by name when read from a snapshot. */
  readonly models: readonly SnapshotModel[];
  readonly pools: readonly SnapshotPool[];
  readonly engines: readonly SnapshotEngine[];
}

/** A served model name and the pool that answers for it. */
export interface SnapshotModel {
  readonly name: string;
  readonly pool: number;
}

export interface SnapshotPool {
  readonly id: string;
  /** Value of the cluster header. */
  readonly cluster: string;
  /** Eligible engines, ascending. */
  readonly engines: readonly number[];
  readonly segments: readonly SnapshotSegment[];
  /** 0..1 retries earned by each first attempt. */
  readonly retryRatio: number;
  /** 0..1 share of default-priority requests to refuse. */
  readonly shedFraction: number;
}

/** `start` is a point of the 2^32 hash space; `backup` is -1 when there is none. */
export interface SnapshotSegment {
  readonly start: number;
  readonly owner: number;
  readonly backup: number;
}

export interface SnapshotEngine {
  readonly id: string;
  readonly replicas: readonly SnapshotReplica[];
}

export interface SnapshotReplica {
  /** `ip:port` exactly as Envoy prints the host. */
  readonly address: string;
  readonly ready: boolean;
}
