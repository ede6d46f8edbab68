import { classKey, id64 } from '../../wire/hash.js';
import type { EngineUsage, UsageReport } from '../../wire/usage-report.js';
import { sum } from '../collections.js';
import type { Address, Engine } from '../fleet/fleet.js';
import { type LastResorts, withoutLastResorts } from '../fleet/last-resort.js';
import type { ClassRate, Operations, Orders } from '../fleet/operations.js';
import { prioritiesOf } from '../fleet/priority-class.js';
import { rowKey } from '../fleet/row-key.js';
import { type AnsweredOf, answeredByEnvoy, answeredByFilter, EngineWork } from './capacity/engine-work.js';
import type { ClassAverages } from './demand/class-averages.js';
import {
  FleetDemand,
  SILENT_ALARM_SECONDS,
  type SilentFrontend,
  type SizesInForce,
} from './demand/fleet-demand.js';
import { COLD_MS, SettledSince } from './demand/settled-since.js';
import type { TurnGapView } from './demand/turn-gaps.js';
import { EngineStates } from './engine-states.js';
import { changedEngines, type KnownConfig, knownOf, type SignalsConfig, withSizes } from './known-config.js';
import { Network } from './network/network.js';
import { currentOrders, type OperatorRequest } from './operator-orders.js';
import { changedResorts, lastResorts } from './readiness/last-resort.js';
import { ReadinessWatch } from './readiness/readiness-watch.js';
import type { ProbeResult, ReplicaHealth } from './readiness/replica-health.js';
import type { SignalsView } from './signals-view.js';
import { unheardEngines } from './unheard-engines.js';
import { RecentTraffic } from './usage/recent-traffic.js';
import { type UsageDelta, UsageLedger } from './usage/usage-ledger.js';
import { UsageTotals } from './usage/usage-totals.js';

export type { SizesInForce } from './demand/fleet-demand.js';
export type { SignalsView } from './signals-view.js';

/**
 * All that is known about a fleet at one time: configuration, usage reports and probes in, a `FleetState` out. Knows
 * no sockets and no clock.
 */
export class Signals {
  readonly totals = new UsageTotals();
  readonly traffic = new RecentTraffic();
  readonly #ledger = new UsageLedger();
  readonly #demand: FleetDemand;
  readonly #readiness = new ReadinessWatch();
  readonly #work = new EngineWork();
  readonly #states = new EngineStates(this.#work);
  readonly #network: Network;
  #known: KnownConfig;
  #settledSince: SettledSince;
  #lastResorts: LastResorts = new Map();
  /** When many conversations last had to move. */
  #unrestMs = Number.NEGATIVE_INFINITY;
  /** Another control server has Envoys of which nothing is heard here. */
  #isPartial = false;
  /** Engines that may have requests of frontends that are silent. */
  #unheard: ReadonlySet<string> = new Set();

  /** `held`: rates that the plan in force was made for; they come before configured ones until enough is measured. */
  constructor(config: SignalsConfig, held: readonly ClassRate[], nowMs: number) {
    this.#known = knownOf(config);
    this.#demand = new FleetDemand(config, held);
    this.#network = new Network(config.fleet);
    this.#settledSince = new SettledSince(config.fleet.pools, nowMs);
  }

  /** Takes a new configuration; what was measured of things that stay is kept. */
  reconfigure(config: SignalsConfig, nowMs: number): void {
    const { fleet } = config;
    const before = this.#known;
    this.#demand.reconfigure(config);
    this.#known = withSizes(knownOf(config), this.#demand.sizes);
    this.#network.reconfigure(fleet);
    const changed = changedEngines(before, this.#known);
    if (changed === undefined) this.#settledSince = new SettledSince(fleet.pools, nowMs);
    else this.#settledSince.enginesChanged(changed, nowMs);
    this.#readiness.reconfigure(before.fleet, fleet);
    const endpoints = new Set(fleet.engines.flatMap((engine) => engine.endpoints));
    const engineIds = new Set(fleet.engines.map(({ id }) => id));
    this.totals.keep(fleet, nowMs);
    this.#work.keep(engineIds, endpoints);
    this.#states.keep(engineIds);
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

  get isPartial(): boolean {
    return this.#isPartial;
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
      this.#demand.greet(frontendId, nodeId, nowMs);
      return;
    }
    const resized = this.#demand.add(frontendId, nodeId, delta, this.#known, this.#isUsual(nowMs), nowMs);
    if (resized.length > 0) this.#takeSizes(resized);
    for (const usage of delta.engines) {
      this.#addEngineUsage(frontendId, usage, answeredOf(usage), delta.fromMs, nowMs);
    }
    for (const { engine, paces } of delta.latencies) {
      const engineId = this.#known.engineIds.get(engine);
      if (engineId !== undefined) this.#readiness.addStreams(engineId, sum(paces));
    }
    this.#work.addEnded(delta, answeredOf, this.#known.addresses);
    for (const { replica, ended } of delta.replicas) {
      const address = this.#known.addresses.get(replica);
      if (address !== undefined) this.#readiness.addEnded(address, ended, delta.fromMs, nowMs);
    }
    for (const usage of delta.networks) {
      const engineId = this.#known.engineIds.get(usage.engine);
      if (engineId !== undefined) this.#network.add(frontendId, engineId, usage, nowMs);
    }
    this.#addToTotals(frontendId, delta, nowMs);
  }

  /** Whether conversations have stayed where they were, as far as is known. */
  #isUsual(nowMs: number): boolean {
    return nowMs - this.#unrestMs >= COLD_MS;
  }

  #takeSizes(poolIds: readonly string[]): void {
    this.#known = withSizes(this.#known, this.#demand.sizes);
    const pools = this.#known.fleet.pools.filter(({ id }) => poolIds.includes(id));
    this.#work.forgetTraffic(pools.flatMap(({ engineIds }) => engineIds));
  }

  #addEngineUsage(
    frontendId: string,
    usage: EngineUsage,
    answered: number,
    fromMs: number,
    nowMs: number,
  ): void {
    const { engineIds, poolIds, fleet, engineIndex, profiles, expected } = this.#known;
    const engineId = engineIds.get(usage.engine);
    const poolId = poolIds.get(usage.pool);
    if (engineId === undefined || poolId === undefined) return;
    this.totals.addEngine(frontendId, poolId, engineId, usage);
    this.traffic.addEngine(frontendId, engineId, usage, fromMs, nowMs);
    this.#readiness.addUsage(engineId, usage, nowMs);
    // Written out, as in all that runs for each row: spreading takes longer than all that is done with it.
    const told = {
      engineId,
      usage,
      answered,
      fromMs,
      shape: expected.get(rowKey({ frontendId, poolId }))!,
      profile: profiles.get(fleet.engines[engineIndex.get(engineId)!]!.profile)!,
      networkSeconds: this.#networkSeconds(frontendId, engineId),
    };
    this.#work.add(told, nowMs);
    // What is made good after a silence cannot be compared with the load of now.
    const isRecent = nowMs - fromMs <= SILENT_ALARM_SECONDS * 1000;
    if (!isRecent) return;
    this.#states.addLatencies(told, this.#known, this.#settledSince.isCold(engineId, nowMs), nowMs);
  }

  #networkSeconds(frontendId: string, engineId: string): number {
    const seconds = this.#network.seconds(frontendId, engineId);
    return Number.isFinite(seconds) ? seconds : 0;
  }

  #addToTotals(frontendId: string, { pools, latencies, loads, fromMs }: UsageDelta, nowMs: number): void {
    const { classes, engineIds, addresses } = this.#known;
    for (const usage of pools) {
      const name = classes.get(classKey(usage.pool, usage.priority));
      if (name === undefined) continue;
      this.totals.addPool(frontendId, name.poolId, usage);
      this.traffic.addPool(frontendId, usage, fromMs, nowMs);
    }
    for (const usage of latencies) {
      const engineId = engineIds.get(usage.engine);
      if (engineId !== undefined) this.totals.addLatency(frontendId, engineId, usage);
    }
    for (const usage of loads) {
      const engineId = engineIds.get(usage.engine);
      const address = addresses.get(usage.replica);
      const isNew = usage.reports + usage.garbled > 0;
      if (isNew && engineId !== undefined && address !== undefined) {
        this.totals.addLoad(engineId, address, usage, nowMs);
      }
    }
  }

  /** How close a frontend is to being found to surge, from 0 to 1 and more. Only looks. */
  surgeStrength(frontendId: string, nowMs: number): number {
    return this.#demand.surgeStrength(frontendId, nowMs);
  }

  /** How turns follow each other; undefined before enough was counted. */
  turnGap(frontendId: string, poolId: string): TurnGapView | undefined {
    return this.#demand.turnGap(frontendId, poolId);
  }

  requestSizes(frontendId: string, poolId: string): SizesInForce {
    return this.#demand.requestSizes(frontendId, poolId, this.#known);
  }

  /** How the requests of a class are, to be looked at. */
  classAverages(frontendId: string, poolId: string, priority: number, nowMs: number): ClassAverages {
    return this.#demand.classAverages(frontendId, poolId, priority, nowMs);
  }

  /** What is configured of a round trip that is measured; undefined where the configured one counts. */
  correctedNetworkSeconds(frontendId: string, engineId: string): number | undefined {
    return this.#network.corrected(frontendId, engineId);
  }

  /** Takes a probe result and tells what is thought of the replica now. */
  acceptProbe(engineId: string, address: Address, result: ProbeResult, nowMs: number): ReplicaHealth {
    return this.#readiness.acceptProbe(engineId, address, result, nowMs);
  }

  health(address: Address, nowMs: number): ReplicaHealth {
    return this.#readiness.health(address, nowMs);
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
    return this.#work.acceptPage(engineId, address, generated, nowMs);
  }

  /**
   * Takes the number of requests that an engine says it has on these many replicas, wherever they come from, and the
   * fewest that wait at any one of them.
   */
  acceptLoad(engine: Engine, requests: number, replicas: number, nowMs: number, leastWaiting?: number): void {
    if (leastWaiting !== undefined) this.#states.acceptQueue(engine.id, leastWaiting, nowMs);
    const inFlight = this.#ledger.inFlight(nowMs);
    const { choosesEngines, profiles, mixes } = this.#known;
    // Requests of a silent frontend, and those of which the engine is not known yet, are planned for already.
    if (inFlight === undefined || !choosesEngines || !this.#isHeard(engine.id)) return;
    const reading = { requests, ours: inFlight.get(id64(engine.id)) ?? 0, replicas };
    const share = this.#states.shareInForce(engine.id, this.#known);
    const profile = profiles.get(engine.profile)!;
    this.#work.acceptLoad(engine, reading, share, profile, mixes.get(engine.id)!, nowMs);
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
    return this.#states.orders;
  }

  /** Of what operators ordered elsewhere, what matters to this fleet. */
  currentOrders(orders: Orders, nowMs: number): Orders {
    return currentOrders(orders, this.#known.fleet, nowMs);
  }

  /** Takes what operators ordered here and elsewhere in place of what was known. */
  takeOrders(orders: Orders, nowMs: number): void {
    this.#states.takeOrders(orders);
    this.#states.expireOrders(this.#known, nowMs);
  }

  /**
   * Does what an operator asks for.
   *
   * @throws {WardropError} WARDROP_QUERY_INVALID
   */
  act(request: OperatorRequest, nowMs: number): void {
    this.#states.act(request, this.#known, nowMs);
  }

  /** What operators ordered, the penalties in force and what was measured, to go on with after a restart. */
  get operations(): Operations {
    const sizes = this.#demand.measuredSizes;
    const hasClasses = prioritiesOf(this.#known.fleet).length > 1;
    return {
      ...this.#states.orders,
      ...this.#states.operations(this.#known),
      roundTrips: this.#network.measured,
      ...(sizes.length === 0 ? {} : { sizes }),
      ...(hasClasses && { rates: this.#demand.knownRates }),
    };
  }

  /** Goes on with what was in force before a restart. */
  resume(operations: Operations, nowMs: number): void {
    this.#network.resume(operations.roundTrips ?? [], nowMs);
    this.#demand.resumeSizes(operations.sizes ?? [], this.#known);
    this.#known = withSizes(this.#known, this.#demand.sizes);
    this.#states.resume(operations, this.#known, nowMs);
  }

  /** The fleet as it looks now. */
  evaluate(nowMs: number): SignalsView {
    const { fleet } = this.#known;
    const moves = this.#demand.evaluate(nowMs);
    this.#settledSince.demandMoved(moves, nowMs);
    if ([...moves.values()].includes('large')) this.#unrestMs = nowMs;
    this.#states.expireOrders(this.#known, nowMs);
    this.totals.forget(nowMs);
    const isDrained = (address: Address) => this.#states.isReplicaDrained(address);
    const replicasInFlight = this.replicasInFlight(nowMs);
    const readiness = this.#readiness.evaluate(fleet, isDrained, replicasInFlight, nowMs);
    const { heldPools, vetoes, stuck } = readiness;
    this.#noteChanged(readiness.changed, nowMs);
    const rates = this.#demand.rates(nowMs);
    const silentFrontends = this.#demand.silentFrontends(fleet, nowMs);
    const inFlight = this.#ledger.inFlight(nowMs);
    if (inFlight !== undefined) {
      // What a replica that is left out is stuck with says nothing of the others.
      const stuckWith = ({ endpoints }: Engine) =>
        stuck.size === 0
          ? 0
          : sum(endpoints.map((address) => (stuck.has(address) && replicasInFlight?.get(address)) || 0));
      const heldBy = (engine: Engine) => (inFlight.get(id64(engine.id)) ?? 0) - stuckWith(engine);
      this.#work.noteHeld(fleet.engines, heldBy, nowMs);
    }
    this.#unheard = this.#unheardEngines(silentFrontends);
    const hearing = {
      knowsHeld: inFlight !== undefined,
      isHeard: (engineId: string) => this.#isHeard(engineId),
      unrestMs: this.#unrestMs,
    };
    const engines = this.#states.evaluate(readiness, this.#known, hearing, nowMs);
    this.#noteResorts(
      lastResorts(fleet.pools, this.#states.fitness(engines, readiness.heldEngines, nowMs)),
      nowMs,
    );
    return {
      state: {
        fleet: withoutLastResorts(this.#network.evaluate(nowMs), this.#lastResorts),
        atMs: nowMs,
        engines,
        demands: rates.map((rate) => this.#demand.demandOf(rate, this.#known, silentFrontends)),
        ...this.#settledSince.at(nowMs),
      },
      configuredFleet: fleet,
      roundTrips: this.#network.views,
      heldPools,
      silentFrontends,
      isBlind: heldPools.length === fleet.pools.length && silentFrontends.length === fleet.frontends.length,
      vetoes,
      stuck: new Map(stuck),
      outside: this.#work.outside,
      outliers: this.#states.outlierViews(this.#known),
      capacities: this.#states.capacityViews(this.#known),
      drifts: this.#states.drifts(this.#known),
      rates,
      mixes: this.#known.mixes,
    };
  }

  /** Engines, or some of their replicas, came into service or went out of it. */
  #noteChanged(engineIds: ReadonlySet<string>, nowMs: number): void {
    if (engineIds.size === 0) return;
    this.#settledSince.enginesChanged(engineIds, nowMs);
    this.#unrestMs = nowMs;
  }

  #noteResorts(resorts: LastResorts, nowMs: number): void {
    this.#noteChanged(changedResorts(this.#lastResorts, resorts), nowMs);
    this.#lastResorts = resorts;
  }

  /** Whether all that may send requests to an engine tell of them. */
  #isHeard(engineId: string): boolean {
    return !this.#isPartial && !this.#unheard.has(engineId);
  }

  #unheardEngines(silent: readonly SilentFrontend[]): ReadonlySet<string> {
    if (silent.length === 0) return new Set();
    const senders = {
      ratesByPool: (frontendId: string) => this.#demand.ratesByPool(frontendId),
      isReachable: (frontendId: string, engineId: string) =>
        Number.isFinite(this.#network.seconds(frontendId, engineId)),
    };
    return unheardEngines(silent, senders, this.#known, this.#states.capacities);
  }

  /** All that is known, but for `totals` and `traffic`, from which nothing follows here. */
  save() {
    return {
      ledger: this.#ledger.save(),
      demand: this.#demand.save(),
      readiness: this.#readiness.save(),
      work: this.#work.save(),
      states: this.#states.save(),
      network: this.#network.save(),
      settledSince: this.#settledSince.save(),
      lastResorts: [...this.#lastResorts],
      unrestMs: this.#unrestMs,
      isPartial: this.#isPartial,
      unheard: [...this.#unheard],
    };
  }

  /** Goes on with what others with the same configuration knew. */
  restore(saved: SavedSignals): void {
    this.#ledger.restore(saved.ledger);
    this.#demand.restore(saved.demand);
    this.#readiness.restore(saved.readiness);
    this.#work.restore(saved.work);
    this.#states.restore(saved.states);
    this.#network.restore(saved.network);
    this.#settledSince.restore(saved.settledSince);
    this.#lastResorts = new Map(saved.lastResorts);
    this.#unrestMs = saved.unrestMs;
    this.#isPartial = saved.isPartial;
    this.#unheard = new Set(saved.unheard);
    this.#known = withSizes(this.#known, this.#demand.sizes);
  }
}

export type SavedSignals = ReturnType<Signals['save']>;

/** Grows with every change of what is saved, or of what it means: nobody goes on with what others saved in another form. */
export const SAVED_FORMAT = 11;

/** Names of the ledger; the filter of a node and its Envoy count apart. */
function filterOf(frontendId: string, nodeId: string): string {
  return `${frontendId} ${nodeId}`;
}

function loadReporter(frontendId: string, nodeId: string): string {
  return `load ${frontendId} ${nodeId}`;
}
