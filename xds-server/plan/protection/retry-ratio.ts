import type { RetryPolicy } from '../../fleet/policy.js';
import type { EngineLoad } from '../../optimizer/solution.js';

/** Up to this share of the hard utilisation limit a pool earns the highest ratio of retries. */
export const RETRY_FULL_BELOW = 0.75;
/** From this share of the hard utilisation limit on a pool earns the lowest. */
export const RETRY_LEAST_ABOVE = 0.95;
/** Ratios are multiples of this, so that a small change of load changes nothing. */
export const RETRY_STEP = 0.02;

/**
 * Retries that each first attempt of a pool earns, 0..1. Falls linearly from `max` to `min` between the two
 * breakpoints: with the default of 0.2, a pool that uses up all its retries at any load below the second breakpoint
 * stays below that breakpoint. Rounded down to a multiple of `RETRY_STEP`; a ratio in force stays while the exact one
 * is not below it and less than two steps above.
 */
export function retryRatio(
  utilization: number,
  maxUtilization: number,
  policy: RetryPolicy,
  previous: number | undefined,
): number {
  const from = RETRY_FULL_BELOW * maxUtilization;
  const to = RETRY_LEAST_ABOVE * maxUtilization;
  if (utilization >= to) return policy.min;
  const share = Math.min(1, (to - utilization) / (to - from));
  const exact = policy.min + (policy.max - policy.min) * share;
  const inForce = previous !== undefined && previous >= policy.min && previous <= policy.max;
  if (inForce && previous <= exact && exact < previous + 2 * RETRY_STEP) return previous;
  const stepped = Math.floor(exact / RETRY_STEP + 1e-9) * RETRY_STEP;
  return Math.min(policy.max, Math.max(policy.min, Number(stepped.toFixed(6))));
}

/** Work over effective capacity of these engines together; Infinity when they have no capacity. */
export function pooledUtilization(engines: readonly EngineLoad[]): number {
  const capacity = engines.reduce((sum, engine) => sum + engine.effectiveCapacity, 0);
  const work = engines.reduce((sum, engine) => sum + engine.rho * engine.effectiveCapacity, 0);
  return capacity > 0 ? work / capacity : Number.POSITIVE_INFINITY;
}
