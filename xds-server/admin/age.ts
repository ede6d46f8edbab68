/** Never below 0: clocks may be set back. */
export function ageSeconds(atMs: number, nowMs: number): number {
  return Math.max(0, nowMs - atMs) / 1_000;
}
