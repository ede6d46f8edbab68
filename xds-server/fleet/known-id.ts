import { WardropError } from '../errors.js';

/**
 * An id that somebody named, once it is sure to be one of these.
 *
 * @param kind what it is of, such as `engine`
 * @throws {WardropError} WARDROP_QUERY_INVALID, with the known ids
 */
export function knownId(
  kind: string,
  id: string | undefined,
  items: readonly { readonly id: string }[],
): string {
  if (id !== undefined && items.some((item) => item.id === id)) return id;
  const what = id === undefined ? `say which ${kind}` : `unknown ${kind} ${JSON.stringify(id)}`;
  const known = items.map((item) => item.id).join(', ');
  throw new WardropError('WARDROP_QUERY_INVALID', `${what}; known: ${known}`);
}
