const BIN_MS = 1_000;
/** Rates are means over this time, the present second left out unless it is the first. */
const BINS = 10;

/** What all frontends together send to one engine now, as they report it. */
export class EngineTraffic {
  readonly #requests = new Float64Array(BINS + 1);
  readonly #work = new Float64Array(BINS + 1);
  #newest = 0;
  #first: number | undefined;

  /** Adds requests that were sent since the last report, and the replica-seconds of work that they cost. */
  add(requests: number, workSeconds: number, nowMs: number): void {
    const bin = this.#advance(nowMs);
    this.#first ??= bin;
    this.#requests[bin % (BINS + 1)]! += requests;
    this.#work[bin % (BINS + 1)]! += workSeconds;
  }

  /** Mean over the last 10 s, or since the first report if that is later. */
  rates(nowMs: number): { readonly requestsPerSecond: number; readonly workPerSecond: number } {
    const bin = this.#advance(nowMs);
    const seconds = Math.min(BINS, Math.max(1, bin - (this.#first ?? bin)));
    const end = bin === this.#first ? bin + 1 : bin;
    let requests = 0;
    let work = 0;
    for (let at = end - seconds; at < end; at++) {
      requests += this.#requests[at % (BINS + 1)]!;
      work += this.#work[at % (BINS + 1)]!;
    }
    return { requestsPerSecond: requests / seconds, workPerSecond: work / seconds };
  }

  /** Number of the present bin; older ones than the ring holds are gone. */
  #advance(nowMs: number): number {
    const bin = Math.max(this.#newest, Math.floor(nowMs / BIN_MS));
    const steps = Math.min(bin - this.#newest, BINS + 1);
    for (let step = 0; step < steps; step++) {
      this.#requests[(bin - step) % (BINS + 1)] = 0;
      this.#work[(bin - step) % (BINS + 1)] = 0;
    }
    this.#newest = bin;
    return bin;
  }
}
