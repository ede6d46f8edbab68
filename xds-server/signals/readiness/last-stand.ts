import type { Fleet } from '../../fleet/fleet.js';

/** Readiness of every replica: `[engine index][endpoint index]`, in the order of the fleet. */
export type Readiness = readonly (readonly boolean[])[];

/**
 * Why a replica would be out of service. `drained`: by the will of operators alone. `unready`: its health page says
 * something else than that it is ready. `silent`: its health page says nothing. `failing`: frontends see it fail, or it is
 * drained and down, too. `refused`: nobody listens at its address.
 */
export type Loss = 'drained' | 'unready' | 'silent' | 'failing' | 'refused';

/** Who is likelier to answer, if it gets requests, has more. One that is silent for long may as well not be there. */
const LIKELIHOODS: Readonly<Record<Loss, number>> = {
  drained: 3,
  unready: 2,
  failing: 1,
  silent: 0,
  refused: 0,
};

/** What only probes tell may be their mistake. */
function isDoubtful({ loss }: ReplicaPast): boolean {
  return loss === 'unready' || loss === 'silent';
}

/** What is remembered of a replica. */
export interface ReplicaPast {
  /** When it was last ready; undefined when it never was. */
  readonly lastReadyMs: number | undefined;
  readonly loss: Loss;
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
 * one and not surely; or, when there are none, the last one of those that are likeliest to answer. When the observer sees
 * again, it finds one of them first, which could not serve for all: the others have as long to be found, too.
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
  const last = lastReady(replicas);
  const doubtful = replicas.filter(
    (replica) => isDoubtful(replica) && replica.lastReadyMs >= last - COLLAPSE_MS,
  );
  if (doubtful.length > 0) return doubtful;
  const most = Math.max(...replicas.map(({ loss }) => LIKELIHOODS[loss]));
  const likeliest = replicas.filter(({ loss }) => LIKELIHOODS[loss] === most);
  return likeliest.filter(({ lastReadyMs }) => lastReadyMs >= lastReady(likeliest));
}

function lastReady(replicas: readonly Candidate[]): number {
  return Math.max(...replicas.map(({ lastReadyMs }) => lastReadyMs));
}

/** Of a pool that was wholly lost until a moment ago, those that were held and are not back. */
function yetToReturn(replicas: readonly Candidate[]): readonly Candidate[] {
  const back = replicas.filter(({ isReady }) => isReady);
  const returnMs = Math.min(...back.map(({ upSinceMs = NEVER_MS }) => upSinceMs));
  // What was in service without having been ready since the return was held.
  return replicas.filter(
    (replica) =>
      !replica.isReady && isDoubtful(replica) && replica.wasInService && replica.lastReadyMs < returnMs,
  );
}

function isJustUp({ upSinceMs }: ReplicaPast, nowMs: number): boolean {
  return upSinceMs !== undefined && nowMs - upSinceMs < RETURN_MS;
}
