import { Random } from '../../../simulator/random.js';
import { DemandEstimator } from '../demand/demand-estimator.js';
import { poissonCounts } from './traffic.js';

export const START_MS = 1_600_000_000_000;

interface Run {
  readonly seed: number;
  readonly expectedRps: number;
  readonly seconds: number;
  readonly nodes?: number;
  /** Requests per second at a time in seconds. */
  readonly rps: (second: number) => number;
  /** Whether a node's report of this second arrives. */
  readonly reports?: (node: number, second: number) => boolean;
}

/** Moves of the band, in seconds since the start. */
export function play(run: Run): {
  estimator: DemandEstimator;
  moves: { second: number; rps: number }[];
  endMs: number;
} {
  const random = new Random(run.seed, 'traffic');
  const nodes = run.nodes ?? 1;
  const estimator = new DemandEstimator([
    {
      frontendId: 'f',
      poolId: 'p',
      requestsPerSecond: run.expectedRps,
      evidence: Infinity,
      source: 'expected',
    },
  ]);
  const lastMs = Array.from({ length: nodes }, () => START_MS);
  const pending = Array.from({ length: nodes }, () => 0);
  const moves: { second: number; rps: number }[] = [];
  for (let second = 0; second < run.seconds; second++) {
    for (let node = 0; node < nodes; node++) {
      const nowMs = START_MS + (second + 1 + node / nodes) * 1_000;
      pending[node]! += poissonCounts(run.rps(second) / nodes, 1, random)[0]!;
      if (run.reports?.(node, second) ?? true) {
        estimator.add('f', `n${node}`, new Map([['p', pending[node]!]]), lastMs[node]!, nowMs);
        lastMs[node] = nowMs;
        pending[node] = 0;
      }
      if (estimator.evaluate(nowMs).size > 0)
        moves.push({ second: second + 1, rps: rpsOf(estimator, nowMs) });
    }
  }
  return { estimator, moves, endMs: START_MS + (run.seconds + 1) * 1_000 };
}

/** Of the first pool. */
export function rpsOf(estimator: DemandEstimator, nowMs: number): number {
  return estimator.estimates(nowMs)[0]!.requestsPerSecond;
}

/** Plays counts of a second each, one list for each pool; the rates after every move. */
export function replay(
  pools: readonly (readonly number[])[],
  expectedRps: number,
): { moves: { second: number; rates: readonly number[] }[] } {
  const estimator = new DemandEstimator(
    pools.map((_, pool) => ({
      frontendId: 'f',
      poolId: `p${pool}`,
      requestsPerSecond: expectedRps / pools.length,
      evidence: Infinity,
      source: 'expected',
    })),
  );
  const moves: { second: number; rates: readonly number[] }[] = [];
  for (let second = 0; second < pools[0]!.length; second++) {
    const nowMs = START_MS + (second + 1) * 1_000;
    const counts = new Map(pools.map((each, pool) => [`p${pool}`, each[second]!]));
    estimator.add('f', 'n', counts, nowMs - 1_000, nowMs);
    if (estimator.evaluate(nowMs).size === 0) continue;
    const rates = estimator.estimates(nowMs).map(({ requestsPerSecond }) => requestsPerSecond);
    moves.push({ second: second + 1, rates });
  }
  return { moves };
}

/** What is expected of two pools of a frontend. */
export const twoSeeds = ['p0', 'p1'].map((poolId) => ({
  ...{ frontendId: 'f', poolId, requestsPerSecond: 40 },
  ...{ evidence: Infinity, source: 'expected' as const },
}));

export function twoPools(): DemandEstimator {
  return new DemandEstimator(twoSeeds);
}

export const seeds = Array.from({ length: 20 }, (_, index) => 17 * index + 3);
