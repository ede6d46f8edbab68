import { writeFileSync } from 'node:fs';
import { Optimizer } from '../../xds-server/optimizer/index.js';
import type { OptimizerInput } from '../../xds-server/optimizer/solution.js';
import { readArguments, refuseArguments } from '../arguments.js';
import { countSteps, measureRuns, type StepCounts } from './runs.js';

/** What `--json FILE` writes, an element for each line that is shown. */
interface Figures extends StepCounts {
  readonly requestsPerSecond: number;
  readonly plansUnderNoise: number;
  readonly movesUnderNoise: number;
}

const rates = [5, 40, 400];
const FIRST_SEED = 3000;
const SECONDS_OF_NOISE = 1_800;
const OWN = { seed: 'N', runs: 'N' };

/** Plans under chance and after a step of demand, on fleets that differ in their requests only. */
async function main(): Promise<void> {
  const { quick, json, seed, runs } = readArguments('plan', OWN);
  const firstSeed = numberOf(seed, FIRST_SEED);
  const seeds = numberOf(runs, quick ? 3 : 24);
  const optimizer = new Optimizer();
  console.log('             half an hour of chance        a step of +20 %: runs by plans that moved keys');
  console.log('rate       plans    keys moved      runs       none    one   more    moves over the least');
  try {
    const figures: Figures[] = [];
    for (const rate of rates) {
      const measured = await measure(optimizer, rate, firstSeed, seeds);
      console.log(lineOf(measured));
      figures.push(measured);
    }
    if (json) writeFileSync(json, `${JSON.stringify(figures, null, 2)}\n`);
  } finally {
    await optimizer.close();
  }
}

async function measure(optimizer: Optimizer, rate: number, from: number, seeds: number): Promise<Figures> {
  const solve = (input: OptimizerInput) => optimizer.solve(input);
  const noise = await measureRuns({ solve, rates: [rate], seconds: SECONDS_OF_NOISE }, from, seeds);
  const { plansUnderNoise, movesUnderNoise, steps } = noise;
  return { requestsPerSecond: rate, plansUnderNoise, movesUnderNoise, ...countSteps(steps) };
}

function numberOf(text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  if (!/^[1-9]\d{0,8}$/.test(text)) refuseArguments('plan', OWN, `${text} is no number from 1 on`);
  return Number(text);
}

function lineOf(figures: Figures): string {
  const { requestsPerSecond, plansUnderNoise, movesUnderNoise, runs, noPlan, onePlan, morePlans } = figures;
  const moved = `${(100 * movesUnderNoise).toFixed(2)} %`.padStart(14);
  const plans = [noPlan, onePlan, morePlans].map((count) => String(count).padStart(7));
  const most = `at most ${figures.movesPerLeastMax.toFixed(2)}`;
  return `${`${requestsPerSecond}/s`.padEnd(8)}${String(plansUnderNoise).padStart(8)}${moved}${String(runs).padStart(10)}    ${plans.join('')}    ${most}`;
}

await main();
