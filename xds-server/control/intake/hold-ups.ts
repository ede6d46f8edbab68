import { SETTLE_MS } from '../../signals/usage/usage-ledger.js';
import { TICK_MS } from '../ticker.js';

/** Shorter ones change nothing: nobody is taken for silent, and requests that seem to come late are known as such. */
const LEAST_MS = 3_000;

/**
 * Notices when this process itself did not run for a while: the machine was too busy, or it was stopped, or restarted. Then nobody was
 * silent, and what is heard first was said at any time in between.
 */
export class HoldUps {
  #lookedMs: number;
  #endedMs = Number.NEGATIVE_INFINITY;

  constructor(lookedMs: number) {
    this.#lookedMs = lookedMs;
  }

  /** When it was last asked whether one has ended. */
  get lookedMs(): number {
    return this.#lookedMs;
  }

  /** Whether one has just ended; asked at every tick, and before anything that was heard is taken. */
  hasEnded(nowMs: number): boolean {
    const isLong = nowMs - this.#lookedMs >= TICK_MS + LEAST_MS;
    this.#lookedMs = nowMs;
    if (isLong) this.#endedMs = nowMs;
    return isLong;
  }

  /** Whether those who were waiting for this process have had the time to be heard. */
  isSettled(nowMs: number): boolean {
    return nowMs - this.#endedMs >= SETTLE_MS;
  }
}
