import { id64 } from '../../wire/hash.js';
import type { Address } from '../fleet/fleet.js';
import { type EngineState, effectiveCapacity } from '../fleet/fleet-state.js';
import type { Operations, Orders } from '../fleet/operations.js';
import { knowsLatency } from '../profiles/curves.js';
import {
  type CapacityDrift,
  CapacityWatch,
  type MeasuredEngine,
  penaltyBeyond,
} from './capacity/capacity-watch.js';
import type { EngineWork, ToldUsage } from './capacity/engine-work.js';
import type { CapacityView } from './capacity/measured-capacity.js';
import { SlowStart } from './capacity/slow-start.js';
import { type SlownessLimit, type Stay, slownessLimit, stayOf } from './capacity/throughput.js';
import type { KnownConfig } from './known-config.js';
import { OperatorOrders, type OperatorRequest } from './operator-orders.js';
import { latencySamples } from './penalty/latency-evidence.js';
import { type OutlierView, OutlierWatch, type ProfileDrift } from './penalty/outlier-watch.js';
import { capacityPenalty } from './penalty/penalty.js';
import type { Fitness } from './readiness/last-resort.js';
import type { HeldReadiness } from './readiness/last-stand.js';

/** Utilisation may have been higher over so short a time. */
const PEAK_SECONDS = 3;
/** What an engine gets done is what it can do when it is so many times slower than its like with many requests. */
const OUTLIER_EXCESS = 1.5;
/** An answer may have waited for all requests that its engine held within this time. */
const HELD_SECONDS = 10;

/** What is heard when engines are looked at. */
interface Hearing {
  /** Whether it is known how many requests engines have. */
  readonly knowsHeld: boolean;
  /** Whether all that may send requests to an engine tell of them: else the load that it is judged at lacks theirs. */
  readonly isHeard: (engineId: string) => boolean;
  /** When many conversations last had to move. */
  readonly unrestMs: number;
}

/** What engines can do: by their replicas, by what they are measured to, by penalties, and by the will of operators. */
export class EngineStates {
  readonly #work: EngineWork;
  readonly #outliers = new OutlierWatch();
  readonly #measured = new CapacityWatch();
  readonly #orders = new OperatorOrders();
  readonly #slowStart = new SlowStart();
  /** By engine id; penalties left out. */
  #capacities: ReadonlyMap<string, number> = new Map();

  constructor(work: EngineWork) {
    this.#work = work;
  }

  /** Forgets all others. */
  keep(engineIds: ReadonlySet<string>): void {
    this.#measured.keep(engineIds);
  }

  get orders(): Orders {
    return this.#orders.state;
  }

  /** Takes what operators ordered in place of what was known. */
  takeOrders(orders: Orders): void {
    this.#orders.resume(orders);
  }

  /** Ends what is over, or about what is gone. */
  expireOrders({ fleet }: KnownConfig, nowMs: number): void {
    this.#orders.expire(fleet, nowMs);
  }

  isReplicaDrained(address: Address): boolean {
    return this.#orders.isReplicaDrained(address);
  }

  /** @throws {WardropError} WARDROP_QUERY_INVALID */
  act(request: OperatorRequest, { fleet }: KnownConfig, nowMs: number): void {
    const isPenalised = (engineId: string) =>
      this.#outliers.penalty(engineId).sinceMs !== undefined ||
      this.#measured.capacity(engineId).sinceMs !== undefined;
    this.#orders.act(request, fleet, isPenalised, nowMs);
  }

  /** Penalties and corrections in force, to go on with after a restart. */
  operations(known: KnownConfig): Pick<Operations, 'penalties' | 'capacities'> {
    const penalties = this.#outliers.views.flatMap(({ engineId, severity, sinceMs }) =>
      sinceMs === null ? [] : [{ engineId, severity, sinceMs }],
    );
    const capacities = this.#measured.views.flatMap(({ engineId, share, sinceMs }) =>
      sinceMs === null ? [] : [{ engineId, share, sinceMs, basis: basisOf(known, engineId) }],
    );
    return { penalties, ...(capacities.length === 0 ? {} : { capacities }) };
  }

  /** Goes on with what was in force before a restart. */
  resume(operations: Operations, known: KnownConfig, nowMs: number): void {
    this.#orders.resume(operations);
    for (const { engineId, severity, sinceMs } of operations.penalties) {
      this.#outliers.penalty(engineId).resume(severity, sinceMs, nowMs);
    }
    for (const { engineId, share, sinceMs, basis } of operations.capacities ?? []) {
      if (!known.engineIndex.has(engineId)) continue;
      // Of another profile nothing is known yet.
      if (basis !== undefined && basis !== basisOf(known, engineId)) continue;
      this.#measured.capacity(engineId).resume(share, sinceMs);
    }
  }

  /** Takes the fewest requests that wait at any replica of an engine, by their own account. */
  acceptQueue(engineId: string, leastWaiting: number, nowMs: number): void {
    this.#measured.acceptQueue(engineId, leastWaiting, nowMs);
  }

  /** Takes how long answers took. `isCold`: conversations of others may have come to the engine. */
  addLatencies(
    { engineId, usage, shape, profile, networkSeconds }: ToldUsage,
    known: KnownConfig,
    isCold: boolean,
    nowMs: number,
  ): void {
    const capacity = this.#capacities.get(engineId) ?? 0;
    const answers = usage.firstTokenCount + usage.wholeCount + usage.paceTokens;
    if (answers === 0 || capacity === 0 || !knowsLatency(profile)) return;
    const traffic = this.#work.traffic(engineId)!;
    const rates = traffic.rates(nowMs);
    const load = {
      rho: rates.workSeconds / capacity,
      peakRho: traffic.rates(nowMs, PEAK_SECONDS).workSeconds / capacity,
      requests: (this.#work.held(engineId)?.most(HELD_SECONDS, nowMs) ?? 0) / capacity,
      networkSeconds,
      doneRho: (rates.endedWorkSeconds / capacity) * this.shareInForce(engineId, known),
      largest:
        isCold || traffic.hasGrown(nowMs) ? { ...shape, uncachedPromptTokens: shape.promptTokens } : shape,
    };
    for (const sample of latencySamples(usage, load, profile, shape, nowMs)) {
      this.#outliers.add(engineId, sample);
    }
  }

  /** By engine id, as they were looked at last; penalties left out. */
  get capacities(): ReadonlyMap<string, number> {
    return this.#capacities;
  }

  /** Engines as they look now, in the order of the fleet. */
  evaluate(
    readiness: Pick<HeldReadiness, 'readiness' | 'heldEngines'>,
    known: KnownConfig,
    hearing: Hearing,
    nowMs: number,
  ): readonly EngineState[] {
    const unmeasured = this.#unmeasured(readiness, known, nowMs);
    if (hearing.knowsHeld) {
      const measured = this.#measuredEngines(unmeasured, known, hearing);
      this.#measured.evaluate(measured, known.fleet.pools, hearing.unrestMs, nowMs);
    }
    return this.#penalised(this.#corrected(unmeasured, known), known, hearing, nowMs);
  }

  /** Of those with capacity, by engine id. */
  fitness(
    engines: readonly EngineState[],
    heldEngines: ReadonlySet<string>,
    nowMs: number,
  ): ReadonlyMap<string, Fitness> {
    const fitnessOf = (id: string): Fitness => {
      if (heldEngines.has(id)) return 'lost';
      return this.#orders.drainFactor(id, nowMs) === 0 ? 'drained' : 'fit';
    };
    return new Map(
      engines.flatMap((engine): [string, Fitness][] =>
        effectiveCapacity(engine) > 0 ? [[engine.id, fitnessOf(engine.id)]] : [],
      ),
    );
  }

  #unmeasured(
    { readiness, heldEngines }: Pick<HeldReadiness, 'readiness' | 'heldEngines'>,
    { fleet }: KnownConfig,
    nowMs: number,
  ): readonly EngineState[] {
    const { engines, pools } = fleet;
    const ramps = this.#slowStart.ramps(engines, pools, readiness, nowMs);
    const states = engines.map((engine, at) => ({
      id: engine.id,
      replicas: engine.endpoints.map((address, replica) => ({ address, ready: readiness[at]![replica]! })),
      health: this.#work.health(engine.id),
      ramp: ramps[at]!,
      drain: this.#orders.drainFactor(engine.id, nowMs),
      penalty: 0,
      latencyFactor: 1,
    }));
    // Drained engines serve when there is nobody else.
    const isServing = (state: EngineState) => effectiveCapacity(state) > 0 && !heldEngines.has(state.id);
    const serving = new Set(states.filter(isServing).map(({ id }) => id));
    const exempt = new Set(
      pools.flatMap(({ engineIds }) => (engineIds.some((id) => serving.has(id)) ? [] : engineIds)),
    );
    return states.map((state) => (exempt.has(state.id) ? { ...state, drain: 1 } : state));
  }

  /** Engines that requests were ever sent to, without what was measured of them before. */
  #measuredEngines(
    states: readonly EngineState[],
    known: KnownConfig,
    { isHeard }: Hearing,
  ): readonly MeasuredEngine[] {
    return states.flatMap(({ id, replicas, health, ramp, drain }, at): MeasuredEngine[] => {
      const traffic = this.#work.traffic(id);
      const held = this.#work.held(id);
      if (traffic === undefined || held === undefined) return [];
      return [
        {
          id,
          profile: known.profiles.get(known.fleet.engines[at]!.profile)!,
          mix: known.mixes.get(id)!,
          held,
          traffic,
          readyReplicas: replicas.filter(({ ready }) => ready).length,
          isWhole: health === 1 && ramp === 1 && drain === 1,
          isOutlier:
            this.#outliers.relativeExcess(id) >= OUTLIER_EXCESS * Math.min(1, this.shareInForce(id, known)),
          isFrozen: this.#orders.order(id) !== undefined || !isHeard(id),
        },
      ];
    });
  }

  #corrected(states: readonly EngineState[], known: KnownConfig): readonly EngineState[] {
    return states.map((state) => {
      if (this.#orders.order(state.id) === 'release') this.#measured.capacity(state.id).end();
      return { ...state, health: state.health * this.shareInForce(state.id, known) };
    });
  }

  /** Of the capacity by its profile that an engine is planned with. */
  shareInForce(engineId: string, known: KnownConfig): number {
    return this.#isInForce(engineId, known) ? this.#measured.capacity(engineId).share : 1;
  }

  /** Judges engines by what they can do without a penalty, so that a penalty does not end because it works. */
  #penalised(
    engines: readonly EngineState[],
    known: KnownConfig,
    { knowsHeld, isHeard }: Hearing,
    nowMs: number,
  ): readonly EngineState[] {
    this.#capacities = new Map(engines.map((engine) => [engine.id, effectiveCapacity(engine)]));
    const judged = known.fleet.engines.map(({ id, profile }) => ({
      id,
      profileId: profile,
      capacity: this.#capacities.get(id)!,
      isHeard: isHeard(id),
      stay: knowsHeld ? this.#stay(id, profile, known, nowMs) : undefined,
      slownessLimit: this.#slownessLimit(id, profile, known, nowMs),
    }));
    const isHeld = (engineId: string) => this.#orders.order(engineId) === 'hold';
    this.#outliers.evaluate(judged, known.fleet.pools, isHeld, nowMs);
    return engines.map((engine) => {
      if (this.#orders.order(engine.id) === 'release') this.#outliers.penalty(engine.id).end();
      if (!this.#isInForce(engine.id, known)) return { ...engine, penalty: 0, latencyFactor: 1 };
      const lost = capacityPenalty(this.#outliers.capacitySeverity(engine.id));
      const penalty = penaltyBeyond(this.shareInForce(engine.id, known), lost);
      return { ...engine, penalty, latencyFactor: this.#outliers.severity(engine.id) };
    });
  }

  #stay(engineId: string, profileId: string, known: KnownConfig, nowMs: number): Stay | undefined {
    const traffic = this.#work.traffic(engineId);
    const held = this.#work.held(engineId);
    if (traffic === undefined || held === undefined) return undefined;
    const capacity = this.#capacities.get(engineId)!;
    if (capacity === 0) held.forget();
    const mix = known.mixes.get(engineId)!;
    return stayOf(held, traffic, capacity, known.profiles.get(profileId)!, mix, nowMs);
  }

  #slownessLimit(
    engineId: string,
    profileId: string,
    known: KnownConfig,
    nowMs: number,
  ): SlownessLimit | undefined {
    const traffic = this.#work.traffic(engineId);
    if (traffic === undefined) return undefined;
    const capacity = this.#capacities.get(engineId)! / this.shareInForce(engineId, known);
    const { profiles, mixes } = known;
    return slownessLimit(traffic, capacity, profiles.get(profileId)!, mixes.get(engineId)!, nowMs);
  }

  #isInForce(engineId: string, { enforcesPenalties }: KnownConfig): boolean {
    const order = this.#orders.order(engineId);
    return order === 'hold' || (enforcesPenalties && order !== 'release');
  }

  outlierViews(known: KnownConfig): readonly OutlierView[] {
    return this.#outliers.views.map((view) =>
      view.state === 'penalised' && !this.#isInForce(view.engineId, known)
        ? { ...view, state: 'observed' }
        : view,
    );
  }

  capacityViews(known: KnownConfig): readonly CapacityView[] {
    return this.#measured.views.map((view) =>
      view.state === 'corrected' && !this.#isInForce(view.engineId, known)
        ? { ...view, state: 'observed' }
        : view,
    );
  }

  /** Profiles that all of their engines differ from. */
  drifts({ fleet, profiles }: KnownConfig): readonly (ProfileDrift | CapacityDrift)[] {
    const engines = fleet.engines.map(({ id, profile }) => ({ id, profile: profiles.get(profile)! }));
    return [...this.#outliers.drifts, ...this.#measured.drifts(engines)];
  }

  save() {
    return {
      outliers: this.#outliers.save(),
      measured: this.#measured.save(),
      orders: this.#orders.state,
      slowStart: this.#slowStart.save(),
      capacities: [...this.#capacities],
    };
  }

  restore(saved: SavedEngineStates): void {
    this.#outliers.restore(saved.outliers);
    this.#measured.restore(saved.measured);
    this.#orders.resume(saved.orders);
    this.#slowStart.restore(saved.slowStart);
    this.#capacities = new Map(saved.capacities);
  }
}

type SavedEngineStates = ReturnType<EngineStates['save']>;

/** Names what the capacity of an engine is measured against. */
function basisOf({ engineIndex, fleet, profiles, mixes }: KnownConfig, engineId: string): string {
  const index = engineIndex.get(engineId);
  const profile = index === undefined ? undefined : profiles.get(fleet.engines[index]!.profile);
  return id64(JSON.stringify([profile, mixes.get(engineId)])).toString(16);
}
