import type { Engine, Frontend, Pool } from '../fleet/fleet.js';
import type { EngineState, FleetState } from '../fleet/fleet-state.js';
import type { Policy } from '../fleet/policy.js';
import type { Profile } from '../profiles/profile.js';

/** The state of the fleet and all else that a solve depends on. */
export interface OptimizerInput extends SolverInput {
  readonly state: FleetState;
}

/** As much of it as a solve reads; the solution is a function of it, byte for byte. */
export interface SolverInput {
  readonly state: SolverState;
  /** By profile id. */
  readonly profiles: ReadonlyMap<string, Profile>;
  readonly policy: Policy;
  /** Weights in force, for the cost of moves; empty before the first plan. */
  readonly previousWeights: readonly RowWeights[];
  /** Requests and tokens per replica-second of work by engine id, averaged over at least 10 minutes. */
  readonly referenceMix: ReadonlyMap<string, ReferenceMix>;
  /** A question of what if: only flows and weights matter, backups are placed the quick way. Default false. */
  readonly isTrial?: boolean;
}

export interface SolverState extends Omit<FleetState, 'fleet' | 'engines'> {
  readonly fleet: SolverFleet;
  readonly engines: readonly SolverEngine[];
}

export interface SolverFleet {
  readonly frontends: readonly Pick<Frontend, 'id'>[];
  readonly engines: readonly Pick<Engine, 'id' | 'profile'>[];
  readonly pools: readonly Pick<Pool, 'id' | 'engineIds' | 'lastResortIds'>[];
  readonly networkSeconds: Matrix;
  readonly egressDollarsPerRequest?: Matrix;
}

export interface SolverEngine extends Omit<EngineState, 'replicas'> {
  readonly replicas: readonly { readonly ready: boolean }[];
}

/** `[frontend index][engine index]`, as in `Fleet`. */
export type Matrix = readonly ArrayLike<number>[];

export interface RowWeights {
  readonly frontendId: string;
  readonly poolId: string;
  readonly weights: ReadonlyMap<string, number>;
}

/** What one replica-second of work consists of. */
export interface ReferenceMix {
  readonly requestsPerWorkSecond: number;
  readonly outputTokensPerWorkSecond: number;
}

export interface Solution {
  /** One for each (frontend, pool), sorted by frontend, then pool. */
  readonly rows: readonly SolutionRow[];
  /** Sorted by engine id. */
  readonly engines: readonly EngineLoad[];
  /** Exact convex objective of the flows, moves included, in user-seconds per second. */
  readonly objectiveSeconds: number;
  /** Lower bound on the objective of any flows, proven by the prices (weak duality); never above the objective. */
  readonly lowerBoundSeconds: number;
  /** Difference between the objective at the reference mix and at the true mix of this solution. */
  readonly mixErrorSeconds: number;
  /** What the optimizer bounded or ignored in its input, and why; sorted. Operators see them beside the plan. */
  readonly warnings: readonly string[];
}

export interface SolutionRow {
  readonly frontendId: string;
  readonly poolId: string;
  readonly demandRps: number;
  /** Served flow by engine, engines sorted by id, only flows above 0. */
  readonly flows: readonly EngineFlow[];
  /** Weights to publish even when demand is 0: shares of the flows, or of where the next request would go. */
  readonly weights: readonly EngineWeight[];
  readonly shed: readonly ShedFraction[];
  /** Where each owner's traffic goes when it is lost: shares that add up to 1, or none when nobody else can serve. */
  readonly backups: readonly BackupShares[];
  /** The operator's bounds that were applied to this row, sorted by engine. */
  readonly bounds: readonly AppliedBound[];
}

/** An operator's bound on one weight. It holds a weight off its optimum only while `binding` is set. */
export interface AppliedBound {
  readonly engineId: string;
  readonly min: number;
  readonly max: number;
  readonly binding: 'min' | 'max' | null;
}

export interface EngineFlow {
  readonly engineId: string;
  readonly rps: number;
}

export interface EngineWeight {
  readonly engineId: string;
  readonly weight: number;
}

export interface ShedFraction {
  readonly priority: number;
  readonly fraction: number;
}

export interface BackupShares {
  readonly ownerId: string;
  readonly shares: readonly EngineWeight[];
}

export interface EngineLoad {
  readonly engineId: string;
  readonly effectiveCapacity: number;
  readonly rho: number;
  readonly congestionPriceSeconds: number;
  readonly scarcityPriceSeconds: number;
}
