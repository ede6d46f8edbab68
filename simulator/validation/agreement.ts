/** What one run showed, real or virtual. */
export interface Observed {
  readonly requests: number;
  readonly meanE2eMs: number;
  readonly p50E2eMs: number;
  readonly p90E2eMs: number;
  readonly p99E2eMs: number;
  /** Of streamed answers. */
  readonly p50TtftMs: number;
  readonly p90TtftMs: number;
  readonly cacheHitShare: number;
  readonly flows: readonly { readonly frontend: string; readonly engine: string; readonly rps: number }[];
}

export interface Comparison {
  readonly what: string;
  readonly real: number;
  readonly virtual: number;
  /** Largest difference that is agreement, in the same unit. */
  readonly bound: number;
  readonly agrees: boolean;
}

type Latency = 'meanE2eMs' | 'p50E2eMs' | 'p90E2eMs' | 'p99E2eMs' | 'p50TtftMs' | 'p90TtftMs';

/**
 * How far a latency may be off: a share of the real one, and the milliseconds that proxies and sockets take, which
 * virtual time leaves out. Tails depend on which conversations met, and so on single moves of weights.
 */
const LATENCY_BOUNDS: Readonly<Record<Latency, readonly [share: number, ms: number]>> = {
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
    const measured = real[name as Latency];
    return row(name, measured, virtual[name as Latency], share * measured + ms);
  });
  const flows = real.flows.map(({ frontend, engine, rps }) => {
    const total = real.flows
      .filter((flow) => flow.frontend === frontend)
      .reduce((sum, flow) => sum + flow.rps, 0);
    const other = virtual.flows.find((flow) => flow.frontend === frontend && flow.engine === engine)!;
    return row(`${frontend} to ${engine}, requests/s`, rps, other.rps, FLOW_BOUND * total);
  });
  return [
    ...latencies,
    row('cacheHitShare', real.cacheHitShare, virtual.cacheHitShare, HITS_BOUND),
    ...flows,
  ];
}
