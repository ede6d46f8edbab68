import { sum } from '../../collections.js';
import type { Config } from '../../config/config.js';
import type { Address, Engine, Pool } from '../../fleet/fleet.js';
import type { EngineState, FleetState } from '../../fleet/fleet-state.js';
import { type Load, Overflow } from '../../plan/protection/overflow.js';
import type { Relief } from '../../plan/protection/relief.js';
import { endOfCurves, knowsLatency, staySeconds } from '../../profiles/curves.js';
import { type TokenMix, workSeconds } from '../../profiles/profile.js';
import type { CapacityView } from '../../signals/capacity/measured-capacity.js';
import { type LoadSources, requestsAt } from '../../signals/pages/engine-load.js';

/** Of a configured `maxInFlight`: overflow begins before requests are turned away. */
const CONFIGURED_SHARE = 0.7;
/** Fewer than this many in flight per replica are no surplus, whatever the profile says. */
const LEAST_IN_FLIGHT = 4;
/**
 * For this long after the plan has learnt that an engine can do less, its queue is what the plan is working off: to pass
 * keys on as well would take away twice what is too much.
 */
const CORRECTED_MS = 60_000;
/** Limits take account of outside requests in steps of this share of the limit, so that they do not flutter. */
const OUTSIDE_STEP = 0.1;
/** So many digits of what full engines have in flight are told, so that sizes of requests do not make it flutter. */
const FULL_DIGITS = 2;

export interface ReliefInput {
  readonly config: Pick<Config, 'profiles' | 'policy'>;
  /** Mean requests that engines may get, by id. */
  readonly mixes: ReadonlyMap<string, TokenMix>;
  readonly state: FleetState;
  /** Requests under way by the id of engines, as Envoys report; undefined while some are silent. */
  readonly inFlight: ReadonlyMap<string, number> | undefined;
  /** The same by replica. */
  readonly replicasInFlight: ReadonlyMap<Address, number> | undefined;
  /** What engines were measured to be able to do. */
  readonly capacities: readonly CapacityView[];
  /** Requests that engines have from elsewhere, by id. */
  readonly outside: ReadonlyMap<string, number>;
  /** What engines say themselves. */
  readonly loads: LoadSources;
  /** Envoys that share the limits, by the id of their frontend. */
  readonly envoys: ReadonlyMap<string, number>;
  readonly nowMs: number;
}

/** Per replica, and how long a request takes at that. */
interface Allowance {
  readonly most: number;
  readonly limit: number;
  readonly requestSeconds: number;
}

/** Watches what engines have in flight and says how to relieve them until the next plan. */
export class ReliefWatch {
  readonly #engines = new Overflow();
  readonly #replicas = new Overflow();

  /** Takes a look; where too little is known everything stays as it is. */
  update(input: ReliefInput): Relief {
    const { state, inFlight, replicasInFlight, nowMs } = input;
    const allowances = new Map(
      state.fleet.engines.flatMap((engine): [string, Allowance][] => {
        const allowance = allowanceOf(engine, input);
        return allowance === undefined ? [] : [[engine.id, allowance]];
      }),
    );
    if (inFlight !== undefined && replicasInFlight !== undefined) {
      this.#engines.update(engineLoads(input, inFlight, allowances), nowMs);
      this.#replicas.update(replicaLoads(input, replicasInFlight, allowances), nowMs);
    }
    return {
      engines: this.#engines.fractions,
      replicas: this.#replicas.fractions,
      limits: limits(input, allowances),
      full: full(input, allowances),
      envoys: input.envoys,
    };
  }
}

/**
 * By Little's law a replica at utilisation rho has `rho / work * seconds(rho)` requests in flight. Undefined where
 * nothing is configured and the profile knows no latencies.
 */
function allowanceOf(engine: Engine, { config, mixes }: ReliefInput): Allowance | undefined {
  const profile = config.profiles.get(engine.profile)!;
  const mix = mixes.get(engine.id)!;
  const rho = Math.min(config.policy.maxUtilization, endOfCurves(profile));
  const requestSeconds = staySeconds(profile, rho, mix);
  if (engine.maxInFlight !== undefined)
    return { most: CONFIGURED_SHARE * engine.maxInFlight, limit: engine.maxInFlight, requestSeconds };
  const work = workSeconds(profile, mix);
  if (!knowsLatency(profile) || work === 0) return undefined;
  const most = Math.max(LEAST_IN_FLIGHT, (rho / work) * requestSeconds);
  // A profile may be wrong about requests: it may move them, but nobody is turned away for it.
  return { most, limit: Number.POSITIVE_INFINITY, requestSeconds };
}

function engineLoads(
  { state, capacities, loads: sources, nowMs }: ReliefInput,
  inFlight: ReadonlyMap<string, number>,
  allowances: ReadonlyMap<string, Allowance>,
): Load[] {
  const corrected = new Set(
    capacities.flatMap(({ engineId, state, loweredMs }) =>
      state === 'corrected' && loweredMs !== null && nowMs - loweredMs < CORRECTED_MS ? [engineId] : [],
    ),
  );
  const loads = state.engines.flatMap((engine) => {
    const allowance = allowances.get(engine.id);
    const ready = readyOf(engine);
    // A penalty leaves the few requests that its end is seen by.
    const isRelieved = corrected.has(engine.id) || engine.latencyFactor > 1;
    if (allowance === undefined || ready.length === 0 || isRelieved) return [];
    const { most, limit, requestSeconds } = allowance;
    // Engines count what comes from elsewhere, too.
    const own = requestsAt(ready, sources, nowMs) ?? 0;
    const load = { id: engine.id, inFlight: Math.max(inFlight.get(engine.id) ?? 0, own) };
    const replicas = ready.length;
    return [{ ...load, most: most * replicas * engine.ramp, limit: limit * replicas, requestSeconds }];
  });
  const hasRoom = new Set(loads.filter((load) => load.inFlight < load.most).map(({ id }) => id));
  for (const engine of state.engines) {
    // Who has no limit has room as long as it is up.
    if (!allowances.has(engine.id) && readyOf(engine).length > 0) hasRoom.add(engine.id);
    // Who is slow has few requests because it is sent few.
    if (engine.latencyFactor > 1) hasRoom.delete(engine.id);
  }
  const helped = withRoomElsewhere(state.fleet.pools, hasRoom);
  return loads.map((load) => ({ ...load, hasRoomElsewhere: helped.has(load.id) }));
}

/** Engines of which some pool has another one with room. */
function withRoomElsewhere(pools: readonly Pool[], hasRoom: ReadonlySet<string>): ReadonlySet<string> {
  const helped = new Set<string>();
  for (const { engineIds } of pools) {
    const helpers = engineIds.filter((id) => hasRoom.has(id)).length;
    for (const id of engineIds) {
      if (helpers > (hasRoom.has(id) ? 1 : 0)) helped.add(id);
    }
  }
  return helped;
}

function replicaLoads(
  { state, loads: sources, nowMs }: ReliefInput,
  inFlight: ReadonlyMap<Address, number>,
  allowances: ReadonlyMap<string, Allowance>,
): Load[] {
  return state.engines.flatMap((engine) => {
    const allowance = allowances.get(engine.id);
    const ready = readyOf(engine);
    if (allowance === undefined || ready.length < 2) return [];
    const loads = ready.map((id) => ({
      id,
      inFlight: Math.max(inFlight.get(id) ?? 0, requestsAt([id], sources, nowMs) ?? 0),
      ...allowance,
    }));
    return loads.map((load) => ({
      ...load,
      hasRoomElsewhere: loads.some(({ id, inFlight }) => id !== load.id && inFlight < allowance.most),
    }));
  });
}

function limits(
  { state, outside, envoys }: ReliefInput,
  allowances: ReadonlyMap<string, Allowance>,
): Relief['limits'] {
  const sharers = Math.max(1, sum(envoys.values()));
  return new Map(
    state.engines.flatMap((engine): [string, number][] => {
      const allowance = allowances.get(engine.id);
      const ready = readyOf(engine).length;
      if (allowance === undefined || ready === 0 || !Number.isFinite(allowance.limit)) return [];
      const total = allowance.limit * ready;
      const step = OUTSIDE_STEP * total;
      const taken = Math.floor((outside.get(engine.id) ?? 0) / step) * step;
      return [[engine.id, Number((Math.max(0, total - taken) / ready / sharers).toPrecision(6))]];
    }),
  );
}

/** Without ready replicas an engine gets no new conversations anyway. */
function full({ state }: ReliefInput, allowances: ReadonlyMap<string, Allowance>): Relief['full'] {
  return new Map(
    state.engines.flatMap((engine): [string, number][] => {
      const allowance = allowances.get(engine.id);
      const ready = readyOf(engine).length;
      if (allowance === undefined || ready === 0) return [];
      return [[engine.id, Number((allowance.most * ready * engine.ramp).toPrecision(FULL_DIGITS))]];
    }),
  );
}

function readyOf({ replicas }: EngineState): Address[] {
  return replicas.filter(({ ready }) => ready).map(({ address }) => address);
}
