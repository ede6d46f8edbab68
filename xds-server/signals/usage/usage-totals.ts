import {
  type EngineUsage,
  type LatencyUsage,
  LOAD_NAMES,
  type LoadName,
  type LoadUsage,
  type PoolUsage,
} from '../../../wire/usage-report.js';
import { engineRow, latencyRow, poolRow } from '../../../wire/usage-report-rows.js';
import type { Address } from '../../fleet/fleet.js';
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

interface Entry<T, U> {
  readonly place: T;
  usage: U;
}

/** Usage since the control server started, over all Envoys of a frontend. */
export class UsageTotals {
  readonly #pools = new Map<string, Entry<{ frontendId: string; poolId: string }, PoolUsage>>();
  readonly #engines = new Map<
    string,
    Entry<{ frontendId: string; poolId: string; engineId: string }, EngineUsage>
  >();
  readonly #latencies = new Map<string, Entry<{ frontendId: string; engineId: string }, LatencyUsage>>();
  readonly #loads = new Map<string, ReplicaLoad>();

  get pools(): readonly PoolTotals[] {
    return [...this.#pools.values()].map(({ place, usage: { pool: _pool, ...counts } }) => ({
      ...place,
      ...counts,
    }));
  }

  get engines(): readonly EngineTotals[] {
    return [...this.#engines.values()].map(
      ({ place, usage: { pool: _pool, engine: _engine, ...counts } }) => ({ ...place, ...counts }),
    );
  }

  get latencies(): readonly LatencyTotals[] {
    return [...this.#latencies.values()].map(({ place, usage: { engine: _engine, ...counts } }) => ({
      ...place,
      ...counts,
    }));
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

  /** Forgets the loads of replicas that are gone. */
  keepLoads(addresses: ReadonlySet<Address>): void {
    for (const address of this.#loads.keys()) if (!addresses.has(address)) this.#loads.delete(address);
  }
}
