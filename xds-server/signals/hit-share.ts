const MEMORY_SECONDS = 60;

/** Share of hits among queries, from two counters that may start again from zero, with an exponential memory. */
export class HitShare {
  #last: { readonly hits: number; readonly queries: number; readonly atMs: number } | undefined;
  #hits = 0;
  #queries = 0;

  /** 0..1; undefined before anything was counted. */
  get value(): number | undefined {
    return this.#queries > 0 ? Math.min(1, this.#hits / this.#queries) : undefined;
  }

  add(hits: number, queries: number, nowMs: number): void {
    const last = this.#last;
    this.#last = { hits, queries, atMs: nowMs };
    if (last === undefined) return;
    const isReset = hits < last.hits || queries < last.queries;
    const keep = Math.exp(-Math.max(0, nowMs - last.atMs) / 1_000 / MEMORY_SECONDS);
    this.#hits = keep * this.#hits + hits - (isReset ? 0 : last.hits);
    this.#queries = keep * this.#queries + queries - (isReset ? 0 : last.queries);
  }
}
