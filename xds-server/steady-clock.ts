/**
 * Milliseconds since the epoch by the machine's clock, but never slower than time passes: where that clock is set back, this one
 * goes on ahead of it. So no age and no interval is ever negative, and nothing stands still until the machine has caught up.
 */
export function steadyClock(machineMs: () => number, passedMs: () => number): () => number {
  let latestMs = machineMs();
  let readMs = passedMs();
  return () => {
    const before = readMs;
    readMs = passedMs();
    latestMs = Math.max(machineMs(), latestMs + readMs - before);
    return Math.floor(latestMs);
  };
}

/** The clock of this process. Both are looked up at every call, so that tests can exchange them. */
export const now = steadyClock(
  () => Date.now(),
  () => performance.now(),
);
