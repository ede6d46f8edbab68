import { writeFileSync } from 'node:fs';
import { groupBy } from '../../xds-server/collections.js';
import { Optimizer } from '../../xds-server/optimizer/index.js';
import { readArguments } from '../arguments.js';
import { type MovesResult, measureMoves } from '../plan/moves.js';
import type { NoiseOptions } from '../plan/noise.js';
import { countSteps, measureRuns, type StepCounts } from '../plan/runs.js';
import { type GapResult, measureGap } from './gap.js';
import { measureTiming, type Quantiles, type Size, type Timing } from './timing.js';

type TimesBySize = Readonly<
  Record<string, { readonly warm: Quantiles; readonly cold: Quantiles; readonly coldAgain: Quantiles }>
>;

/** What `--json FILE` writes; milliseconds, and memory at the end, by `frontends x engines`. */
interface Figures {
  readonly gapMax: number;
  readonly warmMs: Readonly<Record<string, Quantiles>>;
  /** In a new thread, and in one that has solved for a while. */
  readonly coldMs: Readonly<Record<string, Quantiles>>;
  readonly coldAgainMs: Readonly<Record<string, Quantiles>>;
  readonly memoryMegabytes: Readonly<Record<string, { readonly solver: number; readonly process: number }>>;
  /** With 0.99 times what the engines can do. */
  readonly nearLimitMs: TimesBySize;
  /** With 1.2 times that. */
  readonly overloadMs: TimesBySize;
  readonly movesPerTv: MovesResult['movesPerTv'];
  readonly segmentsPerEngineMax: number;
  readonly movesUnderNoise: number;
  /** After a step of +20 %, by requests per second and utilisation. */
  readonly steps: Readonly<Record<string, StepCounts>>;
}

const full: readonly Size[] = [
  { frontends: 20, engines: 50, warm: 300, warmUp: 100, cold: 10, coldAgain: 20 },
  { frontends: 50, engines: 200, warm: 120, warmUp: 40, cold: 5, coldAgain: 10 },
  { frontends: 100, engines: 500, warm: 60, warmUp: 20, cold: 3, coldAgain: 5 },
  { frontends: 100, engines: 1000, warm: 40, warmUp: 12, cold: 3, coldAgain: 5 },
];

const quick: readonly Size[] = [
  { frontends: 20, engines: 50, warm: 60, warmUp: 60, cold: 3, coldAgain: 10 },
  { frontends: 50, engines: 200, warm: 25, warmUp: 20, cold: 2, coldAgain: 3 },
  { frontends: 100, engines: 500, warm: 9, warmUp: 8, cold: 1, coldAgain: 2 },
  { frontends: 100, engines: 1000, warm: 7, warmUp: 6, cold: 1, coldAgain: 1 },
];

/** Three engines in four are full then. */
const NEAR_LIMIT = 0.99;
const fullNearLimit: readonly Size[] = [
  { frontends: 50, engines: 200, warm: 20, warmUp: 10, cold: 3, coldAgain: 5, load: NEAR_LIMIT },
  { frontends: 100, engines: 1000, warm: 10, warmUp: 4, cold: 2, coldAgain: 3, load: NEAR_LIMIT },
];
const quickNearLimit: readonly Size[] = [
  { frontends: 50, engines: 200, warm: 8, warmUp: 6, cold: 1, coldAgain: 1, load: NEAR_LIMIT },
];

const OVERLOAD = 1.2;
const fullOverload: readonly Size[] = [
  { frontends: 50, engines: 200, warm: 20, warmUp: 10, cold: 3, coldAgain: 5, load: OVERLOAD },
  { frontends: 100, engines: 1000, warm: 10, warmUp: 4, cold: 2, coldAgain: 3, load: OVERLOAD },
];
const quickOverload: readonly Size[] = [
  { frontends: 50, engines: 200, warm: 8, warmUp: 8, cold: 1, coldAgain: 2, load: OVERLOAD },
  { frontends: 100, engines: 1000, warm: 4, warmUp: 3, cold: 1, coldAgain: 1, load: OVERLOAD },
];

const quickNoise: Pick<NoiseOptions, 'rates' | 'seconds'> = { rates: [40], seconds: 300 };

async function main(): Promise<void> {
  const options = readArguments('optimizer');
  const optimizer = new Optimizer();
  try {
    const gap = await measureGap(optimizer, options.quick ? 40 : 200);
    report(gapLine(gap));
    const timings = await measureTimings(options.quick ? quick : full);
    report(`near the limit, with ${NEAR_LIMIT} times what the engines can do:`);
    const nearLimit = await measureTimings(options.quick ? quickNearLimit : fullNearLimit);
    report(`with ${OVERLOAD} times the demand that can be served:`);
    const overload = await measureTimings(options.quick ? quickOverload : fullOverload);
    const moves = measureMoves(options.quick ? { steps: 200 } : {});
    report(movesLine(moves));
    const noise = await measureRuns(
      { solve: (input) => optimizer.solve(input), ...(options.quick ? quickNoise : {}) },
      1,
      options.quick ? 4 : 8,
    );
    report(
      `noise: ${noise.movesUnderNoise} of all keys moved and ${noise.plansUnderNoise} plans made by Poisson demand ` +
        'after settling',
    );
    const byLoad = groupBy(
      noise.steps,
      (step) => `${step.requestsPerSecond}/s, utilisation ${step.utilization}`,
    );
    const steps = [...byLoad].map(([load, results]) => [load, countSteps(results)] as const);
    for (const [load, counts] of steps) report(stepLine(load, counts));
    const figures: Figures = {
      gapMax: gap.gapMax,
      warmMs: Object.fromEntries(timings.map(([name, { warmMs }]) => [name, warmMs])),
      coldMs: Object.fromEntries(timings.map(([name, { coldMs }]) => [name, coldMs])),
      coldAgainMs: Object.fromEntries(timings.map(([name, { coldAgainMs }]) => [name, coldAgainMs])),
      memoryMegabytes: Object.fromEntries(
        timings.map(([name, { solverMegabytes, residentMegabytes }]) => [
          name,
          { solver: solverMegabytes, process: residentMegabytes },
        ]),
      ),
      nearLimitMs: timesBySize(nearLimit),
      overloadMs: timesBySize(overload),
      movesPerTv: moves.movesPerTv,
      segmentsPerEngineMax: moves.segmentsPerEngineMax,
      movesUnderNoise: noise.movesUnderNoise,
      steps: Object.fromEntries(steps),
    };
    if (options.json) writeFileSync(options.json, `${JSON.stringify(figures, null, 2)}\n`);
  } finally {
    await optimizer.close();
  }
}

async function measureTimings(sizes: readonly Size[]): Promise<[string, Timing][]> {
  const timings: [string, Timing][] = [];
  report('size           warm p50    p99      cold p50  warm/cold  cold again  warm/cold   HiGHS   process');
  for (const size of sizes) {
    const name = `${size.frontends}x${size.engines}`;
    const timing = await measureTiming(size);
    timings.push([name, timing]);
    report(timingLine(name, timing));
  }
  return timings;
}

function timesBySize(timings: readonly (readonly [string, Timing])[]): TimesBySize {
  return Object.fromEntries(
    timings.map(([name, { warmMs, coldMs, coldAgainMs }]) => [
      name,
      { warm: warmMs, cold: coldMs, coldAgain: coldAgainMs },
    ]),
  );
}

function gapLine({ fleets, solves, gapMax, gapMaxUnshed, shedding }: GapResult): string {
  return (
    `gap: at most ${percent(gapMax)} in ${solves} solves of ${fleets} random fleets ` +
    `(${percent(gapMaxUnshed)} in those that shed nothing, all but ${shedding})`
  );
}

function timingLine(name: string, timing: Timing): string {
  const { warmMs, coldMs, coldAgainMs, solverMegabytes, residentMegabytes } = timing;
  const warm = [warmMs.p50, warmMs.p99].map((value) => `${value.toFixed(0)} ms`.padStart(10));
  const cold = [coldMs.p50, coldAgainMs.p50].map((value) =>
    value > 0
      ? `${`${value.toFixed(0)} ms`.padStart(11)}${`1/${(value / warmMs.p50).toFixed(1)}`.padStart(11)}`
      : ' '.repeat(22),
  );
  const memory = [solverMegabytes, residentMegabytes].map((value) => `${value.toFixed(0)} MB`.padStart(9));
  return `${name.padEnd(12)}${warm.join('')}${cold.join('')}${memory.join('')}`;
}

function movesLine({ movesPerTv, segmentsPerEngineMax }: MovesResult): string {
  const { partition, rendezvous, maglev, ringHash } = movesPerTv;
  return (
    `moves over total variation: partition ${partition.toFixed(4)}, rendezvous ${rendezvous.toFixed(3)}, ` +
    `maglev ${maglev.toFixed(3)}, ring hash ${ringHash.toFixed(3)}; at most ${segmentsPerEngineMax} segments an engine`
  );
}

function stepLine(load: string, counts: StepCounts): string {
  const { runs, onePlan, mostPlans, movesPerLeastMax } = counts;
  return `  step of +20 % at ${load}: ${onePlan} of ${runs} runs take one plan that moves keys, most ${mostPlans}; moves over the least at most ${movesPerLeastMax.toFixed(3)}`;
}

function percent(share: number): string {
  return `${(100 * share).toPrecision(2)} %`;
}

function report(line: string): void {
  console.log(line);
}

await main();
