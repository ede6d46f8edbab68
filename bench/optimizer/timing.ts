import { Optimizer } from '../../xds-server/optimizer/index.js';
import { randomInput, shakenDemand } from '../../xds-server/optimizer/testing/random.js';
import { weightsOf } from '../../xds-server/optimizer/testing/world.js';

export interface Size {
  readonly frontends: number;
  readonly engines: number;
  /** Solves from the weights of the one before, after `warmUp` that are not timed. */
  readonly warm: number;
  readonly warmUp?: number;
  /** Solves without weights in force, each in a new thread. */
  readonly cold: number;
  /** The same in the thread that has done all other solves, after one that is not timed. Default 0. */
  readonly coldAgain?: number;
  /** Work offered over capacity. Default 0.75. */
  readonly load?: number;
}

export interface Timing {
  readonly warmMs: Quantiles;
  readonly coldMs: Quantiles;
  readonly coldAgainMs: Quantiles;
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
 * Processor time of whole solves, on the way to the solver's thread and back: of all threads of the process, so never
 * less than a clock shows on an idle machine, and about the same on a busy one. Cold: the first solve of the
 * fleet in a new thread, as after a start of the server, without weights in force; the thread itself has started and
 * HiGHS is loaded, but the code has not been translated yet. Cold again: without weights in force too, but in a thread
 * that has solved for a while. Warm, in such a thread: each solve starts from the weights of the last one, demand of each
 * row is up to 5 % off.
 */
export async function measureTiming(size: Size): Promise<Timing> {
  const { frontends, engines, warm, warmUp = 0, cold, coldAgain = 0, load = LOAD } = size;
  const input = randomInput(1, { frontends, engines, pools: POOLS, eligibility: ELIGIBILITY, load });
  const coldTimes: number[] = [];
  for (let seed = 1; seed < cold; seed++) {
    const optimizer = await startedOptimizer();
    coldTimes.push((await timed(optimizer, shakenDemand(input, SHAKE, -seed))).milliseconds);
    await optimizer.close();
  }
  const optimizer = await startedOptimizer();
  try {
    let { solution, milliseconds } = await timed(optimizer, input);
    coldTimes.push(milliseconds);
    const warmTimes: number[] = [];
    for (let seed = 1; seed <= warmUp + warm; seed++) {
      const given = shakenDemand({ ...input, previousWeights: weightsOf(solution) }, SHAKE, seed);
      ({ solution, milliseconds } = await timed(optimizer, given));
      if (seed > warmUp) warmTimes.push(milliseconds);
    }
    const againTimes: number[] = [];
    for (let seed = 0; seed <= coldAgain && coldAgain > 0; seed++) {
      ({ milliseconds } = await timed(optimizer, shakenDemand(input, SHAKE, -seed)));
      if (seed > 0) againTimes.push(milliseconds);
    }
    return {
      warmMs: quantiles(warmTimes),
      coldMs: quantiles(coldTimes),
      coldAgainMs: quantiles(againTimes),
      solverMegabytes: optimizer.memoryBytes / 1e6,
      residentMegabytes: process.memoryUsage().rss / 1e6,
    };
  } finally {
    await optimizer.close();
  }
}

/** A new thread that has answered once, about one engine. */
async function startedOptimizer(): Promise<Optimizer> {
  const optimizer = new Optimizer({ deadlineSeconds: 120 });
  await optimizer.solve(randomInput(1, { frontends: 1, engines: 1, pools: 1, eligibility: 1, load: LOAD }));
  return optimizer;
}

async function timed(optimizer: Optimizer, input: Parameters<Optimizer['solve']>[0]) {
  const start = process.cpuUsage();
  const solution = await optimizer.solve(input);
  const { user, system } = process.cpuUsage(start);
  return { solution, milliseconds: (user + system) / 1000 };
}

/** Nearest-rank quantiles; with fewer than 100 values the 99th percentile is the largest. */
export function quantiles(values: readonly number[]): Quantiles {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
  return { p50: at(0.5), p99: at(0.99) };
}
