import { sum } from '../../collections.js';
import type { WeightBound } from '../../fleet/policy.js';

/** Operator's bounds on one row, by engine id; only engines that can serve the row. */
export type RowBounds = ReadonlyMap<string, { readonly min: number; readonly max: number }>;

/**
 * The bounds that a row can follow. Bounds on engines that cannot serve it are dropped, minima that add up to more than
 * everything are scaled down, and maxima that leave no room for everything are dropped; each with a warning.
 */
export function followable(
  bounds: readonly WeightBound[],
  engineIds: readonly string[],
  warnings: string[],
): RowBounds {
  const usable = new Set(engineIds);
  const followed = new Map<string, { min: number; max: number }>();
  for (const { frontendId, poolId, engineId, min, max } of bounds) {
    if (usable.has(engineId)) {
      followed.set(engineId, { min, max });
    } else if (min > 0) {
      warnings.push(
        `bound of ${frontendId} and ${poolId} on ${engineId} is not followed: the engine cannot serve them now`,
      );
    }
  }
  if (followed.size === 0) return followed;
  const { frontendId, poolId } = bounds[0]!;
  const minima = sum([...followed.values()].map(({ min }) => min));
  if (minima > 1) {
    warnings.push(`minima of ${frontendId} and ${poolId} add up to ${minima}; they are scaled down to 1`);
    for (const [id, { min, max }] of followed) followed.set(id, { min: min / minima, max });
  }
  const maxima = sum(engineIds.map((id) => followed.get(id)?.max ?? 1));
  if (maxima < 1) {
    warnings.push(
      `maxima of ${frontendId} and ${poolId} leave ${1 - maxima} without an engine; they are not followed`,
    );
    for (const [id, { min }] of followed) followed.set(id, { min, max: 1 });
  }
  return followed;
}
