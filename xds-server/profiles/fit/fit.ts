import { tbotSeconds, ttftSeconds } from '../curves.js';
import { type Profile, type TbotCurve, type TtftCurve, workSeconds } from '../profile.js';
import { type Capacity, capacityOf } from './capacity.js';
import { type CurvePoint, fitTbot, fitTtft, minStages } from './curve-fit.js';
import type { Observation } from './observation.js';
import type { FitResult, FittedStage, ParameterRanges, Range } from './result.js';
import { classify, type Stage } from './stage.js';
import { warningsOf } from './warnings.js';
import { fitWork, sizeStep, varies, type WorkFit } from './work.js';

/**
 * A profile from the stages of a benchmark, per replica. The result does not depend on the order of the observations.
 */
export function fitProfile(id: string, observations: readonly Observation[]): FitResult {
  const groups = bySize(observations).map((group) => classify(group));
  const capacities = groups.map(capacityOf);
  const work = workFrom(capacities);
  const stages = groups.flatMap((group, index) =>
    group.map((stage) => placeOnRho(stage, capacities[index]!, work)),
  );
  const perPromptToken = varies(
    stages.filter(shapesTtft).map((stage) => stage.observation.uncachedPromptTokens),
  );
  const fitted = fitCurves(stages, perPromptToken);
  const profile = work && fitted && toProfile(id, work, fitted, stages);
  const result = {
    id,
    profile,
    capacities,
    work,
    stages: profile === undefined ? stages : stages.map((stage) => withCurves(stage, profile)),
    ranges: profile && rangesOf(stages, capacities, perPromptToken),
  };
  return { ...result, warnings: warningsOf(result, fitted?.tbotBounded ?? false) };
}

function bySize(observations: readonly Observation[]): Observation[][] {
  const sorted = [...observations].sort(
    (a, b) =>
      a.uncachedPromptTokens - b.uncachedPromptTokens ||
      a.outputTokens - b.outputTokens ||
      a.offeredRps - b.offeredRps ||
      a.completedRps - b.completedRps ||
      a.place.localeCompare(b.place, 'en'),
  );
  const groups: Observation[][] = [];
  for (const observation of sorted) {
    const group = groups.find(([first]) => first !== undefined && sameSize(first, observation));
    if (group === undefined) groups.push([observation]);
    else group.push(observation);
  }
  return groups.map((group) => group.sort((a, b) => a.offeredRps - b.offeredRps));
}

function sameSize(a: Observation, b: Observation): boolean {
  const near = (x: number, y: number) => Math.max(x, y) <= sizeStep * Math.min(x, y);
  return near(a.uncachedPromptTokens, b.uncachedPromptTokens) && near(a.outputTokens, b.outputTokens);
}

/** Of one size even a lower bound tells something; of several, only sizes measured to the limit can be compared. */
function workFrom(capacities: readonly Capacity[]): WorkFit | undefined {
  if (capacities.length === 1) return fitWork(capacities);
  const saturated = capacities.filter((capacity) => capacity.saturated);
  return saturated.length < 2 ? undefined : fitWork(saturated);
}

function placeOnRho(stage: Stage, capacity: Capacity, work: WorkFit | undefined): FittedStage {
  const { observation } = stage;
  const seconds = work === undefined ? 1 / capacity.requestsPerSecond : workSeconds(work, observation);
  const rho = observation.offeredRps * seconds;
  const full = stage.use === 'curves' && capacity.saturated && rho >= 1;
  return { ...stage, use: full ? 'overload' : stage.use, rho, ttft: undefined, tbot: undefined };
}

interface Curves {
  readonly ttft: TtftCurve;
  readonly tbot: TbotCurve;
  readonly tbotBounded: boolean;
}

function fitCurves(stages: readonly FittedStage[], perPromptToken: boolean): Curves | undefined {
  const ttftPoints = stages.filter(shapesTtft).map((stage) => pointOf(stage, stage.observation.ttftSeconds));
  const tbotPoints = stages.filter(shapesTbot).map((stage) => pointOf(stage, stage.tbotSeconds!));
  const minTtftStages = perPromptToken ? minStages + 1 : minStages;
  if (distinct(ttftPoints) < minTtftStages || distinct(tbotPoints) < minStages) return undefined;
  const tbot = fitTbot(tbotPoints);
  return { ttft: fitTtft(ttftPoints, perPromptToken), tbot: tbot.curve, tbotBounded: tbot.bounded };
}

/** At rho = 1, the best stage of a run that never filled the engine, a queue's wait has no finite value to fit. */
function shapesTtft(stage: FittedStage): boolean {
  return stage.use === 'curves' && stage.rho < 1;
}

function shapesTbot(stage: FittedStage): boolean {
  return stage.use === 'curves' && stage.tbotSeconds !== undefined;
}

function pointOf({ rho, observation }: FittedStage, seconds: number): CurvePoint {
  return { rho, uncachedPromptTokens: observation.uncachedPromptTokens, seconds };
}

function distinct(points: readonly CurvePoint[]): number {
  return new Set(points.map(({ rho }) => rho)).size;
}

function toProfile(id: string, { work }: WorkFit, curves: Curves, stages: readonly FittedStage[]): Profile {
  const maxFittedRho = Math.max(...stages.filter(shapesTtft).map(({ rho }) => rho));
  return { id, work, ttft: curves.ttft, tbot: curves.tbot, maxFittedRho };
}

function withCurves(stage: FittedStage, profile: Profile): FittedStage {
  const { observation, rho } = stage;
  if (rho >= 1 && stage.use !== 'curves') return stage;
  const ttft = ttftSeconds(profile, rho, observation.uncachedPromptTokens);
  const tbot = tbotSeconds(profile, rho);
  return {
    ...stage,
    ttft:
      rho < 1
        ? { seconds: ttft, error: ttft / observation.ttftSeconds - 1, used: shapesTtft(stage) }
        : undefined,
    tbot:
      stage.tbotSeconds === undefined
        ? undefined
        : { seconds: tbot, error: tbot / stage.tbotSeconds - 1, used: shapesTbot(stage) },
  };
}

function rangesOf(
  stages: readonly FittedStage[],
  capacities: readonly Capacity[],
  perPromptToken: boolean,
): ParameterRanges | undefined {
  const leftOut = stages
    .filter((stage) => stage.use === 'curves')
    .map((left) =>
      fitCurves(
        stages.filter((stage) => stage !== left),
        perPromptToken,
      ),
    );
  if (!leftOut.every((fit) => fit !== undefined)) return undefined;
  const fits = [...leftOut, ...capacityEnds(stages, capacities, perPromptToken)];
  const range = (value: (curves: Curves) => number): Range => {
    const values = fits.map(value);
    return { low: Math.min(...values), high: Math.max(...values) };
  };
  return {
    ttft: {
      baseSeconds: range(({ ttft }) => ttft.baseSeconds),
      secondsPerUncachedPromptToken: range(({ ttft }) => ttft.secondsPerUncachedPromptToken),
      queueSeconds: range(({ ttft }) => ttft.queueSeconds),
    },
    tbot: {
      baseSeconds: range(({ tbot }) => tbot.baseSeconds),
      kappa: range(({ tbot }) => tbot.kappa),
    },
  };
}

/** The curves if the true capacity were at either end of its interval: near capacity, TTFT hangs on it most. */
function capacityEnds(
  stages: readonly FittedStage[],
  capacities: readonly Capacity[],
  perPromptToken: boolean,
): Curves[] {
  const [capacity] = capacities;
  if (capacities.length !== 1 || capacity?.interval === undefined) return [];
  const { interval, requestsPerSecond } = capacity;
  return [interval.low, interval.high].flatMap((end) => {
    const moved = stages.map((stage) => ({ ...stage, rho: (stage.rho * requestsPerSecond) / end }));
    const fit = fitCurves(
      moved.filter(({ rho }) => rho < 1),
      perPromptToken,
    );
    return fit === undefined ? [] : [fit];
  });
}
