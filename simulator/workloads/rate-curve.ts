/** Requests per second over time. */
export interface RateCurve {
  at(seconds: number): number;
  /** No smaller than any value of the curve. */
  readonly peak: number;
}

export function steady(requestsPerSecond: number): RateCurve {
  return { at: () => requestsPerSecond, peak: requestsPerSecond };
}

/** Values that hold from their times on; the first one before them as well. */
export function steps(
  ...points: readonly (readonly [fromSeconds: number, requestsPerSecond: number])[]
): RateCurve {
  return {
    at: (seconds) => (points.findLast(([from]) => from <= seconds) ?? points[0]!)[1],
    peak: Math.max(...points.map(([, rate]) => rate)),
  };
}

/** The curve, and `times` as much for some seconds at the beginning of each period from `fromSeconds` on. */
export function withBursts(
  curve: RateCurve,
  { times, everySeconds, forSeconds, fromSeconds }: Bursts,
): RateCurve {
  const isBurst = (at: number) => at >= fromSeconds && (at - fromSeconds) % everySeconds < forSeconds;
  return {
    at: (seconds) => curve.at(seconds) * (isBurst(seconds) ? times : 1),
    peak: curve.peak * Math.max(1, times),
  };
}

export interface Bursts {
  readonly times: number;
  readonly everySeconds: number;
  readonly forSeconds: number;
  readonly fromSeconds: number;
}

/**
 * A day: a sine between trough and peak, `peak / trough` as in ServeGen's hourly rates (1.45 to 2.2 for its large
 * services, arXiv 2505.09999). `phase` (0..1) shifts it, as a region's clock does.
 */
export function day(mean: number, ratio: number, daySeconds: number, phase: number): RateCurve {
  const swing = (ratio - 1) / (ratio + 1);
  return {
    at: (seconds) => mean * (1 + swing * Math.sin(2 * Math.PI * (seconds / daySeconds + phase))),
    peak: mean * (1 + swing),
  };
}
