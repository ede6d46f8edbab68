import { WardropError } from '../../errors.js';

/** A query parameter that was given once. */
export function text(parameter: unknown): string | undefined {
  return typeof parameter === 'string' ? parameter : undefined;
}

/**
 * The number of a plan; undefined when there is none.
 *
 * @throws {WardropError} WARDROP_QUERY_INVALID
 */
export function planNumber(since: string | undefined): number | undefined {
  if (since === undefined || /^\d{1,15}$/.test(since)) return since === undefined ? undefined : Number(since);
  throw new WardropError(
    'WARDROP_QUERY_INVALID',
    `since=${since}: expected the number of a plan, such as 12`,
  );
}
