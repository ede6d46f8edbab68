import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';

const RESOLUTION_MS = 10;

export interface Lag {
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** How late this process's timers fire: what its own busyness or a busy machine adds to every latency it measures. */
export class EventLoopLag {
  readonly #histogram: IntervalHistogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });

  constructor() {
    this.#histogram.enable();
  }

  /** Since the start or the last reset. */
  read(): Lag {
    // The histogram holds whole intervals between ticks, not only their excess.
    const excess = (nanoseconds: number) => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS);
    if (this.#histogram.count === 0) return { p99Ms: 0, maxMs: 0 };
    return { p99Ms: excess(this.#histogram.percentile(99)), maxMs: excess(this.#histogram.max) };
  }

  reset(): void {
    this.#histogram.reset();
  }

  close(): void {
    this.#histogram.disable();
  }
}
