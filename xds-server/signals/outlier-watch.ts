import type { Pool } from '../fleet/fleet.js';
import { type LatencySample, LatencySamples, lowerMedian, typical } from './latency-samples.js';
import { Penalty } from './penalty.js';
import { UsualExtra } from './usual-extra.js';

/** An engine as it is judged. */
export interface JudgedEngine {
  readonly id: string;
  readonly profileId: string;
  /** Replicas that count, penalties left out. */
  readonly capacity: number;
}

/** What is known about the latency of one engine. */
export interface OutlierView {
  readonly engineId: string;
  /**
   * `usual`: as expected. `penalised`. `observed`: would be, but penalties are not in force. `limited`: would be, but
   * too much of a pool is already.
   */
  readonly state: 'usual' | 'penalised' | 'observed' | 'limited';
  /** 1..10, of the penalty. */
  readonly severity: number;
  readonly sinceMs: number | null;
  readonly evidence: {
    readonly answers: number;
    /** Typical seconds to the first byte, and by the profile with what is usual on top. */
    readonly observedSeconds: number;
    readonly expectedSeconds: number;
    /** Typical observed ÷ expected. */
    readonly excess: number;
    /** The same divided by that of engines of its kind or pool, if they are slow too. */
    readonly relativeExcess: number;
  } | null;
  /** In words; null without a penalty. */
  readonly endsWhen: string | null;
}

/** How much slower than their profile all engines of a kind are together. */
export interface ProfileDrift {
  readonly profileId: string;
  readonly factor: number;
  readonly sinceMs: number;
}

const EVALUATE_MS = 500;
/** Slower than this, an engine is no example of what is usual. */
const SUSPECT_EXCESS = 1.5;
/** Less than this is not worth a penalty, however many times it is. */
const LEAST_EXCESS_SECONDS = 0.02;
/** At most this share of a pool's capacity is penalised at once. */
const MOST_PENALISED_SHARE = 0.5;
const DRIFT_FACTOR = 1.5;

type Evidence = NonNullable<OutlierView['evidence']>;

interface Watched {
  readonly samples: LatencySamples;
  readonly penalty: Penalty;
  evidence: Evidence | null;
  isLimited: boolean;
}

/**
 * Finds engines that answer slower than their own profile says at their load, without failing. An engine is compared
 * with its profile and what is usual for its kind, and only to the extent that the others are not slow as well: what
 * all have in common is drift of the profile or the requests, not a fault of one.
 */
export class OutlierWatch {
  readonly #usual = new UsualExtra();
  readonly #watched = new Map<string, Watched>();
  readonly #drifts = new Map<string, { factor: number; sinceMs: number }>();
  #evaluatedMs = Number.NEGATIVE_INFINITY;

  add(engineId: string, sample: LatencySample): void {
    this.#of(engineId).samples.add(sample);
  }

  penalty(engineId: string): Penalty {
    return this.#of(engineId).penalty;
  }

  /** Severity of the penalty in force; 1 is none. */
  severity(engineId: string): number {
    const watched = this.#watched.get(engineId);
    return watched === undefined || watched.isLimited ? 1 : watched.penalty.severity;
  }

  get views(): readonly OutlierView[] {
    return [...this.#watched].map(([engineId, watched]) => viewOf(engineId, watched));
  }

  get drifts(): readonly ProfileDrift[] {
    return [...this.#drifts].map(([profileId, drift]) => ({ profileId, ...drift }));
  }

  /** Judges all engines; `isFrozen`: engines whose penalty stays as it is, by the operator's will. */
  evaluate(
    engines: readonly JudgedEngine[],
    pools: readonly Pool[],
    isFrozen: (engineId: string) => boolean,
    nowMs: number,
  ): void {
    if (nowMs - this.#evaluatedMs < EVALUATE_MS) return;
    this.#evaluatedMs = nowMs;
    const ids = new Set(engines.map(({ id }) => id));
    for (const id of this.#watched.keys()) if (!ids.has(id)) this.#watched.delete(id);
    const recent = new Map<string, readonly LatencySample[]>();
    for (const { id, capacity } of engines) {
      const watched = this.#of(id);
      // A restarted engine is another one.
      if (capacity === 0 && !isFrozen(id)) {
        watched.samples.forget();
        watched.penalty.end();
      }
      const samples = watched.samples.recent(nowMs);
      if (samples !== undefined) recent.set(id, samples);
    }
    this.#learn(engines, recent, nowMs);
    this.#judge(engines, pools, recent);
    for (const { id } of engines) {
      const watched = this.#of(id);
      if (!isFrozen(id)) watched.penalty.advance(actionable(watched.evidence), nowMs);
    }
    this.#limit(engines, pools);
    this.#findDrift(engines, nowMs);
  }

  #of(engineId: string): Watched {
    let watched = this.#watched.get(engineId);
    if (watched === undefined) {
      watched = { samples: new LatencySamples(), penalty: new Penalty(), evidence: null, isLimited: false };
      this.#watched.set(engineId, watched);
    }
    return watched;
  }

  #learn(
    engines: readonly JudgedEngine[],
    recent: ReadonlyMap<string, readonly LatencySample[]>,
    nowMs: number,
  ): void {
    const shown = new Map<string, { profileId: string; poolId: string; extras: number[] }>();
    for (const { id, profileId } of engines) {
      const { evidence, penalty } = this.#of(id);
      const isSuspect = penalty.sinceMs !== undefined || (evidence?.relativeExcess ?? 1) > SUSPECT_EXCESS;
      if (isSuspect) continue;
      for (const [poolId, samples] of byPool(recent.get(id) ?? [])) {
        const key = JSON.stringify([profileId, poolId]);
        const group = shown.get(key) ?? { profileId, poolId, extras: [] };
        shown.set(key, group);
        group.extras.push(typical(samples, extraOf));
      }
    }
    for (const { profileId, poolId, extras } of shown.values()) {
      this.#usual.learn(profileId, poolId, lowerMedian(extras), nowMs);
    }
  }

  #judge(
    engines: readonly JudgedEngine[],
    pools: readonly Pool[],
    recent: ReadonlyMap<string, readonly LatencySample[]>,
  ): void {
    const judged = new Map<string, Evidence>();
    for (const { id, profileId } of engines) {
      const evidence = this.#compare(profileId, recent.get(id) ?? []);
      if (evidence !== undefined) judged.set(id, evidence);
    }
    const shared = sharedExcesses(engines, pools, judged);
    for (const { id } of engines) {
      const evidence = judged.get(id);
      this.#of(id).evidence =
        evidence === undefined
          ? null
          : { ...evidence, relativeExcess: evidence.excess / Math.max(1, shared.get(id) ?? 1) };
    }
  }

  /** Undefined while there is too little evidence, or nothing to compare it with. */
  #compare(profileId: string, samples: readonly LatencySample[]): Evidence | undefined {
    const known = samples.filter(({ poolId }) => this.#usual.seconds(profileId, poolId) !== undefined);
    if (known.length === 0) return undefined;
    const expected = (sample: LatencySample) =>
      sample.profileSeconds + this.#usual.seconds(profileId, sample.poolId)!;
    const excess = typical(known, (sample) => sample.observedSeconds / Math.max(expected(sample), 1e-6));
    return {
      answers: known.reduce((sum, { count }) => sum + count, 0),
      observedSeconds: typical(known, ({ observedSeconds }) => observedSeconds),
      expectedSeconds: typical(known, expected),
      excess,
      relativeExcess: excess,
    };
  }

  /** Lets penalties stand, those in force first, as long as no pool loses too much by them. */
  #limit(engines: readonly JudgedEngine[], pools: readonly Pool[]): void {
    const capacities = new Map(engines.map(({ id, capacity }) => [id, capacity]));
    const room = new Map(
      pools.map(({ id, engineIds }) => {
        const total = engineIds.reduce((sum, engineId) => sum + (capacities.get(engineId) ?? 0), 0);
        return [id, MOST_PENALISED_SHARE * total];
      }),
    );
    const wanted = engines
      .map((engine) => ({ engine, watched: this.#of(engine.id) }))
      .filter(({ watched }) => watched.penalty.sinceMs !== undefined);
    for (const [id, watched] of this.#watched) {
      if (!wanted.some(({ engine }) => engine.id === id)) watched.isLimited = false;
    }
    const inForce = ({ watched }: (typeof wanted)[number]) => (watched.isLimited ? 1 : 0);
    wanted.sort((a, b) => inForce(a) - inForce(b) || b.watched.penalty.severity - a.watched.penalty.severity);
    for (const { engine, watched } of wanted) {
      const mine = pools.filter(({ engineIds }) => engineIds.includes(engine.id));
      watched.isLimited = mine.some(({ id }) => room.get(id)! < engine.capacity);
      if (watched.isLimited) continue;
      for (const { id } of mine) room.set(id, room.get(id)! - engine.capacity);
    }
  }

  #findDrift(engines: readonly JudgedEngine[], nowMs: number): void {
    const profileIds = new Set(engines.map(({ profileId }) => profileId));
    for (const profileId of profileIds) {
      const excesses = engines
        .filter((engine) => engine.profileId === profileId)
        .map(({ id }) => this.#of(id))
        .filter(({ penalty }) => penalty.sinceMs === undefined)
        .flatMap(({ evidence }) => (evidence === null ? [] : [evidence.excess]));
      const factor = excesses.length === 0 ? 1 : lowerMedian(excesses);
      if (factor < DRIFT_FACTOR) this.#drifts.delete(profileId);
      else this.#drifts.set(profileId, { factor, sinceMs: this.#drifts.get(profileId)?.sinceMs ?? nowMs });
    }
    for (const id of this.#drifts.keys()) if (!profileIds.has(id)) this.#drifts.delete(id);
  }
}

/** How slow those are that an engine is compared with: the most of its kind's and its pools' middle ones. */
function sharedExcesses(
  engines: readonly JudgedEngine[],
  pools: readonly Pool[],
  judged: ReadonlyMap<string, Evidence>,
): ReadonlyMap<string, number> {
  const kinds = new Map<string, string[]>();
  for (const { id, profileId } of engines) {
    const kin = kinds.get(profileId) ?? [];
    kinds.set(profileId, kin);
    kin.push(id);
  }
  const shared = new Map<string, number>();
  for (const group of [...kinds.values(), ...pools.map(({ engineIds }) => engineIds)]) {
    const known = group.filter((id) => judged.has(id));
    if (known.length < 2) continue;
    const middle = lowerMedian(known.map((id) => judged.get(id)!.excess));
    for (const id of known) shared.set(id, Math.max(shared.get(id) ?? 1, middle));
  }
  return shared;
}

function byPool(samples: readonly LatencySample[]): ReadonlyMap<string, readonly LatencySample[]> {
  const pools = new Map<string, LatencySample[]>();
  for (const sample of samples) {
    const pool = pools.get(sample.poolId) ?? [];
    pools.set(sample.poolId, pool);
    pool.push(sample);
  }
  return pools;
}

function extraOf({ observedSeconds, profileSeconds, mostExtraSeconds }: LatencySample): number {
  return Math.min(mostExtraSeconds, Math.max(0, observedSeconds - profileSeconds));
}

/** How slow an engine is to be taken for; a few milliseconds are never worth anything. */
function actionable(evidence: Evidence | null): number | undefined {
  if (evidence === null) return undefined;
  const isSmall = evidence.observedSeconds - evidence.expectedSeconds < LEAST_EXCESS_SECONDS;
  return isSmall ? 1 : evidence.relativeExcess;
}

function viewOf(engineId: string, { penalty, evidence, isLimited }: Watched): OutlierView {
  const isPenalised = penalty.sinceMs !== undefined;
  return {
    engineId,
    state: !isPenalised ? 'usual' : isLimited ? 'limited' : 'penalised',
    severity: penalty.severity,
    sinceMs: penalty.sinceMs ?? null,
    evidence,
    endsWhen: isPenalised
      ? 'it falls step by step while answers begin sooner than its severity says, and while too few arrive to tell'
      : null,
  };
}
