import { groupBy } from '../../collections.js';
import type { Demand } from '../../fleet/fleet-state.js';
import type { ClassRate } from '../../fleet/operations.js';
import { classId } from '../../fleet/priority-class.js';
import { measuredConfidence } from '../measured-confidence.js';
import { type BandState, DemandBand, larger, type Move, settled, surge } from './demand-band.js';
import { type Count, Dispersion } from './dispersion.js';
import { type ObservedWindow, RateSeries } from './rate-series.js';
import { surgeSign } from './surge.js';

/** A node that has not reported for this long is silent: its last rate is assumed to go on. */
const SILENT_AFTER_MS = 2_500;
/** A silent node is taken for removed, and its rate dropped, when others of its frontend have reported for this long. */
const REMOVED_AFTER_MS = 30_000;
/** Time constant of a node's own rate, which stands in for it while it is silent. */
const NODE_RATE_SECONDS = 10;
/** Requests that must have been counted before a configured rate gives way to a measured one. */
const ENOUGH_COUNT = 20;
/** Small changes of a row take up to a minute to be found. All requests of a frontend are looked at for surges only. */
const ROW_LEARNS_AFTER_MS = 60_000;
/** When a frontend's demand surges, what its rows are scaled to counts for as much as this many requests of their own. */
const SCALED_EVIDENCE = 50;

/** The expected rate of one frontend for one class, or the one from before a restart. */
export interface RateSeed extends BandState {
  readonly frontendId: string;
  readonly poolId: string;
  /** Of the class; 0 when absent. */
  readonly priority?: number;
  readonly source: 'expected' | 'held';
}

export interface RateEstimate extends BandState {
  readonly frontendId: string;
  readonly poolId: string;
  readonly priority: number;
  readonly source: Demand['source'];
  /** Seconds since an Envoy of the frontend reported; undefined when none ever did. */
  readonly ageSeconds: number | undefined;
  /** Variance over mean of counts of a minute, as far as it is known. */
  readonly dispersion: number;
}

type RateEvidence = Pick<RateEstimate, 'evidence' | 'dispersion' | 'ageSeconds'>;

/** 0..1, how far a rate can be trusted: by the chance in its counts, and how long ago anyone reported. 0 for what is expected. */
export function rateConfidence({ evidence, dispersion, ageSeconds = 0 }: RateEvidence): number {
  // What is configured is as if it were known from endless counts.
  if (!Number.isFinite(evidence) || evidence === 0) return 0;
  return Math.max(0, 1 - Math.sqrt(dispersion / evidence)) * measuredConfidence(0, ageSeconds * 1_000);
}

interface Row {
  readonly seed: RateSeed;
  readonly band: DemandBand;
  readonly series: RateSeries;
  readonly dispersion: Dispersion;
  counted: number;
}

interface Frontend {
  /** By `classId`. */
  readonly rows: Map<string, Row>;
  readonly nodes: Map<string, Node>;
  /** Of all its requests together. */
  readonly dispersion: Dispersion;
  /** Up to when its counts were looked at. */
  judgedMs: number;
}

/** All requests of a frontend with several rows. */
interface Together {
  readonly rows: readonly Row[];
  /** Of each row, in the order of `rows`. */
  readonly windows: readonly (readonly ObservedWindow[])[];
  readonly total: readonly ObservedWindow[];
  readonly requestsPerSecond: number;
}

interface Node {
  lastMs: number;
  readonly ratesByClass: Map<string, number>;
}

/**
 * Demand per frontend and class from counts of clients' requests. All Envoys of a frontend are one source: their counts
 * are added up to the time that every live one has reported, so that a frontend is judged by all its requests.
 * Silence changes nothing: a frontend of which nobody reports keeps its rates.
 */
export class DemandEstimator {
  readonly #frontends = new Map<string, Frontend>();

  constructor(seeds: readonly RateSeed[]) {
    this.reseed(seeds);
  }

  /** Takes new rows, drops those that are gone and keeps the measurements of the rest. */
  reseed(seeds: readonly RateSeed[]): void {
    const old = new Map(this.#frontends);
    this.#frontends.clear();
    for (const [frontendId, own] of groupBy(seeds, (seed) => seed.frontendId)) {
      const before = old.get(frontendId);
      const rows = new Map(own.map((seed) => [idOf(seed), rowFor(seed, before?.rows.get(idOf(seed)))]));
      const hasSameRows =
        before?.rows.size === rows.size && [...rows.keys()].every((id) => before.rows.has(id));
      this.#frontends.set(frontendId, {
        rows,
        nodes: before?.nodes ?? new Map(),
        // Counts of all rows together cannot be compared with those of others.
        dispersion: hasSameRows ? before.dispersion : new Dispersion(),
        judgedMs: before?.judgedMs ?? Number.NEGATIVE_INFINITY,
      });
    }
  }

  /** Counts the requests that a node reports for the time between two reports, by `classId`. */
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
    const node = frontend.nodes.get(nodeId) ?? { lastMs: toMs, ratesByClass: new Map() };
    frontend.nodes.set(nodeId, node);
    node.lastMs = toMs;
    for (const [id, row] of frontend.rows) {
      const count = counts.get(id) ?? 0;
      row.series.add(count, fromMs, toMs);
      row.counted += count;
      if (seconds <= 0) continue;
      const before = node.ratesByClass.get(id) ?? count / seconds;
      const gain = 1 - Math.exp(-seconds / NODE_RATE_SECONDS);
      node.ratesByClass.set(id, before + gain * (count / seconds - before));
    }
  }

  /** Moves the bands that recent counts have left; the largest move by pool id, of those of which any did. */
  evaluate(nowMs: number): ReadonlyMap<string, Move> {
    const moves = new Map<string, Move>();
    const note = ({ seed: { poolId } }: Row, move: Move | undefined) => {
      const largest = larger(moves.get(poolId), move);
      if (largest !== undefined) moves.set(poolId, largest);
    };
    for (const frontend of this.#frontends.values()) {
      const endMs = heardOfUntil(frontend, nowMs);
      if (endMs === undefined) continue;
      for (const [nodeId, node] of frontend.nodes) {
        if (nowMs - node.lastMs > REMOVED_AFTER_MS) frontend.nodes.delete(nodeId);
      }
      // Counts that have moved a rate once would move it on, as if they had been counted anew.
      if (endMs <= frontend.judgedMs) continue;
      frontend.judgedMs = endMs;
      const surged = this.#followSurge(frontend, endMs);
      for (const row of surged) note(row, 'large');
      if (surged.length > 0) continue;
      const rows = Math.max(1, measured(frontend).length);
      for (const [id, row] of frontend.rows) {
        note(row, this.#observe(frontend, id, row, endMs, rows));
      }
    }
    return moves;
  }

  /** In the order of the seeds. */
  estimates(nowMs: number): readonly RateEstimate[] {
    return [...this.#frontends].flatMap(([frontendId, frontend]) => {
      const silentMs = this.silentMs(frontendId, nowMs);
      return [...frontend.rows.values()].map((row) => ({
        frontendId,
        poolId: row.seed.poolId,
        priority: row.seed.priority ?? 0,
        ...row.band.state,
        source: this.#source(frontend, row, nowMs),
        ageSeconds: silentMs === undefined ? undefined : silentMs / 1000,
        dispersion: row.dispersion.of(60),
      }));
    });
  }

  /** Rates that were ever measured, here or before a restart. */
  get known(): readonly ClassRate[] {
    return [...this.#frontends].flatMap(([frontendId, { rows }]) =>
      [...rows.values()].flatMap(({ seed: { poolId, priority, source }, counted, band }) =>
        counted < ENOUGH_COUNT && source === 'expected'
          ? []
          : [
              {
                ...{ frontendId, poolId, ...(priority !== undefined && { priority }) },
                requestsPerSecond: band.state.requestsPerSecond,
              },
            ],
      ),
    );
  }

  /** Requests per second of a frontend by pool id, of all classes. */
  ratesByPool(frontendId: string): ReadonlyMap<string, number> {
    const rates = new Map<string, number>();
    for (const { seed, band } of this.#frontends.get(frontendId)?.rows.values() ?? []) {
      rates.set(seed.poolId, (rates.get(seed.poolId) ?? 0) + band.state.requestsPerSecond);
    }
    return rates;
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

  /**
   * How close a frontend is to being found to surge, from 0 to 1 and more, by what was reported so far of all its
   * requests or of any of its rows. Only looks.
   */
  surgeStrength(frontendId: string, nowMs: number): number {
    const frontend = this.#frontends.get(frontendId);
    const endMs = frontend && heardOfUntil(frontend, nowMs);
    if (frontend === undefined || endMs === undefined) return 0;
    let most = 0;
    const rows = measured(frontend);
    for (const [id, row] of rows) {
      const windows = observed(frontend, id, row, row.band.sinceMs, endMs);
      const { strength } = row.band.sign(windows, rows.length);
      most = Math.max(most, strength);
    }
    const all = together(frontend, endMs);
    if (all === undefined) return most;
    return Math.max(most, surgeSign(all.total, settled(all.requestsPerSecond)).strength);
  }

  /**
   * Looks at all requests of a frontend together, which show a surge before its rows can: then each is moved to what was
   * counted of it since, drawn towards its former rate times the growth of all. The rows that moved; none without a surge.
   */
  #followSurge(frontend: Frontend, endMs: number): readonly Row[] {
    const all = together(frontend, endMs, (count, sinceMs) =>
      frontend.dispersion.observe(count, sinceMs, endMs),
    );
    if (all === undefined) return [];
    const change = surge(all.total, settled(all.requestsPerSecond));
    if (change === undefined || all.requestsPerSecond === 0) return [];
    const growth = change.to.requestsPerSecond / all.requestsPerSecond;
    const at = all.total.findIndex(({ seconds }) => seconds === change.seconds);
    all.rows.forEach(({ band }, index) => {
      const own = all.windows[index]![at]!;
      const scaled = band.state.requestsPerSecond * growth;
      const scaledSeconds = scaled > 0 ? SCALED_EVIDENCE / scaled : 0;
      const evidence = (scaled > 0 ? SCALED_EVIDENCE : 0) + own.count;
      const requestsPerSecond = evidence / (scaledSeconds + own.seconds);
      band.surgeTo({ requestsPerSecond, evidence }, endMs - change.seconds * 1_000);
    });
    return all.rows;
  }

  #observe(frontend: Frontend, id: string, row: Row, endMs: number, rows: number): Move | undefined {
    const { band, series, dispersion } = row;
    if (row.counted < ENOUGH_COUNT) return undefined;
    if (!isMeasured(row)) {
      // Not at the very first request: a few single ones before the traffic sets in say nothing about it.
      const sinceMs = series.startOfLast(ENOUGH_COUNT, endMs);
      if (sinceMs === undefined) return undefined;
      band.begin(sinceMs);
    }
    dispersion.observe((fromMs, toMs) => series.count(fromMs, toMs), band.sinceMs, endMs);
    return band.observe(observed(frontend, id, row, band.sinceMs, endMs), endMs, rows);
  }

  #source(frontend: Frontend, row: Row, nowMs: number): Demand['source'] {
    if (row.counted < ENOUGH_COUNT) return row.seed.source;
    const isLive = [...frontend.nodes.values()].some((node) => nowMs - node.lastMs <= SILENT_AFTER_MS);
    return isLive ? 'measured' : 'held';
  }

  save() {
    return [...this.#frontends].map(([id, { rows, nodes, dispersion, judgedMs }]) => {
      const savedRows = [...rows.values()].map(({ seed, counted, ...measured }) => ({
        seed,
        counted,
        band: measured.band.save(),
        series: measured.series.save(),
        dispersion: measured.dispersion.save(),
      }));
      const savedNodes = [...nodes].map(([nodeId, { lastMs, ratesByClass }]) => {
        return [nodeId, { lastMs, ratesByClass: [...ratesByClass] }] as const;
      });
      const saved = { rows: savedRows, nodes: savedNodes, dispersion: dispersion.save(), judgedMs };
      return [id, saved] as const;
    });
  }

  restore(saved: SavedDemandEstimator): void {
    this.#frontends.clear();
    for (const [id, { rows, nodes, dispersion, judgedMs }] of saved) {
      const frontend: Frontend = {
        rows: new Map(),
        nodes: new Map(),
        dispersion: new Dispersion(),
        judgedMs,
      };
      this.#frontends.set(id, frontend);
      frontend.dispersion.restore(dispersion);
      for (const [nodeId, { lastMs, ratesByClass }] of nodes) {
        frontend.nodes.set(nodeId, { lastMs, ratesByClass: new Map(ratesByClass) });
      }
      for (const { seed, counted, ...measured } of rows) {
        const row = newRow(seed);
        row.counted = counted;
        row.band.restore(measured.band);
        row.series.restore(measured.series);
        row.dispersion.restore(measured.dispersion);
        frontend.rows.set(idOf(seed), row);
      }
    }
  }
}

type SavedDemandEstimator = ReturnType<DemandEstimator['save']>;

function idOf({ poolId, priority = 0 }: RateSeed): string {
  return classId(poolId, priority);
}

/** What was measured of a row, if anything was, goes on. */
function rowFor(seed: RateSeed, before: Row | undefined): Row {
  const isKept = before !== undefined && (before.counted > 0 || before.seed.source === 'held');
  return isKept ? before : newRow(seed);
}

function newRow(seed: RateSeed): Row {
  const series = new RateSeries();
  const dispersion = new Dispersion(ROW_LEARNS_AFTER_MS);
  return { seed, band: new DemandBand(seed), series, dispersion, counted: 0 };
}

function isMeasured({ band }: Row): boolean {
  return band.sinceMs !== Number.NEGATIVE_INFINITY;
}

/** Rows whose counts are looked at, with their ids. */
function measured({ rows }: Frontend): readonly [string, Row][] {
  return [...rows].filter(([, row]) => isMeasured(row));
}

/** Up to when every live node has reported; undefined when there is none. */
function heardOfUntil({ nodes }: Frontend, nowMs: number): number | undefined {
  let untilMs: number | undefined;
  for (const { lastMs } of nodes.values()) {
    if (nowMs - lastMs <= SILENT_AFTER_MS) untilMs = Math.min(untilMs ?? lastMs, lastMs);
  }
  return untilMs;
}

/** Undefined where fewer than two rows are measured. `learn` gets what is counted since all of them are, beforehand. */
function together(
  frontend: Frontend,
  endMs: number,
  learn: (count: Count, sinceMs: number) => void = () => {},
): Together | undefined {
  const entries = measured(frontend);
  if (entries.length < 2) return undefined;
  const rows = entries.map(([, row]) => row);
  const sinceMs = Math.max(...rows.map(({ band }) => band.sinceMs));
  learn((fromMs, toMs) => rows.reduce((sum, { series }) => sum + series.count(fromMs, toMs), 0), sinceMs);
  const windows = entries.map(([id, row]) => observed(frontend, id, row, sinceMs, endMs));
  const total = windows[0]!.map(({ seconds }, at) => ({
    seconds,
    count: windows.reduce((sum, own) => sum + own[at]!.count, 0),
    dispersion: frontend.dispersion.of(seconds),
  }));
  const requestsPerSecond = rows.reduce((sum, { band }) => sum + band.state.requestsPerSecond, 0);
  return { rows, windows, total, requestsPerSecond };
}

/** Counts of a row, with what nodes that fell silent would have reported at their last rate. */
function observed(
  { nodes }: Frontend,
  id: string,
  { series, dispersion }: Row,
  sinceMs: number,
  endMs: number,
): readonly ObservedWindow[] {
  const silent = [...nodes.values()].filter((node) => node.lastMs < endMs);
  return series.windows(endMs, sinceMs).map(({ seconds, count }) => {
    const assumed = silent.map(({ lastMs, ratesByClass }) => {
      const missing = Math.min(seconds, (endMs - lastMs) / 1000);
      return missing * (ratesByClass.get(id) ?? 0);
    });
    return {
      seconds,
      count: assumed.reduce((sum, value) => sum + value, count),
      dispersion: dispersion.of(seconds),
    };
  });
}
