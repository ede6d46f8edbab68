import type { Path } from '../../xds-server/config/problem.js';

/** Hears of everything that is wrong with a file. */
export interface Problems {
  add(path: Path, message: string, hint?: string): void;
  /** That a name is none of the known ones. */
  unknown(path: Path, what: string, name: string, known: readonly string[]): void;
}
