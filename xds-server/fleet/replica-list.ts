import { parseAddress } from './address.js';
import type { Address } from './fleet.js';

/**
 * Reads a list of replicas: one `ip:port` a line; `#` starts a comment.
 *
 * @throws {Error} with file and number of the first line that is none
 */
export function parseReplicaList(text: string, file: string): readonly Address[] {
  return text.split('\n').flatMap((line, at) => {
    const entry = line.replace(/#.*/, '').trim();
    if (entry === '') return [];
    const parsed = parseAddress(entry);
    if ('error' in parsed) throw new Error(`${file}:${at + 1}: ${parsed.error}`);
    return [parsed.address];
  });
}
