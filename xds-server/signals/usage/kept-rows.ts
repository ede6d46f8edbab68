/** Rows that are told in turns are all told within a few minutes. */
const KEEP_MS = 600_000;

/** The latest of each row; those that nobody has told of for `KEEP_MS` to twice that are forgotten. */
export class KeptRows<T> {
  #sinceMs = 0;
  #recent = new Map<string, T>();
  #older = new Map<string, T>();

  get(key: string): T | undefined {
    return this.#recent.get(key) ?? this.#older.get(key);
  }

  set(key: string, row: T, nowMs: number): void {
    if (nowMs - this.#sinceMs > KEEP_MS) {
      this.#sinceMs = nowMs;
      this.#older = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(key, row);
    this.#older.delete(key);
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
