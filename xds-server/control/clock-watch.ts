/** Smaller steps pass by themselves before anybody has looked. */
const LEAST_MS = 5_000;

/** Notices when the clock of the machine is set back: ages stand still until it shows what it has shown before. */
export class ClockWatch {
  #latestMs = Number.NEGATIVE_INFINITY;

  /** How far the clock is behind what it has shown, in milliseconds; 0 when that is nothing to speak of. */
  behindMs(nowMs: number): number {
    this.#latestMs = Math.max(this.#latestMs, nowMs);
    const behindMs = this.#latestMs - nowMs;
    return behindMs >= LEAST_MS ? behindMs : 0;
  }
}
