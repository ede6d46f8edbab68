import type { Address } from './fleet.js';

/** An engine, or one replica of it, that an operator takes out of service. */
export interface Drain {
  readonly engineId: string;
  /** Null for the whole engine. */
  readonly address: Address | null;
  readonly sinceMs: number;
  /** An engine's capacity falls to nothing over this time; a replica gets nothing at once. */
  readonly overSeconds: number;
  /** It ends by itself then. */
  readonly untilMs: number;
}

/** `hold` keeps a penalty as it is; `release` ends it and allows no other. Both until a time. */
export interface PenaltyOrder {
  readonly kind: 'hold' | 'release';
  readonly engineId: string;
  readonly sinceMs: number;
  readonly untilMs: number;
}

/** A penalty in force. */
export interface RunningPenalty {
  readonly engineId: string;
  readonly severity: number;
  readonly sinceMs: number;
}

/** A capacity that was measured to be other than by the profile. */
export interface RunningCapacity {
  readonly engineId: string;
  /** Of the capacity by the profile. */
  readonly share: number;
  readonly sinceMs: number;
  /** Names the profile and the requests that it was measured against; absent in older files. */
  readonly basis?: string;
}

/** Mean tokens of the requests of a frontend to a pool as they were measured when they last changed. */
export interface MeasuredSizes {
  readonly frontendId: string;
  readonly poolId: string;
  readonly promptTokens: number;
  readonly uncachedPromptTokens: number;
  readonly outputTokens: number;
  readonly atMs: number;
}

/** Demand of a class of requests that plans were made for. */
export interface ClassRate {
  readonly frontendId: string;
  readonly poolId: string;
  /** Of the class; 0 when absent. */
  readonly priority?: number;
  readonly requestsPerSecond: number;
}

export const OPERATOR_ACTIONS = ['drain', 'undrain', 'hold-penalty', 'release-penalty'] as const;

/** So many actions are kept. */
export const MOST_ACTIONS = 100;

/** Something that an operator did. */
export interface OperatorAction {
  readonly atMs: number;
  readonly action: (typeof OPERATOR_ACTIONS)[number];
  /** An engine's id or a replica's address. */
  readonly target: string;
  /** Who says to have done it; not verified. */
  readonly by: string;
}

/** A round trip between a frontend and an engine as it was measured last. */
export interface MeasuredRoundTrip {
  readonly frontendId: string;
  readonly engineId: string;
  readonly seconds: number;
  readonly atMs: number;
}

/** What operators ordered. */
export interface Orders {
  readonly drains: readonly Drain[];
  readonly orders: readonly PenaltyOrder[];
  /** The last ones, oldest first. */
  readonly actions: readonly OperatorAction[];
}

/** The same, and what was found out; survives a restart of the control server. */
export interface Operations extends Orders {
  readonly penalties: readonly RunningPenalty[];
  /** Absent when there are none. */
  readonly capacities?: readonly RunningCapacity[];
  /** Absent in files of before any were measured. */
  readonly roundTrips?: readonly MeasuredRoundTrip[];
  /** Absent when there are none. */
  readonly sizes?: readonly MeasuredSizes[];
  /** Absent without classes: the plan tells the demand of its rows, which is all there is to know then. */
  readonly rates?: readonly ClassRate[];
}
