import { Optimizer } from '../../xds-server/optimizer/index.js';
import { randomInput, shakenDemand } from '../../xds-server/optimizer/testing/random.js';
import { weightsOf } from '../../xds-server/optimizer/testing/world.js';

export interface Size {
  readonly frontends: number;
  readonly engines: number;
  /** Solves from the weights of the one before. */
  readonly warm: number;
  /** Solves without weights in force. */
  readonly cold: number;
}

export interface Timing {
  readonly warmMs: Quantiles;
  readonly coldMs: Quantiles;
  /** Wasm memory of HiGHS at the end. */
  readonly solverMegabytes: number;
  /** Resident memory of the whole process at the end. */
  readonly residentMegabytes: number;
}

export interface Quantiles {
  readonly p50: number;
  readonly p99: number;
}

const POOLS = 8;
const ELIGIBILITY = 0.25;
const LOAD = 0.75;
const SHAKE = 0.05;

/**
 * Times whole solves as a server sees them, on the way to the solver's thread and back. The thread is warmed up on a
 * small fleet. Warm: each solve starts from the weights of the last one, demand of each row is up to 5 % off.
 */
export async function measureTiming({ frontends, engines, warm, cold }: Size): Promise<Timing> {
  const optimizer = new Optimizer({ deadlineSeconds: 120 });
  try {
    const warmUp = randomInput(1, { frontends: 5, engines: 20, pools: 4, eligibility: 0.5, load: LOAD });
    for (let seed = 1; seed <= 20; seed++) await optimizer.solve(shakenDemand(warmUp, SHAKE, seed));
    const input = randomInput(1, { frontends, engines, pools: POOLS, eligibility: ELIGIBILITY, load: LOAD });
    const coldTimes: number[] = [];
    for (let seed = 1; seed <= cold; seed++) {
      coldTimes.push((await timed(optimizer, shakenDemand(input, SHAKE, -seed))).milliseconds);
    }
    let { solution } = await timed(optimizer, input);
    const warmTimes: number[] = [];
    for (let seed = 1; seed <= warm; seed++) {
      const given = shakenDemand({ ...input, previousWeights: weightsOf(solution) }, SHAKE, seed);
      const result = await timed(optimizer, given);
      warmTimes.push(result.milliseconds);
      ({ solution } = result);
    }
    return {
      warmMs: quantiles(warmTimes),
      coldMs: quantiles(coldTimes),
      solverMegabytes: optimizer.memoryBytes / 1e6,
      residentMegabytes: process.memoryUsage().rss / 1e6,
    };
  } finally {
    await optimizer.close();
  }
}

async function timed(optimizer: Optimizer, input: Parameters<Optimizer['solve']>[0]) {
  const start = performance.now();
  const solution = await optimizer.solve(input);
  return { solution, milliseconds: performance.now() - start };
}

/** Nearest-rank quantiles; with fewer than 100 values the 99th percentile is the largest. */
export function quantiles(values: readonly number[]): Quantiles {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
  return { p50: at(0.5), p99: at(0.99) };
}
