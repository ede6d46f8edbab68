/*
 * What goes between the caller's thread and the solver's. Objects would be copied one by one, names and all, which at a
 * thousand engines takes as long as a quarter of a solve; numbers in typed arrays are copied at once, and each name once.
 */

/** Names in the order in which they first came, each once. */
export class Names {
  readonly list: string[] = [];
  readonly #indices = new Map<string, number>();

  indexOf(name: string): number {
    const known = this.#indices.get(name);
    if (known !== undefined) return known;
    this.#indices.set(name, this.list.length);
    return this.list.push(name) - 1;
  }
}

/** Lists of names, each with a number, one after the other. */
export interface PackedLists {
  /** Where each list ends. */
  readonly ends: Int32Array;
  /** Indices of names. */
  readonly names: Int32Array;
  readonly values: Float64Array;
}

export class ListPacker {
  readonly #known: Names;
  readonly #ends: number[] = [];
  readonly #names: number[] = [];
  readonly #values: number[] = [];

  constructor(known: Names) {
    this.#known = known;
  }

  add(name: string, value: number): void {
    this.#names.push(this.#known.indexOf(name));
    this.#values.push(value);
  }

  endList(): void {
    this.#ends.push(this.#names.length);
  }

  finish(): PackedLists {
    return {
      ends: new Int32Array(this.#ends),
      names: new Int32Array(this.#names),
      values: new Float64Array(this.#values),
    };
  }
}

export function startOf({ ends }: PackedLists, list: number): number {
  return list === 0 ? 0 : ends[list - 1]!;
}
