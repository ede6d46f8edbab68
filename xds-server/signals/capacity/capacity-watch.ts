import { isDeepStrictEqual } from 'node:util';
import { lowerMedian } from '../../collections.js';
import type { Pool } from '../../fleet/fleet.js';
import { type Profile, type TokenMix, workSeconds } from '../../profiles/profile.js';
import { FRESH_MS } from '../pages/replica-reading.js';
import { capacityLook } from './capacity-look.js';
import type { EngineTraffic } from './engine-traffic.js';
import { type CapacityView, MeasuredCapacity } from './measured-capacity.js';
import type { RequestsHeld } from './requests-held.js';
import { slownessLimit } from './throughput.js';

const EVALUATE_MS = 1_000;
/**
 * Conversations that were moved have their whole prompts computed where they come to: for this long after a move a full
 * engine gets fewer requests done than it can.
 */
const REST_MS = 60_000;

/** An engine as it is measured. */
export interface MeasuredEngine {
  readonly id: string;
  readonly profile: Profile;
  readonly mix: TokenMix;
  readonly held: RequestsHeld;
  readonly traffic: EngineTraffic;
  readonly readyReplicas: number;
  /** Whether all of them are there for Wardrop alone, neither drained nor warming up. */
  readonly isWhole: boolean;
  /** Whether it is slower than its like at its load. */
  readonly isOutlier: boolean;
  /** Whether nothing is to follow from what it shows now: the operator says so, or not all that it has to do is told. */
  readonly isFrozen: boolean;
}

/** Engines of a profile that get done less or more than it says. */
export interface CapacityDrift {
  readonly profileId: string;
  readonly kind: 'work';
  /** How many times as much work a request is as by the profile. */
  readonly factor: number;
  readonly sinceMs: number;
}

interface Watched {
  readonly capacity: MeasuredCapacity;
  /** What its capacity is measured against. */
  basis: { readonly profile: Profile; readonly mix: TokenMix } | undefined;
  replicas: number;
  steadySinceMs: number;
  /** When the capacity of an engine that shares a pool was last corrected. */
  correctedMs: number;
  hasEvidence: boolean;
  /** When its pages were last looked at, and when a replica last had no request waiting. */
  queue: { readonly atMs: number; readonly emptyMs: number } | undefined;
}

/** Finds out how much engines can do where their profiles are wrong about it. */
export class CapacityWatch {
  readonly #watched = new Map<string, Watched>();
  #evaluatedMs = Number.NEGATIVE_INFINITY;

  /** Takes the fewest requests that wait at any replica of an engine, by their own account. */
  acceptQueue(engineId: string, leastWaiting: number, nowMs: number): void {
    const watched = this.#of(engineId);
    const isKnown = watched.queue !== undefined && nowMs - watched.queue.atMs <= FRESH_MS;
    const emptyMs = isKnown && leastWaiting > 0 ? watched.queue!.emptyMs : nowMs;
    watched.queue = { atMs: nowMs, emptyMs };
  }

  /** Forgets all others. */
  keep(engineIds: ReadonlySet<string>): void {
    for (const id of this.#watched.keys()) if (!engineIds.has(id)) this.#watched.delete(id);
  }

  capacity(engineId: string): MeasuredCapacity {
    return this.#of(engineId).capacity;
  }

  get views(): readonly CapacityView[] {
    return [...this.#watched].map(([engineId, { capacity }]) => capacity.view(engineId));
  }

  /**
   * Looks at engines, once a second. `unrestMs`: when conversations were last moved for reasons
   * other than a correction.
   */
  evaluate(
    engines: readonly MeasuredEngine[],
    pools: readonly Pool[],
    unrestMs: number,
    nowMs: number,
  ): void {
    if (nowMs - this.#evaluatedMs < EVALUATE_MS) return;
    this.#evaluatedMs = nowMs;
    const before = new Map(engines.map(({ id }) => [id, this.#of(id).capacity.share]));
    for (const engine of engines) this.#look(engine, unrestMs, nowMs);
    for (const { engineIds } of pools) {
      const isMoved = engineIds.some(
        (id) => before.has(id) && this.#of(id).capacity.share !== before.get(id),
      );
      if (isMoved) for (const id of engineIds) this.#of(id).correctedMs = nowMs;
    }
  }

  /** Profiles that the middle one of their engines with anything to tell is corrected for. */
  drifts(engines: readonly Pick<MeasuredEngine, 'id' | 'profile'>[]): readonly CapacityDrift[] {
    const byProfile = new Map<string, MeasuredCapacity[]>();
    for (const { id, profile } of engines) {
      const { capacity, hasEvidence } = this.#of(id);
      if (hasEvidence) byProfile.set(profile.id, [...(byProfile.get(profile.id) ?? []), capacity]);
    }
    return [...byProfile].flatMap(([profileId, capacities]): CapacityDrift[] => {
      const share = middleShare(capacities.map((capacity) => capacity.share));
      const sinces = capacities.flatMap(({ sinceMs }) => (sinceMs === undefined ? [] : [sinceMs]));
      return share === 1
        ? []
        : [{ profileId, kind: 'work', factor: 1 / share, sinceMs: Math.min(...sinces) }];
    });
  }

  #look(engine: MeasuredEngine, unrestMs: number, nowMs: number): void {
    const { id, profile, mix, readyReplicas, isWhole, isFrozen } = engine;
    const watched = this.#of(id);
    if (watched.basis !== undefined && !isDeepStrictEqual(watched.basis, { profile, mix })) {
      const { basis, capacity } = watched;
      if (isDeepStrictEqual(basis.profile, profile))
        capacity.explain(workSeconds(profile, mix) / workSeconds(profile, basis.mix));
      // Of another profile nothing is known yet.
      else capacity.end();
      watched.steadySinceMs = nowMs;
    }
    watched.basis = { profile, mix };
    if (!isWhole || readyReplicas !== watched.replicas) watched.steadySinceMs = nowMs;
    watched.replicas = readyReplicas;
    const source = {
      ...engine,
      replicas: readyReplicas,
      isReduced: watched.capacity.share < 1,
      steadySeconds: (nowMs - watched.steadySinceMs) / 1_000,
    };
    const look = capacityLook(source, (seconds) => hasQueue(watched, seconds, nowMs), nowMs);
    if (look !== undefined) watched.hasEvidence = true;
    const isUsual = nowMs - Math.max(unrestMs, watched.correctedMs) >= REST_MS;
    const limit = slownessLimit(engine.traffic, readyReplicas, profile, mix, nowMs);
    watched.capacity.accept(isFrozen ? undefined : look, isUsual, nowMs, limit);
  }

  #of(engineId: string): Watched {
    let watched = this.#watched.get(engineId);
    if (watched === undefined) {
      watched = {
        capacity: new MeasuredCapacity(),
        basis: undefined,
        replicas: 0,
        steadySinceMs: 0,
        correctedMs: Number.NEGATIVE_INFINITY,
        hasEvidence: false,
        queue: undefined,
      };
      this.#watched.set(engineId, watched);
    }
    return watched;
  }

  save() {
    const watched = [...this.#watched].map(([engineId, { capacity, ...known }]) => {
      return [engineId, { ...known, capacity: capacity.save() }] as const;
    });
    return { watched, evaluatedMs: this.#evaluatedMs };
  }

  restore({ watched, evaluatedMs }: SavedCapacityWatch): void {
    this.#watched.clear();
    for (const [engineId, { capacity, ...known }] of watched) {
      Object.assign(this.#of(engineId), known);
      this.#of(engineId).capacity.restore(capacity);
    }
    this.#evaluatedMs = evaluatedMs;
  }
}

type SavedCapacityWatch = ReturnType<CapacityWatch['save']>;

/** The middle one; of an even number the one of both in the middle that is nearer to 1, and 1 where they lie on two sides of it. */
function middleShare(shares: readonly number[]): number {
  const less = lowerMedian(shares);
  const more = -lowerMedian(shares.map((share) => -share));
  return more < 1 ? more : Math.max(1, less);
}

function hasQueue({ queue }: Watched, seconds: number, nowMs: number): boolean | undefined {
  if (queue === undefined || nowMs - queue.atMs > FRESH_MS) return undefined;
  return nowMs - queue.emptyMs > seconds * 1_000;
}

/** What a penalty takes off a capacity that was measured already, so that one slowness is not counted twice: the lower of both holds. */
export function penaltyBeyond(share: number, penalty: number): number {
  return share < 1 ? Math.max(0, 1 - (1 - penalty) / share) : penalty;
}
