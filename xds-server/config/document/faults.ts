import { formatPath, type Path } from '../problem.js';

/** Stands for the key that an unknown one may have been meant for. */
export const ANY_KEY = '*';

/**
 * Where the schema found something wrong. What seems to be missing or unknown elsewhere may only seem so because of
 * that, and told as well, it would send the reader to the wrong place.
 */
export class Faults {
  readonly #paths: readonly Path[];
  readonly #places: ReadonlySet<string>;

  /** @param paths of what is wrong; of the key that was meant where one is misspelt, with `ANY_KEY` where none is close */
  constructor(paths: readonly Path[]) {
    this.#paths = paths;
    this.#places = new Set(paths.map(formatPath));
  }

  /** Whether one is right there. */
  has(path: Path): boolean {
    return this.#places.has(formatPath(path));
  }

  /** Whether one of these keys may have been meant in the mapping at `path`. */
  excuse(path: Path, keys: readonly string[]): boolean {
    return [ANY_KEY, ...keys].some((key) => this.has([...path, key]));
  }

  /** Whether a list, or a mapping of names, may hold more than can be read: entries, or these keys of entries. */
  obscure(list: string, keys: readonly string[] = []): boolean {
    return this.#paths.some(
      (path) => path[0] === list && (path.length <= 2 || keys.includes(String(path[2]))),
    );
  }
}
