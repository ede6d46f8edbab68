/** Never below 0: clocks may be set back. */
export function ageSeconds(atMs: number, nowMs: number): number {
  return Math.max(0, nowMs - atMs) / 1_000;
}

/** Such as `12 s`, `5 min` or `3 h`. */
export function ageText(atMs: number, nowMs: number): string {
  const seconds = Math.round(ageSeconds(atMs, nowMs));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3_600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}
