import { isWildcard } from '../../fleet/address.js';
import type { Path } from '../problem.js';
import { type Draft, type Findings, HOW_TO_LISTEN } from './findings.js';

export function checkFrontends(config: Draft, found: Findings): void {
  const seen = new Map<string, Path>();
  for (const [index, frontend] of (config.frontends ?? []).entries()) {
    const path = ['frontends', index, 'listen'];
    const address = found.address(path, frontend?.listen, HOW_TO_LISTEN);
    // Frontends on different machines may all listen on every interface.
    if (address !== undefined && !isWildcard(address)) {
      found.once(seen, address, path, `the listening address ${address}`);
    }
  }
}
