import { classKey, id64 } from '../../wire/hash.js';
import type { EngineUsage, UsageReport } from '../../wire/usage-report.js';

import type { Address, Engine, Fleet } from '../fleet/fleet.js';
import { type Demand, type EngineState, effectiveCapacity, type FleetState } from '../fleet/fleet-state.js';
import type { Operations, Orders } from '../fleet/operations.js';
import { type TokenMix, workSeconds } from '../profiles/profile.js';
import {
  type CapacityDrift,
  CapacityWatch,
  type MeasuredEngine,
  penaltyBeyond,
} from './capacity/capacity-watch.js';
import { EngineTraffic } from './capacity/engine-traffic.js';
import { knowsLatency } from './capacity/load-by-profile.js';
import type { CapacityView } from './capacity/measured-capacity.js';
import { type OutsideView, OutsideWork } from './capacity/outside-work.js';
import { RequestsHeld } from './capacity/requests-held.js';
import { SlowStart } from './capacity/slow-start.js';
import { type SlownessLimit, type Stay, slownessLimit, stayOf } from './capacity/throughput.js';
import { type ClassAverages, ClassAveragesWatch } from './demand/class-averages.js';
import { DemandEstimator, type RateEstimate } from './demand/demand-estimator.js';
import {
  noSizeCounts,
  POOL_SIZE_COUNTS,
  RequestSizes,
  type RequestSizeView,
  type TokenSizes,
} from './demand/request-sizes.js';
import { SettledSince } from './demand/settled-since.js';
import { TurnGaps, type TurnGapView } from './demand/turn-gaps.js';
import {
  type HeldRate,
  type KnownConfig,
  knownOf,
  rowKey,
  type SignalsConfig,
  seeds,
  withSizes,
} from './known-config.js';
import { Network } from './network/network.js';
import type { RoundTripView } from './network/round-trip.js';
import { OperatorOrders, type OperatorRequest } from './operator-orders.js';
import { StandingPage } from './pages/standing-page.js';
import { latencySamples } from './penalty/latency-evidence.js';
import { type OutlierView, OutlierWatch, type ProfileDrift } from './penalty/outlier-watch.js';
import { capacityPenalty } from './penalty/penalty.js';
import { EngineEvidence, type Veto } from './readiness/engine-evidence.js';
import { holdLast, type Readiness } from './readiness/last-stand.js';
import {
  afterProbe,
  type ProbeResult,
  type ReplicaHealth,
  unknownHealth,
} from './readiness/replica-health.js';
import { refill, restoreEntries, saveEntries } from './saved.js';
import { type UsageDelta, UsageLedger } from './usage/usage-ledger.js';
import { UsageTotals } from './usage/usage-totals.js';

export interface SignalsView {
  readonly state: FleetState;
  /** As it is configured: without the round trips that were measured. */
  readonly configuredFleet: Fleet;
  /** By frontend and engine, in the order of the fleet. */
  readonly roundTrips: readonly (readonly RoundTripView[])[];
  /** Pools whose replicas all seem lost, and whose readiness is therefore held. */
  readonly heldPools: readonly string[];
  /** Frontends of which nobody reports, and for how long. */
  readonly silentFrontends: readonly { readonly frontendId: string; readonly silentSeconds: number }[];
  /** Nothing is heard of any engine or frontend: what is believed is all old, and nothing should follow from it. */
  readonly isBlind: boolean;
  readonly vetoes: ReadonlyMap<string, Veto>;
  /** Work from elsewhere, by engine id, where anything can be said about it. */
  readonly outside: ReadonlyMap<string, OutsideView>;
  /** Latencies compared with what is expected, and the penalties that follow. */
  readonly outliers: readonly OutlierView[];
  /** What engines can do against what their profiles say, and the corrections that follow. */
  readonly capacities: readonly CapacityView[];
  readonly drifts: readonly (ProfileDrift | CapacityDrift)[];
  readonly rates: readonly RateEstimate[];
  /** Mean requests that engines may get, by engine id. */
  readonly mixes: ReadonlyMap<string, TokenMix>;
}

/** How large the requests of a frontend to a pool are taken to be, and why. */
export interface SizesInForce {
  readonly source: 'measured' | 'configured';
  /** Null before enough answers were counted. */
  readonly measured: RequestSizeView | null;
  readonly configured: TokenSizes;
}

/** A frontend is worth an alarm when nobody of it has reported for this long: engines have requests that nobody tells of. */
const SILENT_ALARM_SECONDS = 10;
/** Utilisation may have been higher over so short a time. */
const PEAK_SECONDS = 3;
/** What an engine gets done is what it can do when it is so many times slower than its like with many requests. */
const OUTLIER_EXCESS = 1.5;
/** For so long after conversations had to move, more of their prompts is in no cache than usually. */
const COLD_MS = 60_000;
/** An answer may have waited for all requests that its engine held within this time. */
const HELD_SECONDS = 10;

/**
 * All that is known about a fleet at one time: configuration, usage reports and probes in, a `FleetState` out. Knows
 * no sockets and no clock.
 */
export class Signals {
  readonly totals = new UsageTotals();
  readonly #ledger = new UsageLedger();
  readonly #demand: DemandEstimator;
  readonly #health = new Map<string, ReplicaHealth>();
  readonly #evidence = new Map<string, EngineEvidence>();
  readonly #lastReadyMs = new Map<Address, number>();
  readonly #pages = new Map<Address, StandingPage>();
  readonly #traffic = new Map<string, EngineTraffic>();
  readonly #outside = new Map<string, OutsideWork>();
  readonly #held = new Map<string, RequestsHeld>();
  readonly #outliers = new OutlierWatch();
  readonly #measured = new CapacityWatch();
  readonly #orders = new OperatorOrders();
  readonly #slowStart = new SlowStart();
  readonly #network: Network;
  /** By frontend id. */
  readonly #turnGaps = new Map<string, TurnGaps>();
  readonly #sizes = new RequestSizes();
  readonly #averages = new ClassAveragesWatch();
  /** By engine id; penalties left out. */
  #capacities: ReadonlyMap<string, number> = new Map();
  #known: KnownConfig;
  #readiness: Readiness | undefined;
  #settledSince: SettledSince;
  /** When many conversations last had to move. */
  #unrestMs = Number.NEGATIVE_INFINITY;
  /** Another control server has Envoys of which nothing is heard here. */
  #isPartial = false;

  /** `held`: rates of the plan in force; they come before configured ones until enough is measured. */
  constructor(config: SignalsConfig, held: readonly HeldRate[], nowMs: number) {
    this.#known = knownOf(config);
    this.#demand = new DemandEstimator(seeds(config, held));
    this.#network = new Network(config.fleet);
    this.#settledSince = new SettledSince(config.fleet.pools, nowMs);
  }

  /** Takes a new configuration; what was measured of things that stay is kept. */
  reconfigure(config: SignalsConfig, nowMs: number): void {
    const before = this.#known.fleet;
    const readinessByEngine = new Map(before.engines.map((engine, at) => [engine.id, this.#readiness?.[at]]));
    this.#sizes.keep(config.expectedDemand);
    this.#averages.keep(config.expectedDemand);
    this.#known = withSizes(knownOf(config), this.#sizes);
    this.#demand.reseed(seeds(config, []));
    this.#network.reconfigure(config.fleet);
    this.#settledSince = new SettledSince(config.fleet.pools, nowMs);
    const endpoints = new Set(config.fleet.engines.flatMap((engine) => engine.endpoints));
    for (const known of [this.#health, this.#lastReadyMs, this.#pages]) {
      for (const address of known.keys()) if (!endpoints.has(address)) known.delete(address);
    }
    this.totals.keepLoads(endpoints);
    const frontendIds = new Set(config.fleet.frontends.map(({ id }) => id));
    for (const [id, gaps] of this.#turnGaps) {
      if (frontendIds.has(id)) gaps.keep(this.#known.poolIds);
      else this.#turnGaps.delete(id);
    }
    const engineIds = new Set(config.fleet.engines.map((engine) => engine.id));
    this.#measured.keep(engineIds);
    for (const known of [this.#evidence, this.#traffic, this.#outside, this.#held]) {
      for (const id of known.keys()) if (!engineIds.has(id)) known.delete(id);
    }
    this.#readiness = config.fleet.engines.map((engine) => {
      const ready = readinessByEngine.get(engine.id);
      const old = before.engines.find(({ id }) => id === engine.id)?.endpoints ?? [];
      return engine.endpoints.map((address) => ready?.[old.indexOf(address)] ?? true);
    });
  }

  /** This process did not run for some seconds, until now: reports that waited tell of a time before. */
  noteHoldUp(nowMs: number): void {
    this.#ledger.noteHoldUp(nowMs);
  }

  /**
   * Whether Envoys may send requests that nobody tells of here, as those of a control server that is not heard: then no engine
   * is judged by what it has to do.
   */
  notePartial(isPartial: boolean, _nowMs: number): void {
    this.#isPartial = isPartial;
  }

  /** Takes a usage report of a node of a known frontend. */
  acceptReport(frontendId: string, nodeId: string, report: UsageReport, nowMs: number): void {
    this.#ledger.drop(loadReporter(frontendId, nodeId));
    const name = filterOf(frontendId, nodeId);
    if (!this.#ledger.isNews(name, report)) return;
    this.#take(frontendId, nodeId, this.#ledger.accept(name, report, nowMs), answeredByFilter, nowMs);
  }

  /**
   * Takes what `LoadCounts` makes of the load reports of a node; false when the node's filter has ever reported, which
   * counts the same requests and more.
   */
  acceptLoadReport(frontendId: string, nodeId: string, report: UsageReport, nowMs: number): boolean {
    if (this.#ledger.knows(filterOf(frontendId, nodeId))) return false;
    this.#take(
      frontendId,
      nodeId,
      this.#ledger.accept(loadReporter(frontendId, nodeId), report, nowMs),
      answeredByEnvoy,
      nowMs,
    );
    return true;
  }

  #take(
    frontendId: string,
    nodeId: string,
    delta: UsageDelta | undefined,
    answeredOf: AnsweredOf,
    nowMs: number,
  ): void {
    if (delta === undefined) {
      this.#demand.add(frontendId, nodeId, new Map(), nowMs, nowMs);
      return;
    }
    const offered = new Map<string, number>();
    for (const usage of delta.pools) {
      const name = this.#known.classes.get(classKey(usage.pool, usage.priority));
      if (name === undefined) continue;
      const { poolId, id } = name;
      // A client that comes back asks for as much work as before: without these a storm of retries is not seen.
      offered.set(id, (offered.get(id) ?? 0) + usage.offered + usage.clientRetries);
      this.totals.addPool(frontendId, poolId, usage);
      this.#averages.add(frontendId, poolId, usage, nowMs);
    }
    this.#demand.add(frontendId, nodeId, offered, delta.fromMs, delta.toMs);
    this.#addSizes(frontendId, delta, nowMs);
    for (const usage of delta.engines) {
      this.#addEngineUsage(frontendId, usage, answeredOf(usage), delta.fromMs, nowMs);
    }
    this.#addEnded(delta, answeredOf);
    for (const usage of delta.latencies) {
      const engineId = this.#known.engineIds.get(usage.engine);
      if (engineId !== undefined) this.totals.addLatency(frontendId, engineId, usage);
    }
    for (const usage of delta.networks) {
      const engineId = this.#known.engineIds.get(usage.engine);
      if (engineId !== undefined) this.#network.add(frontendId, engineId, usage, nowMs);
    }
    this.#addTurns(frontendId, delta, nowMs);
    for (const usage of delta.loads) {
      const engineId = this.#known.engineIds.get(usage.engine);
      const address = this.#known.addresses.get(usage.replica);
      const isNew = usage.reports + usage.garbled > 0;
      if (isNew && engineId !== undefined && address !== undefined) {
        this.totals.addLoad(engineId, address, usage, nowMs);
      }
    }
  }

  /** Tells pages what they should know of. */
  #addEnded({ engines, replicas, fromMs }: UsageDelta, answeredOf: AnsweredOf): void {
    const unanswered = new Map<bigint, number>();
    for (const usage of engines) {
      unanswered.set(usage.engine, (unanswered.get(usage.engine) ?? 0) + usage.ended - answeredOf(usage));
    }
    for (const { engine, replica, ended } of replicas) {
      const address = this.#known.addresses.get(replica);
      const page = address === undefined ? undefined : this.#pages.get(address);
      page?.addEnded(ended, unanswered.get(engine) ?? 0, fromMs);
    }
  }

  #addSizes(frontendId: string, { pools, engines }: UsageDelta, nowMs: number): void {
    const counts = new Map<string, ReturnType<typeof noSizeCounts>>();
    const countsOf = (poolId: string) => {
      const known = counts.get(poolId) ?? noSizeCounts();
      counts.set(poolId, known);
      return known;
    };
    for (const usage of pools) {
      const name = this.#known.classes.get(classKey(usage.pool, usage.priority));
      if (name === undefined) continue;
      const sums = countsOf(name.poolId);
      for (const key of POOL_SIZE_COUNTS) sums[key] += usage[key];
    }
    for (const { pool, usageCount } of engines) {
      const poolId = this.#known.poolIds.get(pool);
      if (poolId !== undefined) countsOf(poolId).told += usageCount;
    }
    const isUsual = nowMs - this.#unrestMs >= COLD_MS;
    for (const [poolId, sums] of counts) {
      const configured = this.#known.configured.get(rowKey(frontendId, poolId))!;
      if (this.#sizes.add(frontendId, poolId, sums, configured, isUsual, nowMs)) this.#takeSizes(poolId);
    }
  }

  /** What was counted as work of engines until now was that of requests of other sizes. */
  #takeSizes(poolId: string): void {
    this.#known = withSizes(this.#known, this.#sizes);
    const { engineIds } = this.#known.fleet.pools.find(({ id }) => id === poolId)!;
    for (const id of engineIds) this.#traffic.delete(id);
  }

  #addTurns(frontendId: string, { nodeId, turns, turnLevel }: UsageDelta, nowMs: number): void {
    const gaps = this.#turnGaps.get(frontendId) ?? new TurnGaps();
    this.#turnGaps.set(frontendId, gaps);
    const { poolIds } = this.#known;
    gaps.add(
      nodeId,
      turns.filter(({ pool }) => poolIds.has(pool)),
      turnLevel,
      nowMs,
    );
  }

  /** How close a frontend is to being found to surge, from 0 to 1 and more. Only looks. */
  surgeStrength(frontendId: string, nowMs: number): number {
    return this.#demand.surgeStrength(frontendId, nowMs);
  }

  /** How turns follow each other; undefined before enough was counted. */
  turnGap(frontendId: string, poolId: string): TurnGapView | undefined {
    return this.#turnGaps.get(frontendId)?.view(id64(poolId));
  }

  requestSizes(frontendId: string, poolId: string): SizesInForce {
    const { promptTokens, uncachedPromptTokens, outputTokens } = this.#known.configured.get(
      rowKey(frontendId, poolId),
    )!;
    return {
      source: this.#sizes.inForce(frontendId, poolId) === undefined ? 'configured' : 'measured',
      measured: this.#sizes.view(frontendId, poolId) ?? null,
      configured: { promptTokens, uncachedPromptTokens, outputTokens },
    };
  }

  /** How the requests of a class are, to be looked at. */
  classAverages(frontendId: string, poolId: string, priority: number, nowMs: number): ClassAverages {
    return this.#averages.view(frontendId, poolId, priority, nowMs);
  }

  /** What is configured of a round trip that is measured; undefined where the configured one counts. */
  correctedNetworkSeconds(frontendId: string, engineId: string): number | undefined {
    return this.#network.corrected(frontendId, engineId);
  }

  /** Takes a probe result and tells what is thought of the replica now. */
  acceptProbe(engineId: string, address: Address, result: ProbeResult, nowMs: number): ReplicaHealth {
    const isLate = !result.ok && result.kind === 'timeout';
    const servesWell = this.#evidence.get(engineId)?.servesWell(nowMs, isLate) ?? false;
    const health = afterProbe(this.health(address, nowMs), result, servesWell, nowMs);
    this.#health.set(address, health);
    return health;
  }

  /**
   * Takes the tokens that the metrics page of a replica says were generated, undefined for nothing, and tells since when the
   * page stands still, if it does; what followed from it since then is taken back.
   */
  acceptPage(
    engineId: string,
    address: Address,
    generated: number | undefined,
    nowMs: number,
  ): number | undefined {
    const page = this.#pages.get(address) ?? new StandingPage();
    this.#pages.set(address, page);
    const sinceMs = page.read(generated, nowMs);
    if (sinceMs !== undefined) this.#outside.get(engineId)?.distrust(sinceMs);
    return sinceMs;
  }

  /**
   * Takes the number of requests that an engine says it has on these many replicas, wherever they come from, and the
   * fewest that wait at any one of them.
   */
  acceptLoad(engine: Engine, requests: number, replicas: number, nowMs: number, leastWaiting?: number): void {
    if (leastWaiting !== undefined) this.#measured.acceptQueue(engine.id, leastWaiting, nowMs);
    const inFlight = this.#ledger.inFlight(nowMs);
    // Requests of a silent frontend, and those of which the engine is not known yet, are planned for already.
    const isComplete = this.#known.choosesEngines && this.#isHeardOf(nowMs);
    if (inFlight === undefined || !isComplete) return;
    const outside = this.#outside.get(engine.id) ?? new OutsideWork();
    this.#outside.set(engine.id, outside);
    const workPerSecond = this.#traffic.get(engine.id)?.rates(nowMs).workSeconds ?? 0;
    const reading = {
      requests,
      ours: inFlight.get(id64(engine.id)) ?? 0,
      ourRho: replicas === 0 ? 0 : workPerSecond / (replicas * this.#shareInForce(engine.id)),
      replicas,
    };
    const { profiles, mixes } = this.#known;
    outside.accept(reading, profiles.get(engine.profile)!, mixes.get(engine.id)!, nowMs);
  }

  /** Requests under way by engine id, as Envoys report; undefined while some that had any are silent. */
  inFlight(nowMs: number): ReadonlyMap<string, number> | undefined {
    const counts = this.#ledger.inFlight(nowMs);
    if (counts === undefined) return undefined;
    return new Map([...this.#known.engineIds].map(([hash, id]) => [id, counts.get(hash) ?? 0]));
  }

  /** The same by replica. */
  replicasInFlight(nowMs: number): ReadonlyMap<Address, number> | undefined {
    const counts = this.#ledger.replicasInFlight(nowMs);
    if (counts === undefined) return undefined;
    const sums = new Map<Address, number>();
    for (const { replica, inFlight } of counts) {
      const address = this.#known.addresses.get(replica);
      if (address !== undefined) sums.set(address, (sums.get(address) ?? 0) + inFlight);
    }
    return sums;
  }

  /** What operators ordered. */
  get orders(): Orders {
    return this.#orders.state;
  }

  /** Takes what operators ordered here and elsewhere in place of what was known. */
  takeOrders(orders: Orders, nowMs: number): void {
    this.#orders.resume(orders);
    this.#orders.expire(this.#known.fleet, nowMs);
  }

  /** The same, the penalties in force and what was measured, to go on with after a restart. */
  get operations(): Operations {
    const penalties = this.#outliers.views.flatMap(({ engineId, severity, sinceMs }) =>
      sinceMs === null ? [] : [{ engineId, severity, sinceMs }],
    );
    const capacities = this.#measured.views.flatMap(({ engineId, share, sinceMs }) =>
      sinceMs === null ? [] : [{ engineId, share, sinceMs, basis: this.#basisOf(engineId) }],
    );
    const sizes = this.#sizes.measured;
    return {
      ...this.#orders.state,
      penalties,
      roundTrips: this.#network.measured,
      ...(capacities.length === 0 ? {} : { capacities }),
      ...(sizes.length === 0 ? {} : { sizes }),
    };
  }

  /** Goes on with what was in force before a restart. */
  resume(operations: Operations, nowMs: number): void {
    this.#orders.resume(operations);
    this.#network.resume(operations.roundTrips ?? []);
    this.#sizes.resume(operations.sizes ?? []);
    this.#sizes.keep([...this.#known.configured.values()]);
    this.#known = withSizes(this.#known, this.#sizes);
    for (const { engineId, severity, sinceMs } of operations.penalties) {
      this.#outliers.penalty(engineId).resume(severity, sinceMs, nowMs);
    }
    for (const { engineId, share, sinceMs, basis } of operations.capacities ?? []) {
      if (!this.#known.engineIndex.has(engineId)) continue;
      // Of another profile nothing is known yet.
      if (basis !== undefined && basis !== this.#basisOf(engineId)) continue;
      this.#measured.capacity(engineId).resume(share, sinceMs);
    }
  }

  /** Names what the capacity of an engine is measured against. */
  #basisOf(engineId: string): string {
    const { engineIndex, fleet, profiles, mixes } = this.#known;
    const index = engineIndex.get(engineId);
    const profile = index === undefined ? undefined : profiles.get(fleet.engines[index]!.profile);
    return id64(JSON.stringify([profile, mixes.get(engineId)])).toString(16);
  }

  /**
   * Does what an operator asks for.
   *
   * @throws {WardropError} WARDROP_QUERY_INVALID
   */
  act(request: OperatorRequest, nowMs: number): void {
    const isPenalised = (engineId: string) =>
      this.#outliers.penalty(engineId).sinceMs !== undefined ||
      this.#measured.capacity(engineId).sinceMs !== undefined;
    this.#orders.act(request, this.#known.fleet, isPenalised, nowMs);
  }

  health(address: Address, nowMs: number): ReplicaHealth {
    return this.#health.get(address) ?? unknownHealth(nowMs);
  }

  /** The fleet as it looks now. */
  evaluate(nowMs: number): SignalsView {
    const moves = this.#demand.evaluate(nowMs);
    this.#settledSince.demandMoved(moves, nowMs);
    if ([...moves.values()].includes('large')) this.#unrestMs = nowMs;
    this.#orders.expire(this.#known.fleet, nowMs);
    const vetoes = this.#vetoes(nowMs);
    const isReady = (engine: Engine, address: Address) =>
      !vetoes.has(engine.id) &&
      !this.#orders.isReplicaDrained(address) &&
      this.health(address, nowMs).state !== 'down';
    const observed = this.#known.fleet.engines.map((engine) =>
      engine.endpoints.map((address) => isReady(engine, address)),
    );
    this.#rememberReady(observed, nowMs);
    const { readiness, heldPools } = holdLast(this.#known.fleet, observed, (engine, replica) => {
      const { id, endpoints } = this.#known.fleet.engines[engine]!;
      const address = endpoints[replica]!;
      const isSurelyLost =
        this.health(address, nowMs).failure === 'refused' ||
        vetoes.has(id) ||
        this.#orders.isReplicaDrained(address);
      return { lastReadyMs: this.#lastReadyMs.get(address), isSurelyLost };
    });
    const changed = this.#readiness === undefined ? [] : changedAt(readiness, this.#readiness);
    if (changed.length > 0) {
      this.#settledSince.enginesChanged(
        new Set(changed.map((at) => this.#known.fleet.engines[at]!.id)),
        nowMs,
      );
      this.#unrestMs = nowMs;
    }
    this.#readiness = readiness;
    const rates = this.#demand.estimates(nowMs);
    const silentFrontends = this.#silentFrontends(nowMs);
    const inFlight = this.#ledger.inFlight(nowMs);
    if (inFlight !== undefined) this.#noteHeld(inFlight, nowMs);
    const unmeasured = this.#engineStates(readiness, nowMs);
    if (inFlight !== undefined && this.#isHeardOf(nowMs)) {
      const measured = this.#measuredEngines(unmeasured);
      this.#measured.evaluate(measured, this.#known.fleet.pools, this.#unrestMs, nowMs);
    }
    const engines = this.#penalised(this.#corrected(unmeasured), inFlight !== undefined, nowMs);
    return {
      state: {
        fleet: this.#network.evaluate(nowMs),
        atMs: nowMs,
        engines,
        demands: rates.map((rate) => this.#demandOf(rate, silentFrontends)),
        ...this.#settledSince.at(nowMs),
      },
      configuredFleet: this.#known.fleet,
      roundTrips: this.#network.views,
      heldPools,
      silentFrontends,
      isBlind:
        heldPools.length === this.#known.fleet.pools.length &&
        silentFrontends.length === this.#known.fleet.frontends.length,
      vetoes,
      outside: new Map(
        [...this.#outside].flatMap(([id, { view }]) => (view === undefined ? [] : [[id, view] as const])),
      ),
      outliers: this.#outlierViews(),
      capacities: this.#capacityViews(),
      drifts: [
        ...this.#outliers.drifts,
        ...this.#measured.drifts(
          this.#known.fleet.engines.map(({ id, profile }) => ({
            id,
            profile: this.#known.profiles.get(profile)!,
          })),
        ),
      ],
      rates,
      mixes: this.#known.mixes,
    };
  }

  #engineStates(readiness: Readiness, nowMs: number): readonly EngineState[] {
    const { engines, pools } = this.#known.fleet;
    const ramps = this.#slowStart.ramps(engines, pools, readiness, nowMs);
    const states = engines.map((engine, at) => ({
      id: engine.id,
      replicas: engine.endpoints.map((address, replica) => ({ address, ready: readiness[at]![replica]! })),
      health: this.#outside.get(engine.id)?.health ?? 1,
      ramp: ramps[at]!,
      drain: this.#orders.drainFactor(engine.id, nowMs),
      penalty: 0,
      latencyFactor: 1,
    }));
    // Drained engines serve when there is nobody else.
    const serving = new Set(states.filter((state) => effectiveCapacity(state) > 0).map(({ id }) => id));
    const exempt = new Set(
      pools.flatMap(({ engineIds }) => (engineIds.some((id) => serving.has(id)) ? [] : engineIds)),
    );
    return states.map((state) => (exempt.has(state.id) ? { ...state, drain: 1 } : state));
  }

  #noteHeld(inFlight: ReadonlyMap<bigint, number>, nowMs: number): void {
    for (const { id } of this.#known.fleet.engines) {
      if (!this.#traffic.has(id)) continue;
      const held = this.#held.get(id) ?? new RequestsHeld();
      this.#held.set(id, held);
      held.add(inFlight.get(id64(id)) ?? 0, nowMs);
    }
  }

  /** Engines that requests were ever sent to, without what was measured of them before. */
  #measuredEngines(states: readonly EngineState[]): readonly MeasuredEngine[] {
    return states.flatMap(({ id, replicas, health, ramp, drain }, at): MeasuredEngine[] => {
      const traffic = this.#traffic.get(id);
      const held = this.#held.get(id);
      if (traffic === undefined || held === undefined) return [];
      return [
        {
          id,
          profile: this.#known.profiles.get(this.#known.fleet.engines[at]!.profile)!,
          mix: this.#known.mixes.get(id)!,
          held,
          traffic,
          readyReplicas: replicas.filter(({ ready }) => ready).length,
          isWhole: health === 1 && ramp === 1 && drain === 1,
          isOutlier:
            this.#outliers.relativeExcess(id) >= OUTLIER_EXCESS * Math.min(1, this.#shareInForce(id)),
          isFrozen: this.#orders.order(id) !== undefined,
        },
      ];
    });
  }

  #corrected(states: readonly EngineState[]): readonly EngineState[] {
    return states.map((state) => {
      if (this.#orders.order(state.id) === 'release') this.#measured.capacity(state.id).end();
      return { ...state, health: state.health * this.#shareInForce(state.id) };
    });
  }

  #shareInForce(engineId: string): number {
    return this.#isInForce(engineId) ? this.#measured.capacity(engineId).share : 1;
  }

  /** Judges engines by what they can do without a penalty, so that a penalty does not end because it works. */
  #penalised(engines: readonly EngineState[], isHeardOf: boolean, nowMs: number): readonly EngineState[] {
    this.#capacities = new Map(engines.map((engine) => [engine.id, effectiveCapacity(engine)]));
    const judged = this.#known.fleet.engines.map(({ id, profile }) => ({
      id,
      profileId: profile,
      capacity: this.#capacities.get(id)!,
      stay: isHeardOf ? this.#stay(id, profile, nowMs) : undefined,
      slownessLimit: this.#slownessLimit(id, profile, nowMs),
    }));
    const isHeld = (engineId: string) => this.#orders.order(engineId) === 'hold';
    // The load that an engine is judged at lacks what a silent frontend sends to it.
    if (this.#isHeardOf(nowMs)) this.#outliers.evaluate(judged, this.#known.fleet.pools, isHeld, nowMs);
    return engines.map((engine) => {
      if (this.#orders.order(engine.id) === 'release') this.#outliers.penalty(engine.id).end();
      const severity = this.#isInForce(engine.id) ? this.#outliers.severity(engine.id) : 1;
      const penalty = penaltyBeyond(this.#shareInForce(engine.id), capacityPenalty(severity));
      return { ...engine, penalty, latencyFactor: severity };
    });
  }

  #stay(engineId: string, profileId: string, nowMs: number): Stay | undefined {
    const traffic = this.#traffic.get(engineId);
    const held = this.#held.get(engineId);
    if (traffic === undefined || held === undefined) return undefined;
    const capacity = this.#capacities.get(engineId)!;
    if (capacity === 0) held.forget();
    const mix = this.#known.mixes.get(engineId)!;
    return stayOf(held, traffic, capacity, this.#known.profiles.get(profileId)!, mix, nowMs);
  }

  #slownessLimit(engineId: string, profileId: string, nowMs: number): SlownessLimit | undefined {
    const traffic = this.#traffic.get(engineId);
    if (traffic === undefined) return undefined;
    const capacity = this.#capacities.get(engineId)! / this.#shareInForce(engineId);
    const { profiles, mixes } = this.#known;
    return slownessLimit(traffic, capacity, profiles.get(profileId)!, mixes.get(engineId)!, nowMs);
  }

  #isInForce(engineId: string): boolean {
    const order = this.#orders.order(engineId);
    return order === 'hold' || (this.#known.enforcesPenalties && order !== 'release');
  }

  #outlierViews(): readonly OutlierView[] {
    return this.#outliers.views.map((view) =>
      view.state === 'penalised' && !this.#isInForce(view.engineId) ? { ...view, state: 'observed' } : view,
    );
  }

  #capacityViews(): readonly CapacityView[] {
    return this.#measured.views.map((view) =>
      view.state === 'corrected' && !this.#isInForce(view.engineId) ? { ...view, state: 'observed' } : view,
    );
  }

  #rememberReady(observed: Readiness, nowMs: number): void {
    for (const [at, { endpoints }] of this.#known.fleet.engines.entries()) {
      for (const [replica, address] of endpoints.entries()) {
        if (observed[at]![replica]) this.#lastReadyMs.set(address, nowMs);
      }
    }
  }

  #vetoes(nowMs: number): ReadonlyMap<string, Veto> {
    const vetoes = new Map<string, Veto>();
    for (const { id, endpoints } of this.#known.fleet.engines) {
      const evidence = this.#evidence.get(id);
      const isDown = endpoints.every((address) => this.health(address, nowMs).state === 'down');
      // Failures of an engine that is known to be down say nothing about the time after it comes back.
      if (isDown) evidence?.forget();
      const veto = evidence?.veto(nowMs);
      if (veto !== undefined) vetoes.set(id, veto);
    }
    return vetoes;
  }

  #addEngineUsage(
    frontendId: string,
    usage: EngineUsage,
    answered: number,
    fromMs: number,
    nowMs: number,
  ): void {
    const engineId = this.#known.engineIds.get(usage.engine);
    const poolId = this.#known.poolIds.get(usage.pool);
    if (engineId === undefined || poolId === undefined) return;
    this.totals.addEngine(frontendId, poolId, engineId, usage);
    const evidence = this.#evidence.get(engineId) ?? new EngineEvidence();
    this.#evidence.set(engineId, evidence);
    evidence.add(usage, nowMs);
    this.#addTraffic(frontendId, poolId, engineId, usage, answered, fromMs, nowMs);
    // What is made good after a silence cannot be compared with the load of now.
    const isRecent = nowMs - fromMs <= SILENT_ALARM_SECONDS * 1000;
    if (isRecent) this.#addLatencies(frontendId, poolId, engineId, usage, nowMs);
  }

  #addTraffic(
    frontendId: string,
    poolId: string,
    engineId: string,
    usage: EngineUsage,
    answered: number,
    fromMs: number,
    nowMs: number,
  ): void {
    const traffic = this.#traffic.get(engineId) ?? new EngineTraffic();
    this.#traffic.set(engineId, traffic);
    const engine = this.#known.fleet.engines[this.#known.engineIndex.get(engineId)!]!;
    const shape = this.#known.expected.get(rowKey(frontendId, poolId))!;
    const profile = this.#known.profiles.get(engine.profile)!;
    const work = workSeconds(profile, shape);
    const requests = usage.planned + usage.diverted;
    const networkSeconds = this.#networkSeconds(frontendId, engineId);
    const uncached = uncachedPerAnswer(usage);
    // Prompts that a move has taken from their caches are more work, for a while, and no fault of the engine.
    const asAnswered = {
      ...shape,
      uncachedPromptTokens: Math.max(shape.uncachedPromptTokens, uncached ?? 0),
    };
    traffic.add(
      {
        requests,
        workSeconds: requests * work,
        networkSeconds: requests * networkSeconds,
        ended: usage.ended,
        endedWorkSeconds: usage.ended * work,
        answered,
        answeredWorkSeconds: answered * work,
        coldWorkSeconds: answered * workSeconds(profile, asAnswered),
        toldAnswers: uncached === undefined ? 0 : answered,
        ...staysOf(usage, networkSeconds),
      },
      nowMs,
      fromMs,
    );
  }

  #networkSeconds(frontendId: string, engineId: string): number {
    const seconds = this.#network.seconds(frontendId, engineId);
    return Number.isFinite(seconds) ? seconds : 0;
  }

  #addLatencies(
    frontendId: string,
    poolId: string,
    engineId: string,
    usage: EngineUsage,
    nowMs: number,
  ): void {
    const capacity = this.#capacities.get(engineId) ?? 0;
    const profile = this.#known.profiles.get(
      this.#known.fleet.engines[this.#known.engineIndex.get(engineId)!]!.profile,
    )!;
    const answers = usage.firstTokenCount + usage.wholeCount + usage.paceTokens;
    if (answers === 0 || capacity === 0 || !knowsLatency(profile)) return;
    const shape = this.#known.expected.get(rowKey(frontendId, poolId))!;
    const rates = this.#traffic.get(engineId)!.rates(nowMs);
    const load = {
      rho: rates.workSeconds / capacity,
      peakRho: this.#traffic.get(engineId)!.rates(nowMs, PEAK_SECONDS).workSeconds / capacity,
      requests: (this.#held.get(engineId)?.most(HELD_SECONDS, nowMs) ?? 0) / capacity,
      networkSeconds: this.#networkSeconds(frontendId, engineId),
      doneRho: (rates.endedWorkSeconds / capacity) * this.#shareInForce(engineId),
    };
    for (const sample of latencySamples(usage, load, profile, shape, nowMs)) {
      this.#outliers.add(engineId, sample);
    }
  }

  #demandOf(
    { frontendId, poolId, priority, requestsPerSecond, source }: RateEstimate,
    silent: SignalsView['silentFrontends'],
  ): Demand {
    const { promptTokens, uncachedPromptTokens, outputTokens, followUpShare, turnGapSeconds } =
      this.#known.expected.get(rowKey(frontendId, poolId))!;
    return {
      frontendId,
      poolId,
      priority,
      requestsPerSecond,
      promptTokens,
      uncachedPromptTokens,
      outputTokens,
      followUpShare,
      turnGapSeconds: this.#turnGapSeconds(frontendId, poolId, turnGapSeconds),
      source,
      ...(silent.some((each) => each.frontendId === frontendId) ? { isUnheard: true } : {}),
    };
  }

  /** All that is known, but for `totals`, from which nothing follows here. */
  save() {
    return {
      ledger: this.#ledger.save(),
      demand: this.#demand.save(),
      health: [...this.#health],
      evidence: saveEntries(this.#evidence),
      lastReadyMs: [...this.#lastReadyMs],
      pages: saveEntries(this.#pages),
      traffic: saveEntries(this.#traffic),
      outside: saveEntries(this.#outside),
      held: saveEntries(this.#held),
      outliers: this.#outliers.save(),
      measured: this.#measured.save(),
      orders: this.#orders.state,
      slowStart: this.#slowStart.save(),
      network: this.#network.save(),
      turnGaps: saveEntries(this.#turnGaps),
      sizes: this.#sizes.save(),
      averages: this.#averages.save(),
      capacities: [...this.#capacities],
      readiness: this.#readiness,
      settledSince: this.#settledSince.save(),
      unrestMs: this.#unrestMs,
      isPartial: this.#isPartial,
    };
  }

  /** Goes on with what others with the same configuration knew. */
  restore(saved: SavedSignals): void {
    this.#ledger.restore(saved.ledger);
    this.#demand.restore(saved.demand);
    refill(this.#health, saved.health);
    restoreEntries(this.#evidence, saved.evidence, () => new EngineEvidence());
    refill(this.#lastReadyMs, saved.lastReadyMs);
    restoreEntries(this.#pages, saved.pages, () => new StandingPage());
    restoreEntries(this.#traffic, saved.traffic, () => new EngineTraffic());
    restoreEntries(this.#outside, saved.outside, () => new OutsideWork());
    restoreEntries(this.#held, saved.held, () => new RequestsHeld());
    this.#outliers.restore(saved.outliers);
    this.#measured.restore(saved.measured);
    this.#orders.resume(saved.orders);
    this.#slowStart.restore(saved.slowStart);
    this.#network.restore(saved.network);
    restoreEntries(this.#turnGaps, saved.turnGaps, () => new TurnGaps());
    this.#sizes.restore(saved.sizes);
    this.#averages.restore(saved.averages);
    this.#capacities = new Map(saved.capacities);
    this.#readiness = saved.readiness;
    this.#settledSince.restore(saved.settledSince);
    this.#unrestMs = saved.unrestMs;
    this.#isPartial = saved.isPartial;
    this.#known = withSizes(this.#known, this.#sizes);
  }

  #turnGapSeconds(frontendId: string, poolId: string, configuredSeconds: number): number {
    return this.#turnGaps.get(frontendId)?.inForce(id64(poolId), configuredSeconds) ?? configuredSeconds;
  }

  /** Whether all that send requests tell of them. */
  #isHeardOf(nowMs: number): boolean {
    return !this.#isPartial && this.#silentFrontends(nowMs).length === 0;
  }

  #silentFrontends(nowMs: number): SignalsView['silentFrontends'] {
    return this.#known.fleet.frontends.flatMap(({ id }) => {
      const silentSeconds = (this.#demand.silentMs(id, nowMs) ?? 0) / 1000;
      return silentSeconds > SILENT_ALARM_SECONDS ? [{ frontendId: id, silentSeconds }] : [];
    });
  }
}

export type SavedSignals = ReturnType<Signals['save']>;

/** Grows with every change of what is saved, or of what it means: nobody goes on with what others saved in another form. */
export const SAVED_FORMAT = 2;

/** Requests that an engine has answered, at least in part. */
type AnsweredOf = (usage: EngineUsage) => number;

function answeredByFilter({ firstTokenCount, wholeCount }: EngineUsage): number {
  return firstTokenCount + wholeCount;
}

/** Envoy counts an answer with its headers, which many engines send before they have done anything. */
function answeredByEnvoy({ ended, failures }: EngineUsage): number {
  return Math.max(0, ended - failures);
}

/** Prompt tokens per answer that were in no cache; undefined when answers do not tell. */
function uncachedPerAnswer(usage: EngineUsage): number | undefined {
  const { usageCount, promptTokens, cachedTokens, cachedOfTokens } = usage;
  if (usageCount === 0 || cachedOfTokens === 0) return undefined;
  return (promptTokens / usageCount) * (1 - cachedTokens / cachedOfTokens);
}

/** Answers whose times are told, and the seconds that they spent in the engine: streams until they end, too. */
function staysOf(
  { firstTokenCount, firstTokenSecondsSum, paceSecondsSum, wholeCount, wholeSecondsSum }: EngineUsage,
  networkSeconds: number,
): { readonly timedAnswers: number; readonly staySeconds: number } {
  const timedAnswers = firstTokenCount + wholeCount;
  const seconds = firstTokenSecondsSum + paceSecondsSum + wholeSecondsSum;
  return { timedAnswers, staySeconds: Math.max(0, seconds - timedAnswers * networkSeconds) };
}

/** Names of the ledger; the filter of a node and its Envoy count apart. */
function filterOf(frontendId: string, nodeId: string): string {
  return `${frontendId} ${nodeId}`;
}

function loadReporter(frontendId: string, nodeId: string): string {
  return `load ${frontendId} ${nodeId}`;
}

/** Indices of the engines that differ. */
function changedAt(now: Readiness, before: Readiness): readonly number[] {
  return now.flatMap((replicas, at) => {
    const others = before[at];
    const isSame =
      others?.length === replicas.length && replicas.every((ready, index) => ready === others[index]);
    return isSame ? [] : [at];
  });
}
