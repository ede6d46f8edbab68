import { compare, sum } from '../../collections.js';
import type { Demand } from '../../fleet/fleet-state.js';
import type { TokenMix } from '../../profiles/profile.js';

/** Mean request of some demands. */
export interface MeanRequest extends TokenMix {
  /**
   * Prompt tokens per request per second of flow that would have to be computed anew if the flow moved, times the mean
   * gap between turns: by Little's law, follow-up rate times gap is the number of conversations that are alive, and each
   * leaves its cached tokens behind.
   */
  readonly cachedTokenSeconds: number;
}

const NO_REQUEST: MeanRequest = { uncachedPromptTokens: 0, outputTokens: 1, cachedTokenSeconds: 0 };

/**
 * Mean over these demands, weighted by their rates, or by `rates` (same order). When all rates are 0, each counts alike.
 * Summed in an order that does not depend on priorities, so that these change no bit of the result.
 */
export function meanMix(demands: readonly Demand[], rates?: readonly number[]): MeanRequest {
  if (demands.length === 0) return NO_REQUEST;
  if (demands.length === 1) return requestOf(demands[0]!);
  const weighed: WeighedDemand[] = [];
  for (let at = 0; at < demands.length; at++) {
    weighed.push({ demand: demands[at]!, rate: rates ? rates[at]! : demands[at]!.requestsPerSecond });
  }
  weighed.sort(byWeight);
  let total = 0;
  for (const { rate } of weighed) total += rate;
  const mean = { uncachedPromptTokens: 0, outputTokens: 0, cachedTokenSeconds: 0 };
  for (const { demand, rate } of weighed) {
    const share = total > 0 ? rate / total : 1 / weighed.length;
    mean.uncachedPromptTokens += demand.uncachedPromptTokens * share;
    mean.outputTokens += demand.outputTokens * share;
    mean.cachedTokenSeconds += cachedTokenSeconds(demand) * share;
  }
  return mean;
}

interface WeighedDemand {
  readonly demand: Demand;
  readonly rate: number;
}

/** Demand of one pool in sum. */
export interface PooledDemand {
  readonly mean: TokenMix;
  readonly requestsPerSecond: number;
  /** Number of demands. */
  readonly size: number;
}

export function pooledDemand(demands: readonly Demand[]): PooledDemand {
  return { mean: meanMix(demands), requestsPerSecond: totalRps(demands), size: demands.length };
}

/** Mean over all demand of some pools, by the same rule as `meanMix`. */
export function meanOfPools(pools: readonly PooledDemand[]): TokenMix {
  let total = 0;
  let size = 0;
  for (const pool of pools) {
    total += pool.requestsPerSecond;
    size += pool.size;
  }
  if (size === 0) return NO_REQUEST;
  let uncachedPromptTokens = 0;
  let outputTokens = 0;
  for (const { mean, requestsPerSecond, size: own } of pools) {
    const share = total > 0 ? requestsPerSecond / total : own / size;
    uncachedPromptTokens += mean.uncachedPromptTokens * share;
    outputTokens += mean.outputTokens * share;
  }
  return { uncachedPromptTokens, outputTokens };
}

function requestOf(demand: Demand): MeanRequest {
  const { uncachedPromptTokens, outputTokens } = demand;
  return { uncachedPromptTokens, outputTokens, cachedTokenSeconds: cachedTokenSeconds(demand) };
}

export function poolOf({ poolId }: Demand): string {
  return poolId;
}

/** Offered requests per second of these demands, summed in an order that does not depend on priorities. */
export function totalRps(demands: readonly Demand[]): number {
  if (demands.length === 1) return demands[0]!.requestsPerSecond;
  const rates: number[] = [];
  for (const { requestsPerSecond } of demands) rates.push(requestsPerSecond);
  return totalOf(rates);
}

/** The same of rates. */
export function totalOf(rates: readonly number[]): number {
  return rates.length === 1 ? rates[0]! : sum([...rates].sort(compare));
}

/**
 * Follow-up rate x gap x cached tokens of a follow-up, for one request per second. First turns have nothing cached, so
 * all cached tokens belong to the follow-ups and the follow-up share cancels out.
 */
function cachedTokenSeconds(demand: Demand): number {
  if (demand.followUpShare === 0) return 0;
  return Math.max(0, demand.promptTokens - demand.uncachedPromptTokens) * demand.turnGapSeconds;
}

function byWeight(a: WeighedDemand, b: WeighedDemand): number {
  return compare(a.rate, b.rate) || byContent(a.demand, b.demand);
}

function byContent(a: Demand, b: Demand): number {
  return (
    compare(a.uncachedPromptTokens, b.uncachedPromptTokens) ||
    compare(a.promptTokens, b.promptTokens) ||
    compare(a.outputTokens, b.outputTokens) ||
    compare(a.followUpShare, b.followUpShare) ||
    compare(a.turnGapSeconds, b.turnGapSeconds)
  );
}
