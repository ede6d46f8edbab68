import type { Flow, Latencies } from '../demo/measurement.js';

/** What one run showed, real or virtual. */
export interface Observed extends Latencies {
  readonly cacheHitShare: number;
  readonly flows: readonly Pick<Flow, 'frontend' | 'engine' | 'measuredRps'>[];
}

export interface Comparison {
  readonly what: string;
  readonly real: number;
  readonly virtual: number;
  /** Largest difference that is agreement, in the same unit. */
  readonly bound: number;
  readonly agrees: boolean;
}

/**
 * How far a latency may be off: a share of the real one, and the milliseconds that proxies and sockets take, which
 * virtual time leaves out. Tails depend on which conversations met, and so on single moves of weights.
 */
const LATENCY_BOUNDS: Readonly<Record<keyof Latencies, readonly [share: number, ms: number]>> = {
  meanE2eMs: [0.1, 10],
  p50E2eMs: [0.1, 10],
  p90E2eMs: [0.15, 10],
  p99E2eMs: [0.3, 10],
  p50TtftMs: [0.15, 15],
  p90TtftMs: [0.4, 15],
};
/** Points of cache hits, and share of a frontend's requests on the way to an engine. */
const HITS_BOUND = 0.02;
const FLOW_BOUND = 0.1;

/** Whether virtual time tells what happened, within stated bounds. */
export function compare(real: Observed, virtual: Observed): Comparison[] {
  const row = (what: string, a: number, b: number, bound: number): Comparison => ({
    ...{ what, real: a, virtual: b, bound },
    agrees: Math.abs(a - b) <= bound,
  });
  const latencies = Object.entries(LATENCY_BOUNDS).map(([name, [share, ms]]) => {
    const measured = real[name as keyof Latencies];
    return row(name, measured, virtual[name as keyof Latencies], share * measured + ms);
  });
  const flows = real.flows.map(({ frontend, engine, measuredRps }) => {
    const total = real.flows
      .filter((flow) => flow.frontend === frontend)
      .reduce((sum, flow) => sum + flow.measuredRps, 0);
    const other = virtual.flows.find((flow) => flow.frontend === frontend && flow.engine === engine)!;
    return row(`${frontend} to ${engine}, requests/s`, measuredRps, other.measuredRps, FLOW_BOUND * total);
  });
  return [
    ...latencies,
    row('cacheHitShare', real.cacheHitShare, virtual.cacheHitShare, HITS_BOUND),
    ...flows,
  ];
}
