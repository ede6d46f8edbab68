/** A measurement of this age is as good as a new one. */
const FRESH_MS = 60_000;
/** From here on it says nothing any more. */
const WORTHLESS_MS = 600_000;

/** 0..1, how far what was measured of slow things can be trusted: it becomes worthless as it ages. */
export function measuredConfidence(atMs: number, nowMs: number): number {
  return Math.min(1, Math.max(0, (WORTHLESS_MS - (nowMs - atMs)) / (WORTHLESS_MS - FRESH_MS)));
}
