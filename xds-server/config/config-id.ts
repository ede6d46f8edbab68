import { createHash } from 'node:crypto';
import type { Config } from './config.js';

/** Names what a configuration means to a fleet; the addresses and files of the server itself are left out. */
export function configId({ shown: { server: _server, ...shared } }: Pick<Config, 'shown'>): string {
  return createHash('sha256').update(JSON.stringify(shared)).digest('hex').slice(0, 16);
}
