const MEMORY_SECONDS = 60;

/** What one counter grows by for each that another grows by; they may start again from zero. An exponential memory. */
export class GrowthRatio {
  #last: { readonly part: number; readonly whole: number; readonly atMs: number } | undefined;
  #part = 0;
  #whole = 0;

  /** Undefined before anything was counted. */
  get value(): number | undefined {
    return this.#whole > 0 ? this.#part / this.#whole : undefined;
  }

  add(part: number, whole: number, nowMs: number): void {
    const last = this.#last;
    this.#last = { part, whole, atMs: nowMs };
    if (last === undefined) return;
    const isReset = part < last.part || whole < last.whole;
    const keep = Math.exp(-Math.max(0, nowMs - last.atMs) / 1_000 / MEMORY_SECONDS);
    this.#part = keep * this.#part + part - (isReset ? 0 : last.part);
    this.#whole = keep * this.#whole + whole - (isReset ? 0 : last.whole);
  }
}
