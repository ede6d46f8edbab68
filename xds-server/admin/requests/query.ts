import { isPlanName } from '../../control/planning/plan-history.js';
import { WardropError } from '../../errors.js';

/** A query parameter that was given once. */
export function text(parameter: unknown): string | undefined {
  return typeof parameter === 'string' ? parameter : undefined;
}

/**
 * How a plan is named, by its number or its id; undefined when it is not.
 *
 * @throws {WardropError} WARDROP_QUERY_INVALID
 */
export function planName(parameter: string, name: string | undefined): string | undefined {
  if (name === undefined || isPlanName(name)) return name;
  throw new WardropError(
    'WARDROP_QUERY_INVALID',
    `${parameter}=${name}: expected the number or the id of a plan, such as 12 or 5f0e9c3a1b2d4c6e`,
  );
}
