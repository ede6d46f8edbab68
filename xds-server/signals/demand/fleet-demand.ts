import { classKey, id64 } from '../../../wire/hash.js';
import type { Fleet } from '../../fleet/fleet.js';
import type { Demand } from '../../fleet/fleet-state.js';
import type { ClassRate, MeasuredSizes } from '../../fleet/operations.js';
import { rowKey } from '../../fleet/row-key.js';
import type { KnownConfig, SignalsConfig } from '../known-config.js';
import { restoreEntries, saveEntries } from '../saved.js';
import type { UsageDelta } from '../usage/usage-ledger.js';
import { type ClassAverages, ClassAveragesWatch } from './class-averages.js';
import type { Move } from './demand-band.js';
import { DemandEstimator, type RateEstimate } from './demand-estimator.js';
import { rateSeeds } from './rate-seeds.js';
import {
  noSizeCounts,
  POOL_SIZE_COUNTS,
  RequestSizes,
  type RequestSizeView,
  type TokenSizes,
} from './request-sizes.js';
import { TurnGaps, type TurnGapView } from './turn-gaps.js';

/** A frontend is worth an alarm when nobody of it has reported for this long: engines have requests that nobody tells of. */
export const SILENT_ALARM_SECONDS = 10;

/** A frontend of which nobody reports, and for how long. */
export interface SilentFrontend {
  readonly frontendId: string;
  readonly silentSeconds: number;
}

/** How large the requests of a frontend to a pool are taken to be, and why. */
export interface SizesInForce {
  readonly source: 'measured' | 'configured';
  /** Null before enough answers were counted. */
  readonly measured: RequestSizeView | null;
  readonly configured: TokenSizes;
}

/** What frontends ask for: how many requests, how large, and how they follow each other. */
export class FleetDemand {
  readonly #rates: DemandEstimator;
  readonly #sizes = new RequestSizes();
  readonly #averages = new ClassAveragesWatch();
  /** By frontend id. */
  readonly #turnGaps = new Map<string, TurnGaps>();

  /** `held`: rates of the plan in force. */
  constructor(config: SignalsConfig, held: readonly ClassRate[]) {
    this.#rates = new DemandEstimator(rateSeeds(config, held));
  }

  /** Takes a new configuration; what was measured of what stays is kept. */
  reconfigure(config: SignalsConfig): void {
    const { fleet, expectedDemand } = config;
    this.#sizes.keep(expectedDemand);
    this.#averages.keep(expectedDemand);
    this.#rates.reseed(rateSeeds(config, []));
    const frontendIds = new Set(fleet.frontends.map(({ id }) => id));
    const pools = new Set(fleet.pools.map(({ id }) => id64(id)));
    for (const [id, gaps] of this.#turnGaps) {
      if (frontendIds.has(id)) gaps.keep(pools);
      else this.#turnGaps.delete(id);
    }
  }

  /** What holds instead of configured sizes. */
  get sizes(): Pick<RequestSizes, 'inForce'> {
    return this.#sizes;
  }

  get measuredSizes(): readonly MeasuredSizes[] {
    return this.#sizes.measured;
  }

  /** Rates to go on with after a restart. */
  get knownRates(): readonly ClassRate[] {
    return this.#rates.known;
  }

  /** Goes on with sizes that were in force before a restart. */
  resumeSizes(measured: readonly MeasuredSizes[], known: KnownConfig): void {
    this.#sizes.resume(measured);
    this.#sizes.keep([...known.configured.values()]);
  }

  /** A node has reported of which nothing is known to compare it with. */
  greet(frontendId: string, nodeId: string, nowMs: number): void {
    this.#rates.add(frontendId, nodeId, new Map(), nowMs, nowMs);
  }

  /**
   * Takes what a node reports; the pools whose sizes of requests are others now. `isUsual`: conversations have stayed
   * where they were.
   */
  add(
    frontendId: string,
    nodeId: string,
    delta: UsageDelta,
    known: KnownConfig,
    isUsual: boolean,
    nowMs: number,
  ): readonly string[] {
    const offered = new Map<string, number>();
    for (const usage of delta.pools) {
      const name = known.classes.get(classKey(usage.pool, usage.priority));
      if (name === undefined) continue;
      // A client that comes back asks for as much work as before: without these a storm of retries is not seen.
      offered.set(name.id, (offered.get(name.id) ?? 0) + usage.offered + usage.clientRetries);
      this.#averages.add(frontendId, name.poolId, usage, nowMs);
    }
    this.#rates.add(frontendId, nodeId, offered, delta.fromMs, delta.toMs);
    this.#addTurns(frontendId, delta, known, nowMs);
    return this.#addSizes(frontendId, delta, known, isUsual, nowMs);
  }

  #addTurns(
    frontendId: string,
    { nodeId, turns, turnLevel }: UsageDelta,
    { poolIds }: KnownConfig,
    nowMs: number,
  ): void {
    const gaps = this.#turnGaps.get(frontendId) ?? new TurnGaps();
    this.#turnGaps.set(frontendId, gaps);
    const known = turns.filter(({ pool }) => poolIds.has(pool));
    gaps.add(nodeId, known, turnLevel, nowMs);
  }

  #addSizes(
    frontendId: string,
    { pools, engines }: UsageDelta,
    known: KnownConfig,
    isUsual: boolean,
    nowMs: number,
  ): readonly string[] {
    const counts = new Map<string, ReturnType<typeof noSizeCounts>>();
    const countsOf = (poolId: string) => {
      const own = counts.get(poolId) ?? noSizeCounts();
      counts.set(poolId, own);
      return own;
    };
    for (const usage of pools) {
      const name = known.classes.get(classKey(usage.pool, usage.priority));
      if (name === undefined) continue;
      const sums = countsOf(name.poolId);
      for (const key of POOL_SIZE_COUNTS) sums[key] += usage[key];
    }
    for (const { pool, usageCount } of engines) {
      const poolId = known.poolIds.get(pool);
      if (poolId !== undefined) countsOf(poolId).told += usageCount;
    }
    return [...counts].flatMap(([poolId, sums]) => {
      const configured = known.configured.get(rowKey({ frontendId, poolId }))!;
      return this.#sizes.add(frontendId, poolId, sums, configured, isUsual, nowMs) ? [poolId] : [];
    });
  }

  /** Moves the rates that recent counts have left; the largest move by pool id. */
  evaluate(nowMs: number): ReadonlyMap<string, Move> {
    return this.#rates.evaluate(nowMs);
  }

  rates(nowMs: number): readonly RateEstimate[] {
    return this.#rates.estimates(nowMs);
  }

  /** How close a frontend is to being found to surge, from 0 to 1 and more. Only looks. */
  surgeStrength(frontendId: string, nowMs: number): number {
    return this.#rates.surgeStrength(frontendId, nowMs);
  }

  silentFrontends({ frontends }: Fleet, nowMs: number): readonly SilentFrontend[] {
    return frontends.flatMap(({ id }) => {
      const silentSeconds = (this.#rates.silentMs(id, nowMs) ?? 0) / 1000;
      return silentSeconds > SILENT_ALARM_SECONDS ? [{ frontendId: id, silentSeconds }] : [];
    });
  }

  /** Requests per second of a frontend by pool id, of all classes. */
  ratesByPool(frontendId: string): ReadonlyMap<string, number> {
    return this.#rates.ratesByPool(frontendId);
  }

  /** A rate with all that is planned with. */
  demandOf(
    { frontendId, poolId, priority, requestsPerSecond, source }: RateEstimate,
    { expected }: KnownConfig,
    silent: readonly SilentFrontend[],
  ): Demand {
    const { promptTokens, uncachedPromptTokens, outputTokens, followUpShare, turnGapSeconds } = expected.get(
      rowKey({ frontendId, poolId }),
    )!;
    const gaps = this.#turnGaps.get(frontendId);
    return {
      frontendId,
      poolId,
      priority,
      requestsPerSecond,
      promptTokens,
      uncachedPromptTokens,
      outputTokens,
      followUpShare,
      turnGapSeconds: gaps?.inForce(id64(poolId), turnGapSeconds) ?? turnGapSeconds,
      source,
      ...(silent.some((each) => each.frontendId === frontendId) ? { isUnheard: true } : {}),
    };
  }

  /** How turns follow each other; undefined before enough was counted. */
  turnGap(frontendId: string, poolId: string): TurnGapView | undefined {
    return this.#turnGaps.get(frontendId)?.view(id64(poolId));
  }

  requestSizes(frontendId: string, poolId: string, known: KnownConfig): SizesInForce {
    const { promptTokens, uncachedPromptTokens, outputTokens } = known.configured.get(
      rowKey({ frontendId, poolId }),
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

  save() {
    return {
      rates: this.#rates.save(),
      sizes: this.#sizes.save(),
      averages: this.#averages.save(),
      turnGaps: saveEntries(this.#turnGaps),
    };
  }

  restore(saved: SavedFleetDemand): void {
    this.#rates.restore(saved.rates);
    this.#sizes.restore(saved.sizes);
    this.#averages.restore(saved.averages);
    restoreEntries(this.#turnGaps, saved.turnGaps, () => new TurnGaps());
  }
}

type SavedFleetDemand = ReturnType<FleetDemand['save']>;
