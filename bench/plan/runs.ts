import { measureNoise, type NoiseOptions, type NoiseResult, type StepResult } from './noise.js';

/** How many plans a step of demand took, over several runs. */
export interface StepCounts {
  readonly runs: number;
  /** Runs by the number of plans that moved keys. */
  readonly noPlan: number;
  readonly onePlan: number;
  readonly morePlans: number;
  /** Of the run with most. */
  readonly mostPlans: number;
  /** Of the run that moved most. */
  readonly movesPerLeastMax: number;
}

/** The same on fleets that differ in their requests only: chance makes of a few what it does not make of most. */
export async function measureRuns(
  options: Omit<NoiseOptions, 'seed'>,
  firstSeed: number,
  seeds: number,
): Promise<NoiseResult> {
  let movesUnderNoise = 0;
  let plansUnderNoise = 0;
  const steps: StepResult[] = [];
  for (let seed = firstSeed; seed < firstSeed + seeds; seed++) {
    const noise = await measureNoise({ ...options, seed });
    movesUnderNoise += noise.movesUnderNoise;
    plansUnderNoise += noise.plansUnderNoise;
    steps.push(...noise.steps);
  }
  return { movesUnderNoise, plansUnderNoise, steps };
}

export function countSteps(steps: readonly StepResult[]): StepCounts {
  const runsWith = (isSo: (plans: number) => boolean) =>
    steps.filter(({ movingPlans }) => isSo(movingPlans)).length;
  return {
    runs: steps.length,
    noPlan: runsWith((plans) => plans === 0),
    onePlan: runsWith((plans) => plans === 1),
    morePlans: runsWith((plans) => plans > 1),
    mostPlans: Math.max(...steps.map(({ movingPlans }) => movingPlans)),
    movesPerLeastMax: Math.max(...steps.map(({ movesPerLeast }) => movesPerLeast)),
  };
}
