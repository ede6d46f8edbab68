import { type Demand, effectiveCapacity } from '../fleet/fleet-state.js';
import { type RateEstimate, rateConfidence } from '../signals/demand-estimator.js';
import { requestsAtReplica } from '../signals/engine-load.js';
import { measuredConfidence } from '../signals/measured-confidence.js';
import { confidence, type ReplicaReading } from '../signals/replica-reading.js';
import type { RoundTripView } from '../signals/round-trip.js';
import type { SizesInForce } from '../signals/signals.js';
import type { TurnGapView } from '../signals/turn-gaps.js';
import type { ReplicaLoad } from '../signals/usage-totals.js';
import type { NodeView } from '../xds/index.js';
import type { EnvoyView, Overview } from './dashboard.js';
import type { ShownServer } from './shown-server.js';

// What the API shows, as plain values.

/** What the dashboard shows. */
export function overview(server: ShownServer): Overview {
  const atMs = Date.now();
  const inFlight = server.signals.inFlight(atMs);
  const { state, vetoes } = server.view;
  return {
    atMs,
    plan: server.plan,
    alarms: server.alarms.list,
    pools: server.config.fleet.pools,
    engines: state.engines.map((engine) => ({
      state: engine,
      inFlight: inFlight?.get(engine.id) ?? null,
      isLeftOut: vetoes.has(engine.id),
    })),
    envoys: envoyOverview(server),
  };
}

function envoyOverview(server: ShownServer): EnvoyView[] {
  const holders = server.board.holders();
  const nodes = server.nodes();
  const isSame = (one: { nodeId: string; frontendId: string }, other: typeof one) =>
    one.nodeId === other.nodeId && one.frontendId === other.frontendId;
  const snapshot = (id: { nodeId: string; frontendId: string }) => {
    const holder = holders.find((it) => isSame(it, id));
    return holder === undefined ? null : snapshotOf(server, holder);
  };
  return [
    ...nodes.map((node) => ({
      nodeId: node.nodeId,
      frontendId: node.frontendId,
      version: node.userAgentVersion,
      xds: acceptance(node),
      snapshot: snapshot(node),
    })),
    ...holders
      .filter((holder) => !nodes.some((node) => isSame(node, holder)))
      .map((holder) => ({
        nodeId: holder.nodeId,
        frontendId: holder.frontendId,
        version: '',
        xds: 'no stream' as const,
        snapshot: snapshotOf(server, holder),
      })),
  ];
}

function acceptance({ types }: NodeView): EnvoyView['xds'] {
  const statuses = Object.values(types).map(({ status }) => status);
  if (statuses.includes('rejected')) return 'rejects the newest';
  return statuses.includes('stale') ? 'behind' : 'all accepted';
}

/** Configured engines and frontends with all that is known about them now. */
export function fleetView(server: ShownServer): object {
  const { fleet } = server.config;
  const nowMs = Date.now();
  const inFlight = server.signals.inFlight(nowMs);
  const {
    state,
    roundTrips,
    vetoes,
    outside,
    outliers,
    capacities,
    drifts,
    heldPools,
    silentFrontends,
    rates,
  } = server.view;
  return {
    atMs: state.atMs,
    settledSeconds: state.settledSeconds,
    frontends: fleet.frontends.map((frontend, at) => ({
      ...frontend,
      networkSource: networkSource(server.config.shown),
      networkMs: Object.fromEntries(
        fleet.engines.map((engine, index) => [
          engine.id,
          milliseconds(state.fleet.networkSeconds[at]![index]!),
        ]),
      ),
      network: Object.fromEntries(
        fleet.engines.map((engine, index) => [
          engine.id,
          roundTripView(roundTrips[at]![index]!, networkSource(server.config.shown), nowMs),
        ]),
      ),
      silentSeconds: silentFrontends.find(({ frontendId }) => frontendId === frontend.id)?.silentSeconds ?? 0,
    })),
    pools: fleet.pools.map((pool) => ({ ...pool, readinessHeld: heldPools.includes(pool.id) })),
    engines: fleet.engines.map((engine, at) => {
      const { endpoints: _endpoints, ...described } = engine;
      const { replicas, ...factors } = state.engines[at]!;
      return {
        ...described,
        ...factors,
        effectiveCapacity: effectiveCapacity(state.engines[at]!),
        leftOut: vetoes.get(engine.id) ?? null,
        latency: outliers.find(({ engineId }) => engineId === engine.id) ?? null,
        capacity: capacities.find(({ engineId }) => engineId === engine.id) ?? null,
        workFromOutside: outside.get(engine.id) ?? null,
        inFlight: inFlight?.get(engine.id) ?? null,
        discovery: discoveryView(engine.id, server, nowMs),
        replicas: replicas.map((replica) => ({
          ...replica,
          health: server.signals.health(replica.address, state.atMs),
          load: loadView(server.engineWatch.readings.get(replica.address), state.atMs),
          requestsFrom: requestsAtReplica(replica.address, server.loadSources, nowMs)?.source ?? null,
          reported: reportedView(server.signals.totals.load(replica.address), nowMs),
        })),
      };
    }),
    demands: state.demands.map((demand) => ({
      ...demand,
      ...rateView(rates.find((rate) => isSameClass(rate, demand))),
      ...demandViews(server, demand, nowMs),
    })),
    profileDrifts: drifts,
    usage: {
      pools: server.signals.totals.pools,
      engines: server.signals.totals.engines,
      latencies: server.signals.totals.latencies,
    },
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
    ageSeconds: Math.max(0, nowMs - atMs) / 1_000,
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
    ageSeconds: answeredMs === undefined ? null : Math.max(0, nowMs - answeredMs) / 1_000,
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
    ageSeconds: measured === undefined ? null : Math.max(0, nowMs - measured.atMs) / 1_000,
    confidence: measured === undefined ? 0 : measuredConfidence(measured.atMs, nowMs),
    isLimited,
  };
}

/** What the responses of a replica say about its load; null when they say nothing. */
function reportedView(load: ReplicaLoad | undefined, nowMs: number): object | null {
  if (load === undefined) return null;
  const readings = [...load.readings].map(([name, { value, atMs }]) => [
    name,
    { value, ageSeconds: Math.max(0, nowMs - atMs) / 1_000 },
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
      ageSeconds: signal.value === undefined ? null : Math.max(0, nowMs - signal.atMs) / 1_000,
      confidence: confidence(signal, nowMs),
      ...(signal.problem === undefined ? {} : { problem: signal.problem }),
    },
  ]);
  return { ...Object.fromEntries(signals), prefixHitShare: reading.hitShare ?? null };
}

/**
 * Connected Envoys: what they accepted and rejected, and the snapshot they hold; of a node that is named, every single
 * resource, too.
 */
export function envoysView(server: ShownServer, nodeId?: string): object {
  const nowMs = Date.now();
  const isShown = (holder: { readonly nodeId: string }) => nodeId === undefined || holder.nodeId === nodeId;
  const holders = server.board.holders().filter(isShown);
  const nodes = server.nodes().filter(isShown);
  const resources = nodeId === undefined ? {} : server.resourcesOf(nodeId);
  return {
    atMs: nowMs,
    envoys: nodes.map((node) => {
      const holder = holders.find(
        ({ nodeId, frontendId }) => nodeId === node.nodeId && frontendId === node.frontendId,
      );
      const types = Object.entries(node.types).map(([typeUrl, type]) => [
        typeUrl,
        {
          ...type,
          sent: withAge(type.sent, nowMs),
          acknowledged: withAge(type.acknowledged, nowMs),
          rejection: withAge(type.rejection, nowMs),
          ...(resources[typeUrl] !== undefined && { resources: resources[typeUrl] }),
        },
      ]);
      return {
        ...node,
        types: Object.fromEntries(types),
        snapshot: holder === undefined ? null : snapshotOf(server, holder),
      };
    }),
    /** Envoys that fetch snapshots but have no xDS stream now. */
    withoutStream: holders
      .filter(({ nodeId }) => !nodes.some((node) => node.nodeId === nodeId))
      .map((holder) => ({
        nodeId: holder.nodeId,
        frontendId: holder.frontendId,
        snapshot: snapshotOf(server, holder),
      })),
  };
}

function withAge<T extends { readonly atMs: number }>(mark: T | null, nowMs: number) {
  return mark === null ? null : { ...mark, ageSeconds: Math.max(0, nowMs - mark.atMs) / 1_000 };
}

function snapshotOf(
  server: ShownServer,
  { frontendId, version, atMs }: { frontendId: string; version: number; atMs: number },
) {
  return { version, isNewest: server.board.current(frontendId)?.version === version, lastCallAtMs: atMs };
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
