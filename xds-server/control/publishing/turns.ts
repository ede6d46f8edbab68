/** So long things are done without a pause; then sockets and timers have their turn. */
const SLICE_MS = 20;

/** Does one job after the other, in their order, and lets the event loop go on between them when they take long. */
export class Turns {
  readonly #clock: () => number;
  readonly #onFault: (error: unknown) => void;
  readonly #waiting: (() => void)[] = [];
  /** When the slice under way began; undefined while there is none. */
  #sinceMs: number | undefined;

  /** `clock` in milliseconds; `onFault` takes what a job throws, which keeps no other from being done. */
  constructor(clock: () => number, onFault: (error: unknown) => void) {
    this.#clock = clock;
    this.#onFault = onFault;
  }

  /** Does it at once when nothing else waits and the slice has time left. */
  run(job: () => void): void {
    if (this.#sinceMs === undefined) this.#begin();
    if (this.#waiting.length === 0 && this.#hasTime()) this.#do(job);
    else this.#waiting.push(job);
  }

  /** Resolves when all that waits now is done. */
  idle(): Promise<void> {
    return new Promise((resolve) => this.run(resolve));
  }

  #begin(): void {
    this.#sinceMs = this.#clock();
    setImmediate(() => this.#goOn());
  }

  #goOn(): void {
    this.#sinceMs = undefined;
    if (this.#waiting.length === 0) return;
    this.#begin();
    do this.#do(this.#waiting.shift()!);
    while (this.#waiting.length > 0 && this.#hasTime());
  }

  #do(job: () => void): void {
    try {
      job();
    } catch (error) {
      this.#onFault(error);
    }
  }

  #hasTime(): boolean {
    return this.#clock() - this.#sinceMs! < SLICE_MS;
  }
}
