const INTERVAL_MS = 50;
/** A timer this late means that answers could not be read meanwhile. */
const STALL_MS = 250;

/** Notices when this process itself did not run for a while: then an overdue answer says nothing about who owes it. */
export class StallWatch {
  readonly #timer: NodeJS.Timeout;
  #lastMs = performance.now();
  #stalledMs = Number.NEGATIVE_INFINITY;

  constructor() {
    this.#timer = setInterval(() => this.#look(), INTERVAL_MS);
    this.#timer.unref();
  }

  /** Whether there was a stall after `sinceMs` (of `performance.now()`), one that is only just over included. */
  hasStalledSince(sinceMs: number): boolean {
    this.#look();
    return this.#stalledMs > sinceMs;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const nowMs = performance.now();
    if (nowMs - this.#lastMs > STALL_MS) this.#stalledMs = nowMs;
    this.#lastMs = nowMs;
  }
}
