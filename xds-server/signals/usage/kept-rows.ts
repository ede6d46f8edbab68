/** Rows that are told in turns are all told within this time. */
export const KEEP_MS = 180_000;

/** The latest of each row; those that nobody has told of for `KEEP_MS` to twice that are forgotten. */
export class KeptRows<T> {
  #sinceMs = 0;
  #recent = new Map<string, T>();
  #older = new Map<string, T>();

  get size(): number {
    return this.#recent.size + this.#older.size;
  }

  get(key: string): T | undefined {
    return this.#recent.get(key) ?? this.#older.get(key);
  }

  set(key: string, row: T): void {
    this.#recent.set(key, row);
    this.#older.delete(key);
  }

  /** Forgets rows that nobody has told of for so long, whether others were told meanwhile or not. */
  age(nowMs: number): void {
    const ageMs = nowMs - this.#sinceMs;
    if (ageMs <= KEEP_MS) return;
    this.#sinceMs = nowMs;
    this.#older = ageMs > 2 * KEEP_MS ? new Map() : this.#recent;
    this.#recent = new Map();
  }

  /** Those that will be forgotten first come first. */
  values(): T[] {
    return [...this.#older.values(), ...this.#recent.values()];
  }

  /** All but the rows, which `values` tells. */
  save() {
    return { sinceMs: this.#sinceMs, older: this.#older.size };
  }

  /** After all rows have been set, in the order of `values`. */
  restore({ sinceMs, older }: { readonly sinceMs: number; readonly older: number }): void {
    const rows = [...this.#older, ...this.#recent];
    this.#sinceMs = sinceMs;
    this.#older = new Map(rows.slice(0, older));
    this.#recent = new Map(rows.slice(older));
  }
}
