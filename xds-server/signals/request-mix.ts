import type { ExpectedDemand } from '../config/config.js';
import type { Fleet } from '../fleet/fleet.js';
import type { TokenMix } from '../profiles/profile.js';

/** Lets rows count that no rate is expected of, if there are no others. */
const LEAST_WEIGHT = 1e-9;

/** Mean sizes of the requests that engines may get, by the demand that is expected of their pools. By engine id. */
export function mixesOf(
  { engines, pools }: Pick<Fleet, 'engines' | 'pools'>,
  expected: readonly ExpectedDemand[],
): ReadonlyMap<string, TokenMix> {
  const poolIds = new Map<string, string[]>(engines.map(({ id }) => [id, []]));
  for (const { id, engineIds } of pools) for (const engineId of engineIds) poolIds.get(engineId)?.push(id);
  // Engines of the same pools get the same.
  const known = new Map<string, TokenMix>();
  return new Map(
    engines.map(({ id }) => {
      const own = poolIds.get(id)!;
      const key = own.join(' ');
      const mix = known.get(key) ?? mixOf(new Set(own), expected);
      known.set(key, mix);
      return [id, mix];
    }),
  );
}

function mixOf(poolIds: ReadonlySet<string>, expected: readonly ExpectedDemand[]): TokenMix {
  let total = 0;
  let uncachedPromptTokens = 0;
  let outputTokens = 0;
  for (const row of expected) {
    if (!poolIds.has(row.poolId)) continue;
    const weight = row.requestsPerSecond + LEAST_WEIGHT;
    total += weight;
    uncachedPromptTokens += weight * row.uncachedPromptTokens;
    outputTokens += weight * row.outputTokens;
  }
  // An engine that no pool leads to.
  if (total === 0) return { uncachedPromptTokens: 0, outputTokens: 1 };
  return { uncachedPromptTokens: uncachedPromptTokens / total, outputTokens: outputTokens / total };
}
