/** Rates are means over this time. */
const WINDOW_MS = 10_000;

interface Cell {
  readonly atMs: number;
  readonly requests: number;
  readonly workSeconds: number;
}

/** What all frontends together send to one engine now, as they report it. */
export class EngineTraffic {
  #cells: Cell[] = [];
  #firstMs: number | undefined;

  /** Adds requests that were sent since the last report, and the replica-seconds of work that they cost. */
  add(requests: number, workSeconds: number, nowMs: number): void {
    this.#firstMs ??= nowMs;
    if (requests > 0) this.#cells.push({ atMs: nowMs, requests, workSeconds });
  }

  /** Mean over the last 10 s, or since the first report if that is later. */
  rates(nowMs: number): { readonly requestsPerSecond: number; readonly workPerSecond: number } {
    this.#cells = this.#cells.filter(({ atMs }) => atMs > nowMs - WINDOW_MS);
    const seconds = Math.min(WINDOW_MS, Math.max(1_000, nowMs - (this.#firstMs ?? nowMs))) / 1_000;
    const sums = this.#cells.reduce(
      (sum, cell) => ({
        requests: sum.requests + cell.requests,
        work: sum.work + cell.workSeconds,
      }),
      { requests: 0, work: 0 },
    );
    return { requestsPerSecond: sums.requests / seconds, workPerSecond: sums.work / seconds };
  }
}
