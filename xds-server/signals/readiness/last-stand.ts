import type { Fleet } from '../../fleet/fleet.js';

/** Readiness of every replica: `[engine index][endpoint index]`, in the order of the fleet. */
export type Readiness = readonly (readonly boolean[])[];

/** What is remembered of a replica. */
export interface ReplicaPast {
  /** When it was last ready; undefined when it never was. */
  readonly lastReadyMs: number | undefined;
  /** Nobody listens at its address, or frontends see it fail: no observer's mistake. */
  readonly isSurelyLost: boolean;
  /** It was in service at the last look, by itself or held. */
  readonly wasInService: boolean;
  /** Since when probes find it up; undefined when they do not. */
  readonly upSinceMs: number | undefined;
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
/** So long the others of a pool stay held after the first is back: two good probes, and one that hangs before. */
const RETURN_MS = 3_000;

/** A replica of a pool: engine and endpoint by index. */
interface Candidate extends ReplicaPast {
  readonly at: readonly [engine: number, replica: number];
  readonly isReady: boolean;
  readonly lastReadyMs: number;
}

const NEVER_MS = Number.NEGATIVE_INFINITY;

/**
 * Never empties a pool. When every replica of a pool seems lost, either the observer is wrong, and requests are served;
 * or they are lost, and fail as they would without replicas. So those stay ready that were lost shortly before the last
 * one and not surely; or, when all are surely lost, the last one. When the observer sees again, it finds one of them
 * first, which could not serve for all: the others have as long to be found, too.
 */
export function holdLast(
  fleet: Fleet,
  observed: Readiness,
  past: (engine: number, replica: number) => ReplicaPast,
  nowMs: number,
): HeldReadiness {
  const index = new Map(fleet.engines.map((engine, at) => [engine.id, at]));
  const readiness = observed.map((replicas) => [...replicas]);
  const heldPools: string[] = [];
  const heldEngines = new Set<string>();
  const isSteady = (engine: number) =>
    observed[engine]!.some((isReady, replica) => isReady && !isJustUp(past(engine, replica), nowMs));
  for (const { id, engineIds } of fleet.pools) {
    const engines = engineIds.map((engineId) => index.get(engineId)!);
    if (engines.some(isSteady)) continue;
    const candidates = engines.flatMap((engine) =>
      observed[engine]!.map((isReady, replica): Candidate => {
        const { lastReadyMs = NEVER_MS, ...rest } = past(engine, replica);
        return { ...rest, lastReadyMs, at: [engine, replica], isReady };
      }),
    );
    const isLost = !candidates.some(({ isReady }) => isReady);
    for (const { at } of isLost ? lastOnes(candidates) : yetToReturn(candidates)) {
      const [engine, replica] = at;
      readiness[engine]![replica] = true;
      if (isLost) heldEngines.add(fleet.engines[engine]!.id);
    }
    if (isLost) heldPools.push(id);
  }
  return { readiness, heldPools, heldEngines };
}

function lastOnes(replicas: readonly Candidate[]): readonly Candidate[] {
  const last = Math.max(...replicas.map(({ lastReadyMs }) => lastReadyMs));
  const doubtful = replicas.filter(
    ({ lastReadyMs, isSurelyLost }) => lastReadyMs >= last - COLLAPSE_MS && !isSurelyLost,
  );
  return doubtful.length > 0 ? doubtful : replicas.filter(({ lastReadyMs }) => lastReadyMs >= last);
}

/** Of a pool that was wholly lost until a moment ago, those that were held and are not back. */
function yetToReturn(replicas: readonly Candidate[]): readonly Candidate[] {
  const back = replicas.filter(({ isReady }) => isReady);
  const returnMs = Math.min(...back.map(({ upSinceMs = NEVER_MS }) => upSinceMs));
  // What was in service without having been ready since the return was held.
  return replicas.filter(
    ({ isReady, isSurelyLost, wasInService, lastReadyMs }) =>
      !isReady && !isSurelyLost && wasInService && lastReadyMs < returnMs,
  );
}

function isJustUp({ upSinceMs }: ReplicaPast, nowMs: number): boolean {
  return upSinceMs !== undefined && nowMs - upSinceMs < RETURN_MS;
}
