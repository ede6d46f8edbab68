import type { Demand } from '../fleet/fleet-state.js';
import { type BandState, DemandBand } from './demand-band.js';
import { RateSeries } from './rate-series.js';

/** A node that has not reported for this long is silent: its last rate is assumed to go on. */
const SILENT_AFTER_MS = 2_500;
/** A silent node is taken for removed, and its rate dropped, when others of its frontend have reported for this long. */
const REMOVED_AFTER_MS = 30_000;
/** Time constant of a node's own rate, which stands in for it while it is silent. */
const NODE_RATE_SECONDS = 10;
/** Requests that must have been counted before a configured rate gives way to a measured one. */
const ENOUGH_COUNT = 20;

/** The expected rate of one (frontend, pool), or the one from before a restart. */
export interface RateSeed extends BandState {
  readonly frontendId: string;
  readonly poolId: string;
  readonly source: 'expected' | 'held';
}

export interface RateEstimate extends BandState {
  readonly frontendId: string;
  readonly poolId: string;
  readonly source: Demand['source'];
  /** Seconds since an Envoy of the frontend reported; undefined when none ever did. */
  readonly ageSeconds: number | undefined;
}

interface Row {
  readonly seed: RateSeed;
  readonly band: DemandBand;
  readonly series: RateSeries;
  counted: number;
}

interface Frontend {
  readonly rows: Map<string, Row>;
  readonly nodes: Map<string, Node>;
}

interface Node {
  lastMs: number;
  readonly ratesByPool: Map<string, number>;
}

/**
 * Demand per (frontend, pool) from counts of first attempts. All Envoys of a frontend are one source: their counts
 * are added up to the time that every live one has reported, so that a frontend is judged by all its requests.
 * Silence changes nothing: a frontend of which nobody reports keeps its rates.
 */
export class DemandEstimator {
  readonly #frontends = new Map<string, Frontend>();

  constructor(seeds: readonly RateSeed[]) {
    for (const seed of seeds) this.#frontend(seed.frontendId).rows.set(seed.poolId, newRow(seed));
  }

  /** Takes new rows, drops those that are gone and keeps the measurements of the rest. */
  reseed(seeds: readonly RateSeed[]): void {
    const old = new Map(this.#frontends);
    this.#frontends.clear();
    for (const seed of seeds) {
      const before = old.get(seed.frontendId);
      const frontend = this.#frontend(seed.frontendId, before?.nodes);
      const row = before?.rows.get(seed.poolId);
      const isKept = row !== undefined && (row.counted > 0 || row.seed.source === 'held');
      frontend.rows.set(seed.poolId, isKept ? row : newRow(seed));
    }
  }

  /** Counts the first attempts that a node reports for the time between two reports. */
  add(
    frontendId: string,
    nodeId: string,
    counts: ReadonlyMap<string, number>,
    fromMs: number,
    toMs: number,
  ): void {
    const frontend = this.#frontends.get(frontendId);
    if (frontend === undefined) return;
    this.#ageAfterSilence(frontendId, frontend, toMs);
    const seconds = (toMs - fromMs) / 1000;
    const node = frontend.nodes.get(nodeId) ?? { lastMs: toMs, ratesByPool: new Map() };
    frontend.nodes.set(nodeId, node);
    node.lastMs = toMs;
    for (const [poolId, row] of frontend.rows) {
      const count = counts.get(poolId) ?? 0;
      row.series.add(count, fromMs, toMs);
      row.counted += count;
      if (seconds <= 0) continue;
      const before = node.ratesByPool.get(poolId) ?? count / seconds;
      const gain = 1 - Math.exp(-seconds / NODE_RATE_SECONDS);
      node.ratesByPool.set(poolId, before + gain * (count / seconds - before));
    }
  }

  /** Moves the bands that recent counts have left; true when any moved. */
  evaluate(nowMs: number): boolean {
    let moved = false;
    for (const frontend of this.#frontends.values()) {
      const live = [...frontend.nodes.values()].filter((node) => nowMs - node.lastMs <= SILENT_AFTER_MS);
      if (live.length === 0) continue;
      const endMs = Math.min(...live.map((node) => node.lastMs));
      for (const [nodeId, node] of frontend.nodes) {
        if (nowMs - node.lastMs > REMOVED_AFTER_MS) frontend.nodes.delete(nodeId);
      }
      for (const [poolId, row] of frontend.rows) {
        if (this.#observe(frontend, poolId, row, endMs)) moved = true;
      }
    }
    return moved;
  }

  /** Sorted by frontend, then pool, in the order of the seeds. */
  estimates(nowMs: number): readonly RateEstimate[] {
    return [...this.#frontends].flatMap(([frontendId, frontend]) => {
      const silentMs = this.silentMs(frontendId, nowMs);
      return [...frontend.rows].map(([poolId, row]) => ({
        frontendId,
        poolId,
        ...row.band.state,
        source: this.#source(frontend, row, nowMs),
        ageSeconds: silentMs === undefined ? undefined : silentMs / 1000,
      }));
    });
  }

  /** Milliseconds since anyone of the frontend reported; undefined when nobody ever did. */
  silentMs(frontendId: string, nowMs: number): number | undefined {
    const nodes = [...(this.#frontends.get(frontendId)?.nodes.values() ?? [])];
    return nodes.length === 0 ? undefined : nowMs - Math.max(...nodes.map((node) => node.lastMs));
  }

  /** Rates of a frontend that everybody has been silent about are known less well than before. */
  #ageAfterSilence(frontendId: string, frontend: Frontend, nowMs: number): void {
    const silentMs = this.silentMs(frontendId, nowMs) ?? 0;
    if (silentMs <= REMOVED_AFTER_MS) return;
    for (const row of frontend.rows.values()) {
      if (row.counted >= ENOUGH_COUNT) row.band.age(silentMs / 1000, nowMs);
    }
  }

  #observe(frontend: Frontend, poolId: string, row: Row, endMs: number): boolean {
    const { band, series } = row;
    if (row.counted < ENOUGH_COUNT) return false;
    if (band.sinceMs === Number.NEGATIVE_INFINITY) {
      // Not at the very first request: a few single ones before the traffic sets in say nothing about it.
      const sinceMs = series.startOfLast(ENOUGH_COUNT, endMs);
      if (sinceMs === undefined) return false;
      band.begin(sinceMs);
    }
    const silent = [...frontend.nodes.values()].filter((node) => node.lastMs < endMs);
    const windows = series.windows(endMs, band.sinceMs).map(({ seconds, count }) => {
      const assumed = silent.map(({ lastMs, ratesByPool }) => {
        const missing = Math.min(seconds, (endMs - lastMs) / 1000);
        return missing * (ratesByPool.get(poolId) ?? 0);
      });
      return { seconds, count: assumed.reduce((sum, value) => sum + value, count) };
    });
    return band.observe(windows, endMs);
  }

  #source(frontend: Frontend, row: Row, nowMs: number): Demand['source'] {
    if (row.counted < ENOUGH_COUNT) return row.seed.source;
    const isLive = [...frontend.nodes.values()].some((node) => nowMs - node.lastMs <= SILENT_AFTER_MS);
    return isLive ? 'measured' : 'held';
  }

  #frontend(id: string, nodes = new Map<string, Node>()): Frontend {
    let frontend = this.#frontends.get(id);
    if (frontend === undefined) {
      frontend = { rows: new Map(), nodes };
      this.#frontends.set(id, frontend);
    }
    return frontend;
  }
}

function newRow(seed: RateSeed): Row {
  return { seed, band: new DemandBand(seed), series: new RateSeries(), counted: 0 };
}
