import type { Pool } from '../../fleet/fleet.js';
import type { LastResorts } from '../../fleet/last-resort.js';

/** Why an engine is in service: as usual, though operators drained it, or though it is lost by all that is seen. */
export type Fitness = 'fit' | 'drained' | 'lost';

const RANKS: Readonly<Record<Fitness, number>> = { fit: 0, drained: 1, lost: 2 };

/**
 * An engine that is kept in service for a pool that has nobody else is no supply of pools that have somebody fitter.
 *
 * @param fitness of engines with capacity, by id
 */
export function lastResorts(pools: readonly Pool[], fitness: ReadonlyMap<string, Fitness>): LastResorts {
  const found = new Map<string, readonly string[]>();
  if ([...fitness.values()].every((each) => each === 'fit')) return found;
  const rankOf = (id: string) => RANKS[fitness.get(id)!];
  for (const { id, engineIds } of pools) {
    const able = engineIds.filter((engineId) => fitness.has(engineId));
    const best = Math.min(...able.map(rankOf));
    const others = able.filter((engineId) => rankOf(engineId) > best);
    if (others.length > 0) found.set(id, others);
  }
  return found;
}

/** Engines that only one of the two names, or names for other pools. */
export function changedResorts(before: LastResorts, now: LastResorts): ReadonlySet<string> {
  const poolIds = [...new Set([...before.keys(), ...now.keys()])];
  return new Set(
    poolIds.flatMap((id) => {
      const [old = [], current = []] = [before.get(id), now.get(id)];
      return [...old, ...current].filter((engineId) => old.includes(engineId) !== current.includes(engineId));
    }),
  );
}
