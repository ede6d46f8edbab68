import type { MeasuredSizes } from '../../fleet/operations.js';
import { rowKey } from '../../fleet/row-key.js';
import { refill, restoreEntries, saveEntries } from '../saved.js';

/** Tokens are counted with an exponential memory. */
const MEMORY_MS = 600_000;
/**
 * Fewer answers say nothing, nor do those of a shorter time: short answers and first turns come first, and caches fill only
 * as conversations go on.
 */
const LEAST_ANSWERS = 200;
const LEAST_MS = 600_000;
/** Of the answers whose outputs are known, at least so many must tell their tokens: the others may be of another kind. */
const LEAST_TOLD = 0.5;
/** What is in force moves only by more than this share of it, and what chance does to few answers, and this seldom. */
const LEAST_CHANGE = 0.15;
const CHANCE = 2;
const HOLD_MS = 300_000;
/** An engine that tells nonsense makes no more of the configured sizes. */
const MOST_FACTOR = 64;
const MOST_TOKENS = 1e6;
/** So many digits are kept. */
const DIGITS = 3;

/** Mean tokens of requests; see `Demand` for the words. */
export interface TokenSizes {
  readonly promptTokens: number;
  readonly uncachedPromptTokens: number;
  readonly outputTokens: number;
}

/** What was counted of one (frontend, pool) since the last report. */
export interface SizeCounts {
  /** Answers that told their tokens. */
  readonly told: number;
  /** Prompts and outputs of known length, and their tokens. */
  readonly promptCount: number;
  readonly promptTokens: number;
  readonly outputCount: number;
  readonly outputTokens: number;
  /** Prompt tokens served from a cache, and all prompt tokens of the answers that tell. */
  readonly cachedTokens: number;
  readonly cachedOfTokens: number;
}

/** How large the requests of one (frontend, pool) are measured to be. */
export interface RequestSizeView {
  readonly promptTokens: number;
  /** Null while too few answers tell what was in a cache while conversations stayed where they were. */
  readonly uncachedPromptTokens: number | null;
  readonly outputTokens: number;
  /** Answers that told their tokens, old ones fading, and when the last of them did. */
  readonly answers: number;
  readonly atMs: number;
}

/**
 * The sizes of requests that usage reports tell, by frontend and pool. The optimizer is to see them change seldom: where
 * conversations go follows from them, and how much of a prompt is in a cache follows from where conversations go.
 */
export class RequestSizes {
  readonly #sums = new Map<string, Sums>();
  readonly #inForce = new Map<string, MeasuredSizes>();

  /**
   * Takes what was counted since the last report; true when other sizes than before are in force. `isUsual`: conversations
   * have stayed where they were, so that what was in no cache is what usually is not.
   */
  add(
    frontendId: string,
    poolId: string,
    counts: SizeCounts,
    configured: TokenSizes,
    isUsual: boolean,
    nowMs: number,
  ): boolean {
    const key = rowKey({ frontendId, poolId });
    const sums = this.#sums.get(key) ?? new Sums(nowMs);
    this.#sums.set(key, sums);
    sums.add(counts, isUsual, nowMs);
    const before = this.#inForce.get(key);
    if (before !== undefined && nowMs - before.atMs < HOLD_MS) return false;
    const { view } = sums;
    if (view === undefined || (view.uncachedPromptTokens === null && sums.tellCache)) return false;
    const sizes = believed(view, configured);
    if (!isOther(sizes, before ?? configured, LEAST_CHANGE + CHANCE / Math.sqrt(view.answers))) return false;
    this.#inForce.set(key, { frontendId, poolId, ...sizes, atMs: nowMs });
    return true;
  }

  /** What holds instead of what is configured; undefined where that does. */
  inForce(frontendId: string, poolId: string): TokenSizes | undefined {
    const sizes = this.#inForce.get(rowKey({ frontendId, poolId }));
    if (sizes === undefined) return undefined;
    const { promptTokens, uncachedPromptTokens, outputTokens } = sizes;
    return { promptTokens, uncachedPromptTokens, outputTokens };
  }

  /** Undefined before enough was counted. */
  view(frontendId: string, poolId: string): RequestSizeView | undefined {
    return this.#sums.get(rowKey({ frontendId, poolId }))?.view;
  }

  /** What is in force, to go on with after a restart. */
  get measured(): readonly MeasuredSizes[] {
    return [...this.#inForce.values()];
  }

  /** Goes on with what was in force before a restart. */
  resume(measured: readonly MeasuredSizes[]): void {
    for (const sizes of measured) this.#inForce.set(rowKey(sizes), sizes);
  }

  /** Forgets all others. */
  keep(rows: readonly { readonly frontendId: string; readonly poolId: string }[]): void {
    const keys = new Set(rows.map(rowKey));
    for (const known of [this.#sums, this.#inForce]) {
      for (const key of known.keys()) if (!keys.has(key)) known.delete(key);
    }
  }

  save() {
    return { sums: saveEntries(this.#sums), inForce: [...this.#inForce] };
  }

  restore({ sums, inForce }: SavedRequestSizes): void {
    restoreEntries(this.#sums, sums, () => new Sums(0));
    refill(this.#inForce, inForce);
  }
}

type SavedRequestSizes = ReturnType<RequestSizes['save']>;

/** Where most answers do not tell what was in a cache, the configured share of the prompt was not. */
function believed(view: RequestSizeView, configured: TokenSizes): TokenSizes {
  const promptTokens = bounded(view.promptTokens, configured.promptTokens);
  const uncached = view.uncachedPromptTokens ?? promptTokens * uncachedShare(configured);
  return {
    promptTokens,
    uncachedPromptTokens: Math.min(promptTokens, bounded(uncached, configured.uncachedPromptTokens)),
    outputTokens: Math.max(1, bounded(view.outputTokens, configured.outputTokens)),
  };
}

function uncachedShare({ promptTokens, uncachedPromptTokens }: TokenSizes): number {
  return promptTokens > 0 ? Math.min(1, uncachedPromptTokens / promptTokens) : 1;
}

function bounded(tokens: number, configured: number): number {
  const most = Math.min(MOST_TOKENS, MOST_FACTOR * Math.max(1, configured));
  return Number(Math.max(configured / MOST_FACTOR, Math.min(most, tokens)).toPrecision(DIGITS));
}

function isOther(sizes: TokenSizes, before: TokenSizes, band: number): boolean {
  const differs = (name: keyof TokenSizes) => Math.abs(sizes[name] - before[name]) > band * before[name];
  return differs('promptTokens') || differs('uncachedPromptTokens') || differs('outputTokens');
}

/** What is counted of pools, named as in their usage. */
export const POOL_SIZE_COUNTS = [
  'promptCount',
  'promptTokens',
  'outputCount',
  'outputTokens',
  'cachedTokens',
  'cachedOfTokens',
] as const;
const NAMES = ['told', ...POOL_SIZE_COUNTS] as const;

export function noSizeCounts(): { -readonly [Name in keyof SizeCounts]: number } {
  return {
    told: 0,
    promptCount: 0,
    promptTokens: 0,
    outputCount: 0,
    outputTokens: 0,
    cachedTokens: 0,
    cachedOfTokens: 0,
  };
}

/** Counts of some time; what was cached is of usual times only. */
class Sums {
  #atMs: number;
  /** Since when there are enough answers; undefined while there are not. */
  #enoughSinceMs: number | undefined;
  readonly #sums = noSizeCounts();
  #toldMs: number;
  /** Prompt tokens of the answers that tell what was cached, at any time. */
  #cacheTold = 0;

  constructor(nowMs: number) {
    this.#atMs = nowMs;
    this.#toldMs = nowMs;
  }

  add(counts: SizeCounts, isUsual: boolean, nowMs: number): void {
    const keep = Math.exp(-Math.max(0, nowMs - this.#atMs) / MEMORY_MS);
    this.#atMs = Math.max(this.#atMs, nowMs);
    if (counts.told > 0) this.#toldMs = this.#atMs;
    this.#cacheTold = keep * this.#cacheTold + counts.cachedOfTokens;
    for (const name of NAMES) {
      const isLeftOut = !isUsual && (name === 'cachedTokens' || name === 'cachedOfTokens');
      this.#sums[name] = keep * this.#sums[name] + (isLeftOut ? 0 : counts[name]);
    }
    const { told, promptCount, outputCount } = this.#sums;
    const isEnough = Math.min(told, promptCount, outputCount) >= LEAST_ANSWERS;
    this.#enoughSinceMs = isEnough ? (this.#enoughSinceMs ?? this.#atMs) : undefined;
  }

  /** Whether what is cached gets known, if it is not yet. */
  get tellCache(): boolean {
    return this.#cacheTold > LEAST_TOLD * this.#sums.promptTokens;
  }

  get view(): RequestSizeView | undefined {
    const { told, promptCount, promptTokens, outputCount, outputTokens, cachedTokens, cachedOfTokens } =
      this.#sums;
    if (this.#enoughSinceMs === undefined || this.#atMs - this.#enoughSinceMs < LEAST_MS) return undefined;
    if (told < LEAST_TOLD * outputCount) return undefined;
    const prompt = promptTokens / promptCount;
    const isCacheTold = cachedOfTokens > 0 && cachedOfTokens >= LEAST_ANSWERS * prompt;
    return {
      promptTokens: prompt,
      uncachedPromptTokens: isCacheTold ? prompt * (1 - Math.min(1, cachedTokens / cachedOfTokens)) : null,
      outputTokens: outputTokens / outputCount,
      answers: told,
      atMs: this.#toldMs,
    };
  }

  save() {
    return {
      atMs: this.#atMs,
      enoughSinceMs: this.#enoughSinceMs,
      sums: { ...this.#sums },
      toldMs: this.#toldMs,
      cacheTold: this.#cacheTold,
    };
  }

  restore(saved: ReturnType<Sums['save']>): void {
    this.#atMs = saved.atMs;
    this.#enoughSinceMs = saved.enoughSinceMs;
    Object.assign(this.#sums, saved.sums);
    this.#toldMs = saved.toldMs;
    this.#cacheTold = saved.cacheTold;
  }
}
