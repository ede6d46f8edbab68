/** An extra is believed to be smaller within half a minute, and larger within half an hour: slowness is not to become usual. */
const FALL_SECONDS = 30;
const RISE_SECONDS = 1_800;

/**
 * How much longer than their profile the first bytes of healthy engines usually take, by profile and pool: answers
 * that are not streamed begin when they are complete, and a profile that only knows a rate knows no latency.
 */
export class UsualExtra {
  readonly #extras = new Map<string, { seconds: number; atMs: number }>();

  /** Undefined before anything was learned. */
  seconds(profileId: string, poolId: string): number | undefined {
    return this.#extras.get(key(profileId, poolId))?.seconds;
  }

  /** Learns what healthy engines show now. */
  learn(profileId: string, poolId: string, seconds: number, nowMs: number): void {
    const extra = this.#extras.get(key(profileId, poolId));
    if (extra === undefined) {
      this.#extras.set(key(profileId, poolId), { seconds, atMs: nowMs });
      return;
    }
    const timeConstant = seconds < extra.seconds ? FALL_SECONDS : RISE_SECONDS;
    const gain = 1 - Math.exp(-(nowMs - extra.atMs) / 1_000 / timeConstant);
    extra.seconds += gain * (seconds - extra.seconds);
    extra.atMs = nowMs;
  }
}

function key(profileId: string, poolId: string): string {
  return JSON.stringify([profileId, poolId]);
}
