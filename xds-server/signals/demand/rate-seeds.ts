import type { ClassRate } from '../../fleet/operations.js';
import { classId, prioritiesOf } from '../../fleet/priority-class.js';
import type { SignalsConfig } from '../known-config.js';
import { SETTLED_EVIDENCE } from './demand-band.js';
import type { RateSeed } from './demand-estimator.js';

/** What is believed of every class before anything is measured. */
export function rateSeeds(
  { expectedDemand, fleet }: SignalsConfig,
  held: readonly ClassRate[],
): readonly RateSeed[] {
  const priorities = prioritiesOf(fleet);
  const heldRates = byClass(held, priorities);
  const others = priorities.filter((priority) => priority !== 0);
  return expectedDemand.flatMap(({ frontendId, poolId, requestsPerSecond }): RateSeed[] => {
    const seed = (expectedRps: number, priority?: number): RateSeed => {
      const row = { frontendId, poolId, ...(priority !== undefined && { priority }) };
      const rate = heldRates.get(classKeyOf(row));
      if (rate !== undefined) return { ...row, ...rate, evidence: SETTLED_EVIDENCE, source: 'held' };
      return {
        ...row,
        requestsPerSecond: expectedRps,
        evidence: Number.POSITIVE_INFINITY,
        source: 'expected',
      };
    };
    // Nobody can say in advance how many requests are of other classes.
    return [seed(requestsPerSecond), ...others.map((priority) => seed(0, priority))];
  });
}

/** Requests of classes that are no more are of none. */
function byClass(held: readonly ClassRate[], priorities: readonly number[]): ReadonlyMap<string, ClassRate> {
  const rates = new Map<string, ClassRate>();
  for (const { priority = 0, requestsPerSecond, ...row } of held) {
    const rate = priority !== 0 && priorities.includes(priority) ? { ...row, priority } : row;
    const key = classKeyOf(rate);
    const before = rates.get(key)?.requestsPerSecond ?? 0;
    rates.set(key, { ...rate, requestsPerSecond: before + requestsPerSecond });
  }
  return rates;
}

function classKeyOf({ frontendId, poolId, priority = 0 }: Omit<ClassRate, 'requestsPerSecond'>): string {
  return `${frontendId} ${classId(poolId, priority)}`;
}
