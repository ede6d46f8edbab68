import type { ShedFraction } from '../../optimizer/solution.js';
import type { ShedEntry } from '../plan.js';

/**
 * Shed fractions are multiples of this, rounded up, so that a plan never serves more than its solution; of a tenth of it, and
 * so on, where that would be more than a fiftieth of what is served: one engine of a hundred can serve 1 % of the demand for all,
 * and must not be left without any.
 */
const SHED_STEP = 0.005;
const STEP_OF_SERVED = 0.02;
/** A fraction in force stays while it refuses enough and at most this much too much, or this share of what is served. */
const SHED_DEAD_BAND = 0.02;
const DEAD_BAND_OF_SERVED = 0.04;
/** Filters cannot tell finer steps apart: they shed by 32 bits of a hash. */
const MOST_STEPS = 2e8;
/** Smaller fractions are not worth refusing anybody: the hard limit is known no better than that. */
const SHED_LEAST = 0.0005;

/** Shed fractions to publish, highest priority first, only those above 0. What the solution does not shed ends at once. */
export function shedEntries(solution: readonly ShedFraction[], previous: readonly ShedEntry[]): ShedEntry[] {
  return solution
    .filter(({ fraction }) => fraction >= SHED_LEAST)
    .map(({ priority, fraction }) => {
      const inForce = previous.find((entry) => entry.priority === priority)?.fraction ?? 0;
      const deadBand = Math.min(SHED_DEAD_BAND, DEAD_BAND_OF_SERVED * (1 - fraction));
      const stays = inForce >= fraction && inForce <= fraction + deadBand;
      return { priority, fraction: stays ? inForce : roundedUp(fraction) };
    })
    .sort((a, b) => b.priority - a.priority);
}

function roundedUp(fraction: number): number {
  let stepsOfOne = 1 / SHED_STEP;
  while (1 / stepsOfOne > STEP_OF_SERVED * (1 - fraction) && stepsOfOne < MOST_STEPS) stepsOfOne *= 10;
  return Math.min(1, Math.ceil(fraction * stepsOfOne - 1e-9) / stepsOfOne);
}
