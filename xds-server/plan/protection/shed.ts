import type { ShedFraction } from '../../optimizer/solution.js';
import type { ShedEntry } from '../plan.js';

/** Shed fractions are multiples of this, rounded up, so that a plan never serves more than its solution. */
const SHED_STEP = 0.005;
/** A fraction in force stays while it refuses enough and at most this much too much. */
const SHED_DEAD_BAND = 0.02;
/** Smaller fractions are not worth refusing anybody: the hard limit is known no better than that. */
const SHED_LEAST = 0.0005;

/** Shed fractions to publish, highest priority first, only those above 0. What the solution does not shed ends at once. */
export function shedEntries(solution: readonly ShedFraction[], previous: readonly ShedEntry[]): ShedEntry[] {
  return solution
    .filter(({ fraction }) => fraction >= SHED_LEAST)
    .map(({ priority, fraction }) => {
      const inForce = previous.find((entry) => entry.priority === priority)?.fraction ?? 0;
      const stays = inForce >= fraction && inForce <= fraction + SHED_DEAD_BAND;
      const steps = Math.ceil(fraction / SHED_STEP - 1e-9);
      return { priority, fraction: stays ? inForce : Math.min(1, Number((steps * SHED_STEP).toFixed(6))) };
    })
    .sort((a, b) => b.priority - a.priority);
}
