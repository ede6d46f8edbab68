import { lowerMedian } from '../../collections.js';
import type { Pool } from '../../fleet/fleet.js';
import type { SlownessLimit, Stay } from '../capacity/throughput.js';
import { refill } from '../saved.js';
import {
  LATENCY_KINDS,
  type LatencyKind,
  type LatencySample,
  LatencySamples,
  LONGEST_QUIET_WINDOW_MS,
  typical,
} from './latency-samples.js';
import { Likes } from './likes.js';
import {
  type Evidence,
  entryMsOf,
  type Known,
  type Lateness,
  latenessOf,
  severityBy,
  worstOf,
} from './outlier-evidence.js';
import { Penalty } from './penalty.js';

/** An engine as it is judged. */
export interface JudgedEngine {
  readonly id: string;
  readonly profileId: string;
  /** Replicas that count, penalties left out. */
  readonly capacity: number;
  /** Whether all that it has to do is told; else its penalty stays as it is. */
  readonly isHeard: boolean;
  /** What it holds and gets done; undefined when that tells nothing. */
  readonly stay?: Stay | undefined;
  /** How slow it can be at most, by what it gets done; undefined when that tells nothing. */
  readonly slownessLimit?: SlownessLimit | undefined;
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
  readonly evidence: Evidence | null;
  /** In words; null without a penalty. */
  readonly endsWhen: string | null;
}

/** How much slower than their profile all engines of a kind are together. */
export interface ProfileDrift {
  readonly profileId: string;
  /** Which times are, and how many times longer than by the profile. */
  readonly kind: LatencyKind;
  readonly factor: number;
  readonly sinceMs: number;
}

const EVALUATE_MS = 500;
/** At most this share of a pool's capacity is penalised at once. */
const MOST_PENALISED_SHARE = 0.5;
const DRIFT_FACTOR = 1.5;

interface Watched {
  readonly samples: Readonly<Record<LatencyKind, LatencySamples>>;
  readonly penalty: Penalty;
  evidence: Evidence | null;
  isLimited: boolean;
}

/**
 * Finds engines that answer slower than their own profile says at their load, without failing. An engine is compared
 * with the most that its load explains, and only to the extent that the others are not slow as well: what all have in
 * common is drift of the profile or the requests, not a fault of one.
 */
export class OutlierWatch {
  readonly #watched = new Map<string, Watched>();
  readonly #drifts = new Map<string, Omit<ProfileDrift, 'profileId'>>();
  #evaluatedMs = Number.NEGATIVE_INFINITY;

  add(engineId: string, sample: LatencySample): void {
    this.#of(engineId).samples[sample.kind].add(sample);
  }

  penalty(engineId: string): Penalty {
    return this.#of(engineId).penalty;
  }

  /** Severity of the penalty in force; 1 is none. */
  severity(engineId: string): number {
    const watched = this.#watched.get(engineId);
    return watched === undefined || watched.isLimited ? 1 : watched.penalty.severity;
  }

  /** The same for its capacity. */
  capacitySeverity(engineId: string): number {
    const watched = this.#watched.get(engineId);
    return watched === undefined || watched.isLimited ? 1 : watched.penalty.capacitySeverity;
  }

  /** How slow it is beside its like, beyond what its load explains; 1 where nothing is known. */
  relativeExcess(engineId: string): number {
    return this.#watched.get(engineId)?.evidence?.relativeExcess ?? 1;
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
    for (const { id, capacity } of engines) {
      const watched = this.#of(id);
      // A restarted engine is another one.
      if (capacity > 0 || isFrozen(id)) continue;
      for (const kind of LATENCY_KINDS) watched.samples[kind].forget();
      watched.penalty.end();
    }
    const inForce = new Set(engines.map(({ id }) => id).filter((id) => this.#isInForce(id)));
    this.#judge(engines, pools, nowMs);
    for (const { id, isHeard, slownessLimit } of engines) {
      const { penalty, evidence } = this.#of(id);
      if (isFrozen(id) || !isHeard) continue;
      const entryMs = evidence === null ? undefined : entryMsOf(evidence);
      const severity = evidence === null ? undefined : severityBy(evidence);
      penalty.advance(severity, nowMs, evidence?.slowness ?? 1, slownessLimit, entryMs);
    }
    this.#limit(engines, pools, inForce);
    this.#findDrift(engines, nowMs);
  }

  #of(engineId: string): Watched {
    let watched = this.#watched.get(engineId);
    if (watched === undefined) {
      const samples = {
        firstToken: new LatencySamples('firstToken'),
        whole: new LatencySamples('whole'),
        pace: new LatencySamples('pace'),
      };
      watched = { samples, penalty: new Penalty(), evidence: null, isLimited: false };
      this.#watched.set(engineId, watched);
    }
    return watched;
  }

  #judge(engines: readonly JudgedEngine[], pools: readonly Pool[], nowMs: number): void {
    const known = new Map(engines.map((engine) => [engine.id, this.#knownOf(engine, nowMs)]));
    const likes = new Likes(engines, pools, known);
    for (const { id, stay } of engines) {
      const watched = this.#of(id);
      const answers = this.#enough(watched, known.get(id)!, nowMs);
      watched.evidence = worstOf(id, { answers, stay }, likes);
    }
  }

  #knownOf({ id, stay }: JudgedEngine, nowMs: number): Known {
    const { samples } = this.#of(id);
    const answers = LATENCY_KINDS.flatMap((kind) => {
      const all = samples[kind].all(nowMs);
      return all.length === 0 ? [] : [latenessOf(kind, all)];
    });
    return { answers, stay };
  }

  /**
   * What there are enough answers of lately. A penalty leaves an engine fewer than it began by, so that it does not end because they
   * are rare.
   */
  #enough({ samples, penalty }: Watched, { answers }: Known, nowMs: number): readonly Lateness[] {
    const lately = answers.filter(({ kind }) => samples[kind].recent(nowMs) !== undefined);
    if (lately.length > 0 || penalty.sinceMs === undefined) return lately;
    return answers.filter(({ kind }) => samples[kind].recent(nowMs, LONGEST_QUIET_WINDOW_MS) !== undefined);
  }

  #isInForce(engineId: string): boolean {
    const { penalty, isLimited } = this.#of(engineId);
    return penalty.sinceMs !== undefined && !isLimited;
  }

  /** Lets penalties stand, those in force first, as long as no pool loses too much by them. */
  #limit(engines: readonly JudgedEngine[], pools: readonly Pool[], inForce: ReadonlySet<string>): void {
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
    const isNew = ({ engine }: (typeof wanted)[number]) => (inForce.has(engine.id) ? 0 : 1);
    wanted.sort((a, b) => isNew(a) - isNew(b) || b.watched.penalty.severity - a.watched.penalty.severity);
    for (const { engine, watched } of wanted) {
      const mine = pools.filter(({ engineIds }) => engineIds.includes(engine.id));
      watched.isLimited = mine.some(({ id }) => room.get(id)! < engine.capacity);
      if (watched.isLimited) continue;
      for (const { id } of mine) room.set(id, room.get(id)! - engine.capacity);
    }
  }

  #findDrift(engines: readonly JudgedEngine[], nowMs: number): void {
    const profileIds = new Set(engines.map(({ profileId }) => profileId));
    for (const id of this.#drifts.keys()) if (!profileIds.has(id)) this.#drifts.delete(id);
    for (const profileId of profileIds) {
      const heard = engines.filter((engine) => engine.profileId === profileId && engine.isHeard);
      // Nothing new is known of it.
      if (heard.length === 0) continue;
      const healthy = heard
        .map(({ id }) => this.#of(id))
        .filter(({ penalty }) => penalty.sinceMs === undefined);
      const found = LATENCY_KINDS.flatMap((kind) => {
        const factors = healthy.flatMap(({ samples }) => {
          const recent = samples[kind].recent(nowMs);
          return recent === undefined ? [] : [typical(recent, overExpected)];
        });
        return factors.length === 0 ? [] : [{ kind, factor: lowerMedian(factors) }];
      }).sort((a, b) => b.factor - a.factor)[0];
      if (found === undefined || found.factor < DRIFT_FACTOR) this.#drifts.delete(profileId);
      else {
        this.#drifts.set(profileId, { ...found, sinceMs: this.#drifts.get(profileId)?.sinceMs ?? nowMs });
      }
    }
  }

  save() {
    const watched = [...this.#watched].map(([engineId, { samples, penalty, evidence, isLimited }]) => {
      const { firstToken, whole, pace } = samples;
      const saved = { firstToken: firstToken.save(), whole: whole.save(), pace: pace.save() };
      return [engineId, { samples: saved, penalty: penalty.save(), evidence, isLimited }] as const;
    });
    return { watched, drifts: [...this.#drifts], evaluatedMs: this.#evaluatedMs };
  }

  restore({ watched, drifts, evaluatedMs }: SavedOutlierWatch): void {
    this.#watched.clear();
    for (const [engineId, saved] of watched) {
      const own = this.#of(engineId);
      for (const kind of LATENCY_KINDS) own.samples[kind].restore(saved.samples[kind], kind);
      own.penalty.restore(saved.penalty);
      own.evidence = saved.evidence;
      own.isLimited = saved.isLimited;
    }
    refill(this.#drifts, drifts);
    this.#evaluatedMs = evaluatedMs;
  }
}

type SavedOutlierWatch = ReturnType<OutlierWatch['save']>;

function overExpected({ observedSeconds, expectedSeconds }: LatencySample): number {
  return observedSeconds / Math.max(expectedSeconds, 1e-6);
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
      ? 'it falls step by step while answers take less time than those of an engine so many times slower would at what it gets done, and while too few arrive to tell'
      : null,
  };
}
