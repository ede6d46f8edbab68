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
  /** 0..1 share of keys that are steered; the others are decided on and counted only. Absent when all are. */
  readonly steered?: number;
  /** Sorted by name when read from a snapshot. */
  readonly models: readonly SnapshotModel[];
  readonly pools: readonly SnapshotPool[];
  readonly engines: readonly SnapshotEngine[];
  /** At most 64; absent when there are none. */
  readonly needs?: readonly SnapshotNeed[];
  /** What gives requests a priority other than 0: the first whose need they carry. Absent when there are none. */
  readonly classRules?: readonly ClassRule[];
  /** Engines, the nearest first, for requests that need no model; absent when there are none. */
  readonly nearest?: readonly number[];
}

export interface ClassRule {
  /** Of `needs`. */
  readonly need: number;
  readonly priority: number;
}

/** A served model name, which may be an alias or an adapter, and the pool that answers for it. */
export interface SnapshotModel {
  readonly name: string;
  /** The pool for requests without needs, -1 when nobody serves them. */
  readonly pool: number;
  /** Needs that make a difference to this model, ascending, at most 6; absent when there are none. */
  readonly needs?: readonly number[];
  /**
   * With needs: the pool for every combination, -1 where nobody meets it. Bit i of the place stands for `needs[i]`;
   * the first is `pool`.
   */
  readonly pools?: readonly number[];
}

/** A named requirement, and when a request carries it. */
export interface SnapshotNeed {
  readonly id: string;
  readonly when: NeedCondition;
}

export type NeedCondition =
  /** A header (lower case) has this value, or any but the empty one if no value is given. */
  | { readonly kind: 'header'; readonly name: string; readonly value?: string }
  /** The path begins so. */
  | { readonly kind: 'path'; readonly prefix: string }
  /** The configured tenant header has this value. */
  | { readonly kind: 'tenant'; readonly value: string }
  /** The body asks for something; only with `readBodies`. */
  | { readonly kind: 'body'; readonly feature: BodyFeature }
  /** The prompt is longer than this, at 4 bytes a token, media left out; only with `readBodies`. */
  | { readonly kind: 'promptTokens'; readonly above: number }
  /** The same with the most tokens that the answer may have, if the body says how many. */
  | { readonly kind: 'totalTokens'; readonly above: number }
  /** The body's `service_tier` has this value; only for rules of classes. */
  | { readonly kind: 'serviceTier'; readonly value: string }
  /** The body's `priority` is a whole number above this one; only for rules of classes. */
  | { readonly kind: 'priority'; readonly above: number };

/** In the order of FEATURE_... in `layout.ts`. */
export const bodyFeatures = ['images', 'audio', 'files', 'tools', 'stream'] as const;

export type BodyFeature = (typeof bodyFeatures)[number];

export interface SnapshotPool {
  readonly id: string;
  /** Value of the cluster header. */
  readonly cluster: string;
  /** Eligible engines, ascending. */
  readonly engines: readonly number[];
  readonly segments: readonly SnapshotSegment[];
  /** 0..1 retries earned by each first attempt of priority 0. */
  readonly retryRatio: number;
  /** 0..1 share of requests of priority 0 to refuse. */
  readonly shedFraction: number;
  /** Of other priorities, the most important first; absent when there are none. */
  readonly otherClasses?: readonly SnapshotClass[];
}

/** How requests of one priority are protected; classes of a pool share everything else. */
export interface SnapshotClass {
  /** -100..100, larger is more important. */
  readonly priority: number;
  readonly retryRatio: number;
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
  /** 0..1 share of its keys that go to their backups for now; absent when none do. */
  readonly overflow?: number;
  /** Requests in flight from one Envoy, per ready replica, above which no new one is sent; absent without limit. */
  readonly replicaLimit?: number;
  /** Requests in flight from one Envoy above which new conversations begin at the backup; absent when none do. */
  readonly busyAbove?: number;
  /** Path that replicas are asked for to measure round trips; absent when they are not. */
  readonly probePath?: string;
  readonly replicas: readonly SnapshotReplica[];
}

export interface SnapshotReplica {
  /** `ip:port` exactly as Envoy prints the host. */
  readonly address: string;
  readonly ready: boolean;
  /** 0..1 share of its keys that go to another replica for now; absent when none do. */
  readonly overflow?: number;
}
