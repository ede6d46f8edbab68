import { WardropError } from '../errors.js';

/** Faults that an alarm quotes; one mistake can make thousands. */
const MOST_QUOTED = 5;

/**
 * Refuses what failed its checks, and quotes the first faults.
 *
 * @throws {WardropError} WARDROP_PLAN_REJECTED unless there are none
 */
export function refuseFaults(what: string, faults: readonly string[]): void {
  if (faults.length === 0) return;
  const more = faults.length > MOST_QUOTED ? `; and ${faults.length - MOST_QUOTED} more` : '';
  const reasons = faults.slice(0, MOST_QUOTED).join('; ');
  throw new WardropError('WARDROP_PLAN_REJECTED', `${what} failed its checks: ${reasons}${more}`);
}
