/** So long after the first look an Envoy of before has come back over xDS, as it tries every 5 s at least, or will not. */
const LONGEST_MS = 10_000;

/**
 * Which Envoys wait for clusters after a start. Those that ran before have a snapshot, and call again sooner than they are back over
 * xDS: with another one they would send requests to pools that are new here, and whose clusters they lack.
 */
export class FirstClusters {
  readonly #before: ReadonlySet<string>;
  readonly #now: () => number;
  #sinceMs: number | undefined;

  /** `before`: pools of the plan that was in force last. */
  constructor(before: Iterable<string>, now: () => number) {
    this.#before = new Set(before);
    this.#now = now;
  }

  /** Whether an Envoy is not to be told of these pools yet. */
  isMissing(poolIds: readonly string[], hasClusters: () => boolean): boolean {
    const nowMs = this.#now();
    this.#sinceMs ??= nowMs;
    if (nowMs - this.#sinceMs >= LONGEST_MS || hasClusters()) return false;
    return poolIds.some((id) => !this.#before.has(id));
  }
}
