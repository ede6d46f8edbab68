import type { Fleet, Pool } from './fleet.js';

/**
 * By pool id, eligible engines that are in service only because another pool has nobody else, sorted; pools without any are
 * left out.
 */
export type LastResorts = ReadonlyMap<string, readonly string[]>;

type Eligible = Pick<Pool, 'engineIds' | 'lastResortIds'>;

/** All engines that may serve a pool, sorted. */
export function eligibleIds({ engineIds, lastResortIds }: Eligible): readonly string[] {
  return lastResortIds === undefined ? engineIds : [...engineIds, ...lastResortIds].sort();
}

/** A fleet without engines of the last resort, or with those of these pools in place of its own. No pool is left empty. */
export function withoutLastResorts(fleet: Fleet, resorts: LastResorts): Fleet {
  const isAsConfigured = fleet.pools.every(({ lastResortIds }) => lastResortIds === undefined);
  if (resorts.size === 0 && isAsConfigured) return fleet;
  const pools = fleet.pools.map(({ lastResortIds, ...pool }): Pool => {
    const eligible = eligibleIds({ ...pool, ...(lastResortIds && { lastResortIds }) });
    const left = resorts.get(pool.id) ?? [];
    const engineIds = eligible.filter((id) => !left.includes(id));
    const isNarrower = engineIds.length > 0 && engineIds.length < eligible.length;
    if (!isNarrower) return { ...pool, engineIds: eligible };
    return { ...pool, engineIds, lastResortIds: eligible.filter((id) => left.includes(id)) };
  });
  return { ...fleet, pools };
}

export function lastResortsOf({ pools }: Fleet): LastResorts {
  return new Map(
    pools.flatMap(({ id, lastResortIds }) =>
      lastResortIds === undefined ? [] : [[id, lastResortIds] as const],
    ),
  );
}
