/** VMs tick side by side: what one writes may be so much later than when another, that reads it, looked at the clock. */
const MOMENT_MS: u64 = 1_000;

/** Milliseconds since a VM left its stamp; one of before the clock was set back is as old as can be. */
export function ageOf(stampMs: u64, nowMs: u64): u64 {
  return stampMs > nowMs && stampMs - nowMs <= MOMENT_MS ? 0 : nowMs - stampMs;
}
