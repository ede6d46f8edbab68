import type { ExpectedDemand } from '../config/config.js';
import type { Engine, Fleet } from '../fleet/fleet.js';
import type { TokenMix } from '../profiles/profile.js';

/** Lets rows count that no rate is expected of, if there are no others. */
const LEAST_WEIGHT = 1e-9;

/** Mean size of the requests that an engine may get, by the demand that is expected of its pools. */
export function mixOf(engine: Engine, fleet: Fleet, expected: readonly ExpectedDemand[]): TokenMix {
  const pools = new Set(
    fleet.pools.filter(({ engineIds }) => engineIds.includes(engine.id)).map(({ id }) => id),
  );
  let total = 0;
  let uncachedPromptTokens = 0;
  let outputTokens = 0;
  for (const row of expected) {
    if (!pools.has(row.poolId)) continue;
    const weight = row.requestsPerSecond + LEAST_WEIGHT;
    total += weight;
    uncachedPromptTokens += weight * row.uncachedPromptTokens;
    outputTokens += weight * row.outputTokens;
  }
  // An engine that no pool leads to.
  if (total === 0) return { uncachedPromptTokens: 0, outputTokens: 1 };
  return { uncachedPromptTokens: uncachedPromptTokens / total, outputTokens: outputTokens / total };
}
