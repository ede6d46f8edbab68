import { WardropError } from '../errors.js';
import { knownId } from '../fleet/known-id.js';
import type { Snapshot } from '../sync/snapshot-board.js';
import type { ShownServer } from './shown-server.js';

/**
 * The newest snapshot of a frontend, whose id comes from outside.
 *
 * @throws {WardropError} WARDROP_QUERY_INVALID for an unknown frontend, WARDROP_NOT_READY before the first plan
 */
export function issuedSnapshot(
  { board, config }: Pick<ShownServer, 'board' | 'config'>,
  frontend: string | undefined,
): Snapshot {
  const snapshot = board.current(knownId('frontend', frontend, config.fleet.frontends));
  if (snapshot === undefined) throw new WardropError('WARDROP_NOT_READY', 'no plan is published yet');
  return snapshot;
}
