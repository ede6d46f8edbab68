/** So long a call waits for news, and so long at most where reports would take too much of the server's time. */
export const HOLD_MS = 500;
/** Whoever calls less often than every 2 s is taken for silent. */
const LONGEST_HOLD_MS = 1_000;
/** So long a call waits at least when the next report is urgent: filters add up what they count ten times a second. */
export const URGENT_HOLD_MS = 100;
/** Reports of all callers take at most this share of the time of a core: the rest is for what follows from them. */
const MOST_SHARE = 0.5;
/** The same for urgent ones, so that a surge does not slow down what follows it. */
const MOST_URGENT_SHARE = 0.25;
/** The time that a report takes is a mean of about so many. */
const MEAN_OF = 16;

/** How long calls wait for news, by the time that reports take. */
export class Holds {
  /** Milliseconds that it takes to read a report. */
  #reportMs = 0;

  noteReport(tookMs: number): void {
    this.#reportMs += (tookMs - this.#reportMs) / MEAN_OF;
  }

  /** In milliseconds, with so many callers. */
  ms(callers: number): number {
    return holdMs(callers, this.#reportMs);
  }

  /** The same when the next report is urgent. */
  urgentMs(callers: number): number {
    return urgentHoldMs(callers, this.#reportMs);
  }
}

/** How long a call waits, of so many callers whose reports take so many milliseconds each. */
export function holdMs(callers: number, reportMs: number): number {
  return Math.min(LONGEST_HOLD_MS, Math.max(HOLD_MS, (callers * reportMs) / MOST_SHARE));
}

/** The same when the next report is urgent. */
export function urgentHoldMs(callers: number, reportMs: number): number {
  return Math.max(URGENT_HOLD_MS, (callers * reportMs) / MOST_URGENT_SHARE);
}
