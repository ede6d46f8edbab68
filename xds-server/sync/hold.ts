/** So long a call waits for news. */
export const HOLD_MS = 500;
/** So long a call waits at least when the next report is urgent: filters add up what they count ten times a second. */
export const URGENT_HOLD_MS = 100;
/** Urgent reports of all callers take at most this share of the time of a core, so that a surge does not slow down what follows it. */
const MOST_URGENT_SHARE = 0.25;
/** The time that a report takes is a mean of about so many. */
const MEAN_OF = 16;

/** How long a call waits when the next report is urgent, by the time that reports take. */
export class UrgentHold {
  /** Milliseconds that it takes to read a report. */
  #reportMs = 0;

  noteReport(tookMs: number): void {
    this.#reportMs += (tookMs - this.#reportMs) / MEAN_OF;
  }

  /** In milliseconds, with so many callers. */
  ms(callers: number): number {
    return urgentHoldMs(callers, this.#reportMs);
  }
}

/** So long a call waits when the next report is urgent, of so many callers whose reports take so many milliseconds each. */
export function urgentHoldMs(callers: number, reportMs: number): number {
  return Math.max(URGENT_HOLD_MS, (callers * reportMs) / MOST_URGENT_SHARE);
}
