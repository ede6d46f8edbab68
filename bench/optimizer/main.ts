import { writeFileSync } from 'node:fs';
import { Optimizer } from '../../xds-server/optimizer/index.js';
import { readArguments } from '../arguments.js';
import { type MovesResult, measureMoves } from '../plan/moves.js';
import { measureNoise } from '../plan/noise.js';
import { type GapResult, measureGap } from './gap.js';
import { measureTiming, type Quantiles, type Size, type Timing } from './timing.js';

/** What `--json FILE` writes; milliseconds, and memory at the end, by `frontends x engines`. */
interface Figures {
  readonly gapMax: number;
  readonly warmMs: Readonly<Record<string, Quantiles>>;
  /** In a new thread, and in one that has solved for a while. */
  readonly coldMs: Readonly<Record<string, Quantiles>>;
  readonly coldAgainMs: Readonly<Record<string, Quantiles>>;
  readonly memoryMegabytes: Readonly<Record<string, { readonly solver: number; readonly process: number }>>;
  /** With 1.2 times the demand that can be served. */
  readonly overloadMs: Readonly<Record<string, { readonly warm: Quantiles; readonly cold: Quantiles }>>;
  readonly movesPerTv: MovesResult['movesPerTv'];
  readonly segmentsPerEngineMax: number;
  readonly movesUnderNoise: number;
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

const OVERLOAD = 1.2;
const fullOverload: readonly Size[] = [
  { frontends: 50, engines: 200, warm: 20, cold: 3, load: OVERLOAD },
  { frontends: 100, engines: 1000, warm: 10, cold: 2, load: OVERLOAD },
];
const quickOverload: readonly Size[] = [
  { frontends: 50, engines: 200, warm: 4, cold: 1, load: OVERLOAD },
  { frontends: 100, engines: 1000, warm: 2, cold: 1, load: OVERLOAD },
];

async function main(): Promise<void> {
  const options = readArguments('optimizer');
  const optimizer = new Optimizer();
  try {
    const gap = await measureGap(optimizer, options.quick ? 40 : 200);
    report(gapLine(gap));
    const timings = await measureTimings(options.quick ? quick : full);
    report(`with ${OVERLOAD} times the demand that can be served:`);
    const overload = await measureTimings(options.quick ? quickOverload : fullOverload);
    const moves = measureMoves(options.quick ? { steps: 200 } : {});
    report(movesLine(moves));
    const noise = await measureNoise({
      solve: (input) => optimizer.solve(input),
      ...(options.quick ? { rates: [40], seconds: 300 } : {}),
    });
    report(
      `noise: ${noise.movesUnderNoise} of all keys moved and ${noise.plansUnderNoise} plans made by Poisson demand ` +
        'after settling',
    );
    for (const step of noise.steps) {
      report(
        `  step of +20 % at ${step.requestsPerSecond}/s, utilisation ${step.utilization}: ${step.movingPlans} moving ` +
          `plans, moves over the least ${step.movesPerLeast.toFixed(3)}`,
      );
    }
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
      overloadMs: Object.fromEntries(
        overload.map(([name, { warmMs, coldMs }]) => [name, { warm: warmMs, cold: coldMs }]),
      ),
      movesPerTv: moves.movesPerTv,
      segmentsPerEngineMax: moves.segmentsPerEngineMax,
      movesUnderNoise: noise.movesUnderNoise,
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

function percent(share: number): string {
  return `${(100 * share).toPrecision(2)} %`;
}

function report(line: string): void {
  console.log(line);
}

await main();
