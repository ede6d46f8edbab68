import { mean } from '../../collections.js';
import { percent } from '../../percent.js';
import { minStages } from './curve-fit.js';
import type { FitResult, Fitted, FittedStage, FitWarning, FitWarningCode } from './result.js';
import { trueTbot } from './stage.js';

/** Errors of a curve above this are told; the published fits that the forms come from stay below it. */
const misfit = 0.1;

/** A fit that saw no stage above this utilisation says little about a loaded engine. */
const wideRange = 0.6;

/** Stages shorter than this, or than ten answers, are ramp and drain to a good part. */
const shortStageSeconds = 30;
const shortStageAnswers = 10;

/**
 * More answers than requests, beyond this share and this many standard deviations of a Poisson count, is no chance:
 * the two rates count different things.
 */
const excessAnswers = 0.2;
const chanceDeviations = 4;

type Unwarned = Omit<FitResult, 'warnings'>;

/** Everything a reader must know about the data and the fit. */
export function warningsOf(result: Unwarned, kappaBounded: boolean): FitWarning[] {
  const checks: readonly [FitWarningCode, string | undefined][] = [
    ['closed-loop', closedLoop(result)],
    ['too-few-stages', tooFewStages(result)],
    ['unsaturated', unsaturated(result)],
    ['single-saturated-stage', singleSaturatedStage(result)],
    ['collapse', collapse(result)],
    ['short-stages', shortStages(result)],
    ['contradictory-rates', contradictoryRates(result)],
    ['doubled-tbot', recomputedTbot(result, true)],
    ['contradictory-tbot', recomputedTbot(result, false)],
    ['medians', medians(result)],
    ['narrow-range', narrowRange(result)],
    ['one-size', oneSize(result)],
    ['work-misfit', workMisfit(result)],
    ['ttft-misfit', ttftMisfit(result)],
    ['tbot-misfit', tbotMisfit(result)],
    ['kappa-bound', kappaBounded ? kappaBound : undefined],
  ];
  return checks.flatMap(([code, message]) => (message === undefined ? [] : [{ code, message }]));
}

const inShort = (share: number) => percent(share, Math.abs(share) < 0.1 ? 1 : 0);

function closedLoop({ stages, profile }: Unwarned): string | undefined {
  const closed = stages.filter(({ use }) => use === 'closed-loop').length;
  if (closed === 0) return undefined;
  const found =
    `${closed} of ${stages.length} stages ran with a fixed number of requests in flight or without pacing; they ` +
    'count for capacity only';
  if (profile !== undefined) return found;
  return (
    `${found}: no queue builds up as it does with users, so TTFT says nothing about waiting. Run a sweep of request ` +
    'rates for the curves (vllm bench serve --request-rate)'
  );
}

function tooFewStages({ stages, profile }: Unwarned): string | undefined {
  const usable = stages.filter(({ use }) => use === 'curves').length;
  if (profile === undefined) {
    return (
      `No profile: steady stages below capacity are ${usable}, at least ${minStages} at different rates are needed. ` +
      'Add stages at request rates between a tenth and nine tenths of the capacity'
    );
  }
  return usable > minStages
    ? undefined
    : `Only ${usable} stages shape the curves, so the errors say little. Add stages below capacity`;
}

function unsaturated({ capacities, work }: Unwarned): string | undefined {
  const open = capacities.filter(({ saturated }) => !saturated);
  if (open.length === 0) return undefined;
  if (capacities.length === 1) {
    return (
      'No stage offered more than the engine completed, so the capacity is only a lower bound: the true one is ' +
      'higher, and the curves rise too early. Add a stage at a rate that the engine cannot follow'
    );
  }
  const sizes = open.map((size) => `${Math.round(size.promptTokens)}/${Math.round(size.outputTokens)}`);
  return (
    `No stage reached the limit for prompt/output sizes ${sizes.join(', ')}; ` +
    (work === undefined
      ? 'at least two sizes must, to tell the work of tokens apart. Fit files of one size, or add overloaded stages'
      : 'their work comes from the other sizes')
  );
}

function singleSaturatedStage({ capacities }: Unwarned): string | undefined {
  return capacities.some(({ saturatedStages }) => saturatedStages === 1)
    ? 'One stage alone shows the capacity, so its spread is unknown. Add a second one at another rate above it'
    : undefined;
}

function collapse({ capacities }: Unwarned): string | undefined {
  const worst = Math.max(...capacities.map((capacity) => capacity.collapse));
  if (worst <= 0.1) return undefined;
  return (
    `Under overload the throughput falls by up to ${inShort(worst)} below the best stage: keep maxUtilization ` +
    'below 1 for this engine'
  );
}

function shortStages({ stages }: Unwarned): string | undefined {
  const short = stages.filter(({ observation, tbotSeconds }) => {
    const { durationSeconds, outputTokens } = observation;
    const least = Math.max(shortStageSeconds, shortStageAnswers * (outputTokens - 1) * (tbotSeconds ?? 0));
    return durationSeconds !== undefined && durationSeconds < least;
  });
  if (short.length === 0) return undefined;
  return (
    `${short.length} of ${stages.length} stages are shorter than ${shortStageSeconds} s or than ` +
    `${shortStageAnswers} answers one after another (first: ${short[0]!.observation.place}). Ramp and drain make ` +
    'their rates too low. Use more requests a stage'
  );
}

function contradictoryRates({ stages }: Unwarned): string | undefined {
  const excessive = stages.filter(({ observation: { offeredRps, completedRps, requests } }) => {
    const chance = requests === undefined ? 0 : chanceDeviations / Math.sqrt(requests);
    return completedRps > offeredRps * (1 + Math.max(excessAnswers, chance));
  });
  if (excessive.length === 0) return undefined;
  return (
    `${excessive.length} of ${stages.length} stages completed more than was offered (first: ` +
    `${excessive[0]!.observation.place}), so one of the rates counts something else: rates of several clients or ` +
    'replicas, tokens, or another stage. Correct it before this profile is used'
  );
}

function recomputedTbot({ stages }: Unwarned, doubled: boolean): string | undefined {
  const ratios = stages.flatMap(({ observation }) => {
    const { seconds, recomputed } = trueTbot(observation);
    return recomputed ? [seconds! / observation.reportedTbotSeconds!] : [];
  });
  const found = ratios.filter((ratio) => doubled === (ratio > 1.8 && ratio < 2.2));
  if (found.length === 0) return undefined;
  const average = mean(found);
  return (
    `In ${found.length} of ${stages.length} stages (E2E - TTFT) / (output tokens - 1) is ${average.toFixed(2)} times ` +
    `the reported time per token; the recomputed one is used.${doubled ? ' That happens when a tool counts two events a token' : ''}`
  );
}

function medians({ stages }: Unwarned): string | undefined {
  const count = stages.filter(({ observation }) => observation.statistic === 'median').length;
  if (count === 0) return undefined;
  return (
    `${count} of ${stages.length} stages report medians only. The optimizer sums means; under load they are higher. ` +
    'Report means'
  );
}

function narrowRange({ profile }: Unwarned): string | undefined {
  return profile === undefined || profile.maxFittedRho >= wideRange
    ? undefined
    : `No stage between rho ${profile.maxFittedRho.toFixed(2)} and 1 shapes the TTFT curve. Add some near capacity`;
}

function oneSize({ capacities, profile }: Unwarned): string | undefined {
  const [size] = capacities;
  if (profile === undefined || capacities.length !== 1 || size === undefined) return undefined;
  return (
    `One request size, ${Math.round(size.promptTokens)} prompt and ${Math.round(size.outputTokens)} output tokens: ` +
    'work counts requests, whatever their size. Sweep two or three sizes to tell prefill and decode apart'
  );
}

function workMisfit({ work }: Unwarned): string | undefined {
  return work === undefined || work.maxError <= misfit
    ? undefined
    : `Work linear in tokens misses a measured capacity by ${inShort(work.maxError)}`;
}

function ttftMisfit({ stages }: Unwarned): string | undefined {
  const worst = worstError(stages, ({ ttft }) => ttft);
  if (worst === undefined || worst.error <= misfit) return undefined;
  return (
    `The TTFT curve misses a measurement by ${inShort(worst.error)} (${worst.stage.observation.place}). ` +
    (isConcave(stages)
      ? 'Measured TTFT rises ever more slowly (concave), which no queue does; the curve must stay convex'
      : 'See the errors of all stages')
  );
}

function tbotMisfit({ stages }: Unwarned): string | undefined {
  const worst = worstError(stages, ({ tbot }) => tbot);
  if (worst === undefined || worst.error <= misfit) return undefined;
  return `The TBOT curve misses a measurement by ${inShort(worst.error)} (${worst.stage.observation.place})`;
}

const kappaBound =
  'TBOT grows as if it had no limit at capacity; kappa is held at its bound. The capacity is perhaps too high';

function worstError(
  stages: readonly FittedStage[],
  fittedOf: (stage: FittedStage) => Fitted | undefined,
): { stage: FittedStage; error: number } | undefined {
  let worst: { stage: FittedStage; error: number } | undefined;
  for (const stage of stages) {
    const fitted = fittedOf(stage);
    if (!fitted?.used) continue;
    const error = Math.abs(fitted.error);
    if (worst === undefined || error > worst.error) worst = { stage, error };
  }
  return worst;
}

/** Whether the measured TTFT rises less in the upper half of the load than in the lower. */
function isConcave(stages: readonly FittedStage[]): boolean {
  const used = stages.filter(({ ttft }) => ttft?.used).sort((a, b) => a.rho - b.rho);
  const [first, middle, last] = [used.at(0), used.at(Math.floor(used.length / 2)), used.at(-1)];
  if (first === undefined || middle === undefined || last === undefined) return false;
  return slope(middle, last) < slope(first, middle);
}

function slope(from: FittedStage, to: FittedStage): number {
  return (to.observation.ttftSeconds - from.observation.ttftSeconds) / (to.rho - from.rho);
}
