import type { Fleet } from '../fleet/fleet.js';

/** Readiness of every replica: `[engine index][endpoint index]`, in the order of the fleet. */
export type Readiness = readonly (readonly boolean[])[];

export interface HeldReadiness {
  readonly readiness: Readiness;
  /** Pools that would have nobody without it, in the order of the fleet. */
  readonly heldPools: readonly string[];
}

/**
 * Never empties a pool: when every replica of a pool seems lost, its engines keep the readiness they had before. Then
 * either the observer is wrong, and requests are served; or they are lost, and fail as they would without replicas.
 */
export function holdLast(fleet: Fleet, observed: Readiness, before: Readiness | undefined): HeldReadiness {
  const index = new Map(fleet.engines.map((engine, at) => [engine.id, at]));
  const enginesOf = (engineIds: readonly string[]) => engineIds.map((id) => index.get(id)!);
  const isEmpty = (engines: readonly number[]) => !engines.some((at) => observed[at]!.includes(true));
  const held = fleet.pools.filter((pool) => isEmpty(enginesOf(pool.engineIds)));
  const kept = new Set(held.flatMap((pool) => enginesOf(pool.engineIds)));
  return {
    readiness: observed.map((replicas, at) => (kept.has(at) ? (before?.[at] ?? replicas) : replicas)),
    heldPools: held.map((pool) => pool.id),
  };
}
