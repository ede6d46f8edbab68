import { WardropError } from '../errors.js';
import type { Fleet } from './fleet.js';

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

/**
 * The id of a pool that somebody named, by its id or by an alias of a model: that is its pool of requests without needs.
 *
 * @throws {WardropError} WARDROP_QUERY_INVALID, with the known ids
 */
export function knownPoolId(name: string | undefined, { pools, aliases = [] }: Fleet): string {
  const isPool = pools.some(({ id }) => id === name);
  const model = isPool ? undefined : aliases.find((alias) => alias.name === name)?.model;
  return knownId('pool', model ?? name, pools);
}
