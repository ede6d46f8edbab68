/** How often the control server looks, when nothing calls for it sooner. */
export const TICK_MS = 200;

/** Calls again and again, and once more when it is asked to; what happens within one turn of the event loop is one call. */
export class Ticker {
  readonly #tick: () => void;
  #timer: NodeJS.Timeout | undefined;
  #isDue = false;
  #isStopped = false;

  constructor(tick: () => void) {
    this.#tick = tick;
  }

  /** There are no calls before. */
  start(): void {
    if (!this.#isStopped) this.#timer = setInterval(this.#tick, TICK_MS);
  }

  /** There are no calls after. */
  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#timer);
  }

  soon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      if (this.#timer !== undefined && !this.#isStopped) this.#tick();
    });
  }
}
