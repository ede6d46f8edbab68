import {
  type EngineUsage,
  type LatencyUsage,
  LOAD_NAMES,
  type LoadName,
  type LoadUsage,
  type PoolUsage,
} from '../../../wire/usage-report.js';
import { engineRow, latencyRow, poolRow } from '../../../wire/usage-report-rows.js';
import type { Address, Fleet } from '../../fleet/fleet.js';
import { addRows } from './usage-rows.js';

/** Counts of one class of a frontend: a pool and a priority. */
export type PoolTotals = Omit<PoolUsage, 'pool'> & {
  readonly frontendId: string;
  readonly poolId: string;
};

/** Counts of one (frontend, pool, engine). */
export type EngineTotals = Omit<EngineUsage, 'pool' | 'engine'> & {
  readonly frontendId: string;
  readonly poolId: string;
  readonly engineId: string;
};

/** Streamed answers of one (frontend, engine) by how fast they were. */
export type LatencyTotals = Omit<LatencyUsage, 'engine'> & {
  readonly frontendId: string;
  readonly engineId: string;
};

/** What the responses of a replica say of its load. */
export interface ReplicaLoad {
  readonly engineId: string;
  readonly address: Address;
  /** Responses with a load report that could be read, and with one that could not, since the server started. */
  readonly reports: number;
  readonly garbled: number;
  /** The latest readings: means over what one usage report told of, and when that came. */
  readonly readings: ReadonlyMap<LoadName, { readonly value: number; readonly atMs: number }>;
}

type Times = Pick<
  EngineUsage,
  | 'firstTokenSecondsSum'
  | 'firstTokenCount'
  | 'wholeSecondsSum'
  | 'wholeCount'
  | 'paceSecondsSum'
  | 'paceTokens'
>;

/** How long answers of one (frontend, engine) took, over all pools, those that are gone included. */
export type AnswerTimes = Times & { readonly frontendId: string; readonly engineId: string };

const NO_TIMES: Times = {
  firstTokenSecondsSum: 0,
  firstTokenCount: 0,
  wholeSecondsSum: 0,
  wholeCount: 0,
  paceSecondsSum: 0,
  paceTokens: 0,
};

interface Place {
  readonly frontendId: string;
  readonly poolId?: string;
  readonly engineId?: string;
}

interface Entry<T extends Place, U> {
  readonly place: T;
  usage: U;
  /** Since when its place is not of the fleet; undefined while it is. */
  leftMs?: number | undefined;
}

/** For so long the counts of what has left are kept: whoever reads them now and then is to see the last ones. */
const LEFT_KEPT_MS = 300_000;

/** Usage since the control server started, over all Envoys of a frontend. */
export class UsageTotals {
  readonly #pools = new Map<string, Entry<{ frontendId: string; poolId: string }, PoolUsage>>();
  readonly #engines = new Map<
    string,
    Entry<{ frontendId: string; poolId: string; engineId: string }, EngineUsage>
  >();
  readonly #times = new Map<string, Entry<{ frontendId: string; engineId: string }, Times>>();
  readonly #latencies = new Map<string, Entry<{ frontendId: string; engineId: string }, LatencyUsage>>();
  readonly #loads = new Map<string, ReplicaLoad>();
  /** Before this nothing is to be forgotten. */
  #nextMs = Number.POSITIVE_INFINITY;

  get pools(): readonly PoolTotals[] {
    return [...this.#pools.values()].map(({ place, usage: { pool: _pool, ...counts } }) => ({
      ...place,
      ...counts,
    }));
  }

  /** Made while they are read, as there may be very many; so are the next two. */
  get engines(): Iterable<EngineTotals> {
    return each(this.#engines, ({ pool: _pool, engine: _engine, ...counts }) => counts);
  }

  get times(): Iterable<AnswerTimes> {
    return each(this.#times, (times) => times);
  }

  get latencies(): Iterable<LatencyTotals> {
    return each(this.#latencies, ({ engine: _engine, ...counts }) => counts);
  }

  /** Only of replicas that send load reports with their responses. */
  get loads(): readonly ReplicaLoad[] {
    return [...this.#loads.values()];
  }

  load(address: Address): ReplicaLoad | undefined {
    return this.#loads.get(address);
  }

  addPool(frontendId: string, poolId: string, usage: PoolUsage): void {
    const entry = this.#pools.get(`${frontendId} ${poolId} ${usage.priority}`);
    if (entry !== undefined) entry.usage = addRows(entry.usage, usage, poolRow);
    else
      this.#pools.set(`${frontendId} ${poolId} ${usage.priority}`, { place: { frontendId, poolId }, usage });
  }

  addEngine(frontendId: string, poolId: string, engineId: string, usage: EngineUsage): void {
    const key = `${frontendId} ${poolId} ${engineId}`;
    const entry = this.#engines.get(key);
    if (entry !== undefined) entry.usage = addRows(entry.usage, usage, engineRow);
    else this.#engines.set(key, { place: { frontendId, poolId, engineId }, usage });
    this.#addTimes(frontendId, engineId, usage);
  }

  addLatency(frontendId: string, engineId: string, usage: LatencyUsage): void {
    const key = `${frontendId} ${engineId}`;
    const entry = this.#latencies.get(key);
    if (entry !== undefined) entry.usage = addRows(entry.usage, usage, latencyRow);
    else this.#latencies.set(key, { place: { frontendId, engineId }, usage });
  }

  addLoad(engineId: string, address: Address, usage: LoadUsage, nowMs: number): void {
    const before = this.#loads.get(address);
    const readings = new Map(before?.readings);
    for (const [index, name] of LOAD_NAMES.entries()) {
      const count = usage.counts[index]!;
      if (count > 0) readings.set(name, { value: usage.sums[index]! / count, atMs: nowMs });
    }
    const reports = (before?.reports ?? 0) + usage.reports;
    const garbled = (before?.garbled ?? 0) + usage.garbled;
    this.#loads.set(address, { engineId, address, reports, garbled, readings });
  }

  /** Takes the fleet of now: loads of replicas that are gone are forgotten at once, all else some minutes after it left. */
  keep({ frontends, pools, engines }: Fleet, nowMs: number): void {
    const frontendIds = idsOf(frontends);
    const poolIds = idsOf(pools);
    const engineIds = idsOf(engines);
    const isOfFleet = ({ frontendId, poolId, engineId }: Place) =>
      frontendIds.has(frontendId) &&
      (poolId === undefined || poolIds.has(poolId)) &&
      (engineId === undefined || engineIds.has(engineId));
    for (const known of this.#all()) {
      for (const entry of known.values()) {
        entry.leftMs = isOfFleet(entry.place) ? undefined : (entry.leftMs ?? nowMs);
      }
    }
    this.#nextMs = nowMs;
    const addresses = new Set(engines.flatMap(({ endpoints }) => endpoints));
    for (const address of this.#loads.keys()) if (!addresses.has(address)) this.#loads.delete(address);
  }

  /** Forgets what left long enough ago. */
  forget(nowMs: number): void {
    if (nowMs < this.#nextMs) return;
    this.#nextMs = Number.POSITIVE_INFINITY;
    for (const known of this.#all()) {
      for (const [key, { leftMs }] of known) {
        if (leftMs === undefined) continue;
        const forgottenMs = leftMs + LEFT_KEPT_MS;
        if (forgottenMs <= nowMs) known.delete(key);
        else this.#nextMs = Math.min(this.#nextMs, forgottenMs);
      }
    }
  }

  /** A sum over pools that became less when one left would look as if all the rest had just been counted. */
  #addTimes(frontendId: string, engineId: string, usage: EngineUsage): void {
    const key = `${frontendId} ${engineId}`;
    const entry = this.#times.get(key);
    const before = entry?.usage ?? NO_TIMES;
    const times = {
      firstTokenSecondsSum: before.firstTokenSecondsSum + usage.firstTokenSecondsSum,
      firstTokenCount: before.firstTokenCount + usage.firstTokenCount,
      wholeSecondsSum: before.wholeSecondsSum + usage.wholeSecondsSum,
      wholeCount: before.wholeCount + usage.wholeCount,
      paceSecondsSum: before.paceSecondsSum + usage.paceSecondsSum,
      paceTokens: before.paceTokens + usage.paceTokens,
    };
    if (entry !== undefined) entry.usage = times;
    else this.#times.set(key, { place: { frontendId, engineId }, usage: times });
  }

  #all(): readonly Map<string, Entry<Place, unknown>>[] {
    return [this.#pools, this.#engines, this.#times, this.#latencies];
  }
}

function idsOf(items: readonly { readonly id: string }[]): ReadonlySet<string> {
  return new Set(items.map(({ id }) => id));
}

function* each<P extends Place, U, C extends object>(
  known: ReadonlyMap<string, Entry<P, U>>,
  countsOf: (usage: U) => C,
): Generator<P & C> {
  for (const { place, usage } of known.values()) yield { ...place, ...countsOf(usage) };
}
