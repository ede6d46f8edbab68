/** Carries out actions a fixed time after they are given, in their order. */
export class DelayLine {
  readonly #delayMs: number;
  readonly #actions: { readonly dueAt: number; readonly run: () => void }[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(delayMs: number) {
    this.#delayMs = delayMs;
  }

  push(run: () => void): void {
    if (this.#delayMs === 0) {
      run();
      return;
    }
    this.#actions.push({ dueAt: performance.now() + this.#delayMs, run });
    if (!this.#timer) this.#wait();
  }

  /** Drops what has not been carried out. */
  close(): void {
    clearTimeout(this.#timer);
    this.#actions.length = 0;
  }

  #wait(): void {
    const next = this.#actions[0];
    this.#timer = next && setTimeout(() => this.#carryOut(), Math.max(0, next.dueAt - performance.now()));
  }

  #carryOut(): void {
    const now = performance.now();
    // Timers fire on whole milliseconds; half of one is nearer than the next.
    let due = 0;
    while (due < this.#actions.length && this.#actions[due]!.dueAt <= now + 0.5) due++;
    for (const { run } of this.#actions.splice(0, due)) run();
    this.#wait();
  }
}
