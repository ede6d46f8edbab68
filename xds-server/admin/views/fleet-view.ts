import { type Demand, effectiveCapacity, settledSecondsOf } from '../../fleet/fleet-state.js';
import { lastResortsOf } from '../../fleet/last-resort.js';
import { type RateEstimate, rateConfidence } from '../../signals/demand/demand-estimator.js';
import type { TurnGapView } from '../../signals/demand/turn-gaps.js';
import { measuredConfidence } from '../../signals/measured-confidence.js';
import type { RoundTripView } from '../../signals/network/round-trip.js';
import { requestsAtReplica } from '../../signals/pages/engine-load.js';
import { confidence, type ReplicaReading } from '../../signals/pages/replica-reading.js';
import type { SignalsView, SizesInForce } from '../../signals/signals.js';
import type { ReplicaLoad } from '../../signals/usage/usage-totals.js';
import { now } from '../../steady-clock.js';
import { ageSeconds } from '../age.js';
import type { ShownServer } from '../shown-server.js';

/**
 * Configured engines and frontends, as of the last look at them, with all that is known about them now. Long lists are made while
 * they are read, which may take a while, in which the server looks again.
 */
export function fleetView(server: ShownServer) {
  const { view } = server;
  const inFlight = server.signals.inFlight(now());
  const { configuredFleet: fleet, state, drifts, heldPools } = view;
  const resorts = lastResortsOf(state.fleet);
  return {
    atMs: state.atMs,
    settledSeconds: state.settledSeconds,
    frontends: each(fleet.frontends, (_, at) => frontendView(server, view, at)),
    pools: fleet.pools.map((pool) => ({
      ...pool,
      readinessHeld: heldPools.includes(pool.id),
      lastResortIds: resorts.get(pool.id) ?? [],
      settledSeconds: settledSecondsOf(state, pool.id),
    })),
    engines: each(fleet.engines, (engine, at) => ({
      ...engineView(server, view, at),
      inFlight: inFlight?.get(engine.id) ?? null,
    })),
    demands: demandsView(server, view),
    profileDrifts: drifts,
    usage: {
      pools: server.signals.totals.pools,
      engines: server.signals.totals.engines,
      latencies: server.signals.totals.latencies,
    },
  };
}

function* each<T>(items: readonly T[], viewOf: (item: T, at: number) => object): Generator<object> {
  for (const [at, item] of items.entries()) yield viewOf(item, at);
}

function* demandsView(server: ShownServer, { state, rates }: SignalsView): Generator<object> {
  for (const demand of state.demands) {
    if (!isConfigured(server, demand)) continue;
    yield {
      ...demand,
      ...rateView(rates.find((rate) => isSameClass(rate, demand))),
      ...demandViews(server, demand, now()),
    };
  }
}

/** Whether a class is still of the fleet: of others that were seen last, signals know nothing any more. */
function isConfigured({ config }: ShownServer, { frontendId, poolId }: Demand): boolean {
  const { frontends, pools } = config.fleet;
  return frontends.some(({ id }) => id === frontendId) && pools.some(({ id }) => id === poolId);
}

/** `at` is the frontend's place in the fleet. */
function frontendView({ config }: ShownServer, view: SignalsView, at: number): object {
  const nowMs = now();
  const { frontends, engines } = view.configuredFleet;
  const frontend = frontends[at]!;
  const source = networkSource(config.shown);
  const { networkSeconds } = view.state.fleet;
  const silence = view.silentFrontends.find(({ frontendId }) => frontendId === frontend.id);
  return {
    ...frontend,
    networkSource: source,
    networkMs: Object.fromEntries(
      engines.map(({ id }, engine) => [id, milliseconds(networkSeconds[at]![engine]!)]),
    ),
    network: Object.fromEntries(
      engines.map(({ id }, engine) => [id, roundTripView(view.roundTrips[at]![engine]!, source, nowMs)]),
    ),
    silentSeconds: silence?.silentSeconds ?? 0,
  };
}

/** `at` is the engine's place in the fleet. */
function engineView(server: ShownServer, view: SignalsView, at: number): object {
  const nowMs = now();
  const { configuredFleet, state, vetoes, stuck, outliers, capacities, outside } = view;
  const { endpoints: _endpoints, ...engine } = configuredFleet.engines[at]!;
  const { replicas, ...factors } = state.engines[at]!;
  return {
    ...engine,
    ...factors,
    effectiveCapacity: effectiveCapacity(state.engines[at]!),
    leftOut: vetoes.get(engine.id) ?? null,
    latency: outliers.find(({ engineId }) => engineId === engine.id) ?? null,
    capacity: capacities.find(({ engineId }) => engineId === engine.id) ?? null,
    workFromOutside: outside.get(engine.id) ?? null,
    discovery: discoveryView(engine.id, server, nowMs),
    replicas: replicas.map((replica) => ({
      ...replica,
      health: server.signals.health(replica.address, state.atMs),
      stuck: stuck.get(replica.address) ?? null,
      load: loadView(server.engineWatch.readings.get(replica.address), state.atMs),
      requestsFrom: requestsAtReplica(replica.address, server.loadSources, nowMs)?.source ?? null,
      reported: reportedView(server.signals.totals.load(replica.address), nowMs),
    })),
  };
}

function isSameClass(a: Place, b: Place): boolean {
  return a.frontendId === b.frontendId && a.poolId === b.poolId && a.priority === b.priority;
}

type Place = Pick<Demand, 'frontendId' | 'poolId' | 'priority'>;

function rateView(rate: RateEstimate | undefined): object {
  const evidence = rate?.evidence ?? 0;
  return {
    evidence: Number.isFinite(evidence) ? Math.round(evidence) : null,
    dispersion: rate?.dispersion ?? 1,
    ageSeconds: rate?.ageSeconds ?? null,
    confidence: rate === undefined ? 0 : rateConfidence(rate),
  };
}

/** What else is measured of a class, and of its pool. */
function demandViews(
  { signals }: ShownServer,
  { frontendId, poolId, priority }: Place,
  nowMs: number,
): object {
  return {
    sizes: sizesView(signals.requestSizes(frontendId, poolId), nowMs),
    turns: turnsView(signals.turnGap(frontendId, poolId), nowMs),
    measured: signals.classAverages(frontendId, poolId, priority, nowMs),
  };
}

function sizesView({ source, measured, configured }: SizesInForce, nowMs: number): object {
  return { source, measured: measured && withConfidence(measured, nowMs), configured };
}

function turnsView(turns: TurnGapView | undefined, nowMs: number): object | null {
  return turns === undefined ? null : { source: 'keys', ...withConfidence(turns, nowMs) };
}

function withConfidence<T extends { readonly atMs: number }>({ atMs, ...rest }: T, nowMs: number): object {
  return {
    ...rest,
    ageSeconds: ageSeconds(atMs, nowMs),
    confidence: measuredConfidence(atMs, nowMs),
  };
}

/** Where an engine's replicas are looked for and how that goes; null where they are listed. */
function discoveryView(engineId: string, server: ShownServer, nowMs: number): object | null {
  const source = server.config.discovery.get(engineId);
  if (source === undefined) return null;
  const { answeredMs, problem } = server.discovered.get(engineId) ?? {};
  return {
    source,
    ageSeconds: answeredMs === undefined ? null : ageSeconds(answeredMs, nowMs),
    problem: problem ?? null,
  };
}

/** A round trip with where it is from, what was measured and how far that can be trusted. */
function roundTripView(
  { seconds, isMeasured, configuredSeconds, measured, isLimited }: RoundTripView,
  configuredSource: string,
  nowMs: number,
): object {
  return {
    ms: milliseconds(seconds),
    source: isMeasured ? 'measured' : configuredSource,
    configuredMs: milliseconds(configuredSeconds),
    measuredMs: measured === undefined ? null : measured.seconds * 1_000,
    samples: measured?.samples ?? 0,
    ageSeconds: measured === undefined ? null : ageSeconds(measured.atMs, nowMs),
    confidence: measured === undefined ? 0 : measuredConfidence(measured.atMs, nowMs),
    isLimited,
  };
}

/** What the responses of a replica say about its load; null when they say nothing. */
function reportedView(load: ReplicaLoad | undefined, nowMs: number): object | null {
  if (load === undefined) return null;
  const readings = [...load.readings].map(([name, { value, atMs }]) => [
    name,
    // Filters add them up with few digits.
    { value: Number(value.toPrecision(4)), ageSeconds: ageSeconds(atMs, nowMs) },
  ]);
  return { ...Object.fromEntries(readings), reports: load.reports, garbled: load.garbled };
}

/** What a replica says about its load; each signal with where it is from, its age and how far it can be trusted. */
function loadView(reading: ReplicaReading | undefined, nowMs: number): object | null {
  if (reading === undefined) return null;
  const signals = [...reading.signals].map(([name, signal]) => [
    name,
    {
      value: signal.value ?? null,
      source: signal.source ?? null,
      ageSeconds: signal.value === undefined ? null : ageSeconds(signal.atMs, nowMs),
      confidence: confidence(signal, nowMs),
      ...(signal.problem === undefined ? {} : { problem: signal.problem }),
    },
  ]);
  const ratios = Object.entries(reading.ratios).map(([name, value]) => [name, value ?? null]);
  return { ...Object.fromEntries(signals), ...Object.fromEntries(ratios) };
}

/** Where configured round trips come from: written by pair, by region in a file, or taken for none. */
function networkSource({ network }: ShownServer['config']['shown']): 'rttMs' | 'table' | 'assumed' {
  if (network?.rttMs !== undefined) return 'rttMs';
  return network?.table === undefined ? 'assumed' : 'table';
}

/** Null for what cannot be reached. */
function milliseconds(seconds: number): number | null {
  return Number.isFinite(seconds) ? seconds * 1_000 : null;
}
