import type { Fleet } from './fleet.js';

/** How one replica looks now. */
export interface ReplicaState {
  readonly address: string;
  readonly ready: boolean;
}

/** The most that an engine is taken for by what it was seen to get done, as a multiple of what its profile says. */
export const MOST_HEALTH = 1.25;

/** How one engine looks now; the optimizer's view of its supply. */
export interface EngineState {
  readonly id: string;
  readonly replicas: readonly ReplicaState[];
  /**
   * 0..1.25, share of the capacity by the profile that a ready replica really has: work arriving from outside lowers it,
   * and what the engine was seen to get done corrects it.
   */
  readonly health: number;
  /** 0..1, slow start: 1 when warmed up. */
  readonly ramp: number;
  /** 0..1, drain: 1 in service, 0 drained. */
  readonly drain: number;
  /** 0..1, outlier penalty: 0 none. */
  readonly penalty: number;
  /** 1..10, observed over expected latency; multiplies the engine's latency curve. */
  readonly latencyFactor: number;
}

/** What one class of requests from one frontend asks for. A class is a pool and a priority. */
export interface Demand {
  readonly frontendId: string;
  readonly poolId: string;
  /** Larger is more important; 0 is the default. */
  readonly priority: number;
  /** Requests per second that clients send, shed ones and clients' own retries included; attempts of Envoys are none. */
  readonly requestsPerSecond: number;
  /** Mean prompt tokens per request that are not in a cache when the conversation stays where it is. */
  readonly uncachedPromptTokens: number;
  /** Mean prompt tokens per request, cached ones included. */
  readonly promptTokens: number;
  /** Mean output tokens per request, at least 1. */
  readonly outputTokens: number;
  /** 0..1, share of requests that continue a conversation. */
  readonly followUpShare: number;
  /** Mean seconds between two turns of a conversation. */
  readonly turnGapSeconds: number;
  /** Where the rate comes from: measured now, held from earlier reports, or the configured expectation. */
  readonly source: 'measured' | 'held' | 'expected';
  /** Nobody of the frontend reports: the rate is of before. Of one priority, what is known to come is served first. */
  readonly isUnheard?: true;
}

/** The optimizer's whole input besides profiles, policy and the previous plan. */
export interface FleetState {
  readonly fleet: Fleet;
  /** Milliseconds since the epoch; given from outside, no core reads a clock. */
  readonly atMs: number;
  /** Same order as `fleet.engines`. */
  readonly engines: readonly EngineState[];
  /** At most one entry per (frontend, pool, priority); sorted by these. */
  readonly demands: readonly Demand[];
  /** Seconds that demand and the fleet count as having held; the horizon of move costs grows with it. The least of all pools. */
  readonly settledSeconds: number;
  /** The same by pool id: pools that share engines have the same, others their own. `settledSeconds` for those not named. */
  readonly settledSecondsByPool?: Readonly<Record<string, number>>;
}

/** What an engine's capacity follows from. */
interface CapacityState extends Pick<EngineState, 'health' | 'ramp' | 'drain' | 'penalty'> {
  readonly replicas: readonly Pick<ReplicaState, 'ready'>[];
}

/** Replicas below which an engine can serve nobody. */
export const LEAST_CAPACITY = 1e-6;

/** Ready replicas x health x ramp x drain x (1 - penalty), in replicas. */
export function effectiveCapacity(engine: CapacityState): number {
  let ready = 0;
  for (const replica of engine.replicas) if (replica.ready) ready++;
  return ready * engine.health * engine.ramp * engine.drain * (1 - engine.penalty);
}

/** Seconds that conditions count as having held for a pool. */
export function settledSecondsOf(
  { settledSeconds, settledSecondsByPool }: Pick<FleetState, 'settledSeconds' | 'settledSecondsByPool'>,
  poolId: string,
): number {
  return settledSecondsByPool?.[poolId] ?? settledSeconds;
}
