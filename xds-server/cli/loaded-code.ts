import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { WardropError } from '../errors.js';

/**
 * The code of a thread, as it was when the process started. Threads load theirs later, and again after a failure: by
 * then another version may be installed, whose messages mean something else.
 */
export class LoadedCode {
  readonly #entry: URL;
  readonly #digest: string;

  /** @param entry the compiled module that the thread runs */
  constructor(entry: URL) {
    this.#entry = entry;
    this.#digest = codeDigest(entry);
  }

  /** @throws {WardropError} WARDROP_PROGRAM_CHANGED when a thread would not get the same */
  check(): void {
    if (codeDigest(this.#entry) === this.#digest) return;
    throw new WardropError(
      'WARDROP_PROGRAM_CHANGED',
      'the files of the program are others than when this control server started, so it cannot start its solver; restart it',
    );
  }
}

/** Digest of a module and of all that it imports by a relative path; what is missing has one, too. */
function codeDigest(entry: URL): string {
  const hash = createHash('sha256');
  const found = new Set([entry.href]);
  for (const url of found) {
    let code = '';
    try {
      code = readFileSync(new URL(url), 'utf8');
    } catch {
      // A build may be under way.
    }
    hash.update(`${url}\0${code}\0`);
    for (const [, path] of code.matchAll(/\bfrom '(\.[^']+)'/g)) found.add(new URL(path!, url).href);
  }
  return hash.digest('hex');
}
