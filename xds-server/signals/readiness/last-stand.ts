import type { Fleet } from '../../fleet/fleet.js';

/** Readiness of every replica: `[engine index][endpoint index]`, in the order of the fleet. */
export type Readiness = readonly (readonly boolean[])[];

/** What is remembered of a replica. */
export interface ReplicaPast {
  /** When it was last ready; undefined when it never was. */
  readonly lastReadyMs: number | undefined;
  /** Nobody listens at its address, or frontends see it fail: no observer's mistake. */
  readonly isSurelyLost: boolean;
}

export interface HeldReadiness {
  readonly readiness: Readiness;
  /** Pools that would have nobody without it, in the order of the fleet. */
  readonly heldPools: readonly string[];
  /** Ids of the engines that are ready only by that. */
  readonly heldEngines: ReadonlySet<string>;
}

/** Replicas that were lost within this time of each other were probably lost by one cause: the observer's. */
const COLLAPSE_MS = 10_000;

/**
 * Never empties a pool. When every replica of a pool seems lost, either the observer is wrong, and requests are served;
 * or they are lost, and fail as they would without replicas. So those stay ready that were lost shortly before the last
 * one and not surely; or, when all are surely lost, the last one.
 */
export function holdLast(
  fleet: Fleet,
  observed: Readiness,
  past: (engine: number, replica: number) => ReplicaPast,
): HeldReadiness {
  const index = new Map(fleet.engines.map((engine, at) => [engine.id, at]));
  const readiness = observed.map((replicas) => [...replicas]);
  const heldPools: string[] = [];
  const heldEngines = new Set<string>();
  for (const { id, engineIds } of fleet.pools) {
    const engines = engineIds.map((engineId) => index.get(engineId)!);
    if (engines.some((at) => observed[at]!.includes(true))) continue;
    heldPools.push(id);
    for (const [engine, replica] of lastOnes(engines, observed, past)) {
      readiness[engine]![replica] = true;
      heldEngines.add(fleet.engines[engine]!.id);
    }
  }
  return { readiness, heldPools, heldEngines };
}

function lastOnes(
  engines: readonly number[],
  observed: Readiness,
  past: (engine: number, replica: number) => ReplicaPast,
): readonly (readonly [number, number])[] {
  const replicas = engines.flatMap((engine) =>
    observed[engine]!.map((_, replica) => ({ at: [engine, replica] as const, ...past(engine, replica) })),
  );
  const last = Math.max(...replicas.map(({ lastReadyMs }) => lastReadyMs ?? Number.NEGATIVE_INFINITY));
  const recent = replicas.filter(
    ({ lastReadyMs = Number.NEGATIVE_INFINITY }) => lastReadyMs >= last - COLLAPSE_MS,
  );
  const doubtful = recent.filter(({ isSurelyLost }) => !isSurelyLost);
  const kept =
    doubtful.length > 0
      ? doubtful
      : replicas.filter(({ lastReadyMs = Number.NEGATIVE_INFINITY }) => lastReadyMs >= last);
  return kept.map(({ at }) => at);
}
