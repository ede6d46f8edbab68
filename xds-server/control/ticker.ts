/** How often the control server looks, when nothing calls for it sooner. */
export const TICK_MS = 200;
/** It pauses for so long at most: the whole process may have been stopped within a call. */
const LONGEST_PAUSE_MS = 1_000;

/**
 * Calls again and again, and once more when it is asked to; what happens within one turn of the event loop is one call. After a
 * call it pauses for as long as that took: half of the time is left for all else, however often it is asked.
 */
export class Ticker {
  readonly #tick: () => void;
  readonly #clock: () => number;
  #timer: NodeJS.Timeout | undefined;
  #isDue = false;
  #isStopped = false;
  #pausesUntilMs = Number.NEGATIVE_INFINITY;

  /** `clock` in milliseconds, which nobody sets. */
  constructor(tick: () => void, clock: () => number) {
    this.#tick = tick;
    this.#clock = clock;
  }

  /** There are no calls before. */
  start(): void {
    if (!this.#isStopped) this.#timer = setInterval(() => this.#call(), TICK_MS);
  }

  /** There are no calls after. */
  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#timer);
  }

  soon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    const call = () => {
      this.#isDue = false;
      this.#call();
    };
    const pauseMs = this.#pausesUntilMs - this.#clock();
    if (pauseMs > 0) setTimeout(call, pauseMs);
    else setImmediate(call);
  }

  #call(): void {
    if (this.#timer === undefined || this.#isStopped) return;
    const sinceMs = this.#clock();
    if (sinceMs < this.#pausesUntilMs) {
      this.soon();
      return;
    }
    this.#tick();
    const nowMs = this.#clock();
    this.#pausesUntilMs = nowMs + Math.min(nowMs - sinceMs, LONGEST_PAUSE_MS);
  }
}
