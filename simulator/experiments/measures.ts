import { meanOf, quantile } from '../load/statistics.js';
import type { ClassRecord, Recorder } from '../virtual/recorder.js';
import type { Scenario } from '../virtual/scenario.js';

/** How weights moved once nothing outside did. */
export type Oscillation = Pick<Measures, 'amplitude' | 'reversals' | 'basis'>;

/** Single figures of a run; those that do not apply are null. */
export interface Figures {
  readonly requests: number;
  readonly meanE2eMs: number;
  readonly p50E2eMs: number;
  readonly p90E2eMs: number;
  readonly p99E2eMs: number;
  readonly p999E2eMs: number;
  readonly meanTtftMs: number;
  readonly p50TtftMs: number;
  readonly p90TtftMs: number;
  readonly p99TtftMs: number;
  readonly p999TtftMs: number;
  readonly meanTbotMs: number;
  readonly p99TbotMs: number;
  /** 0..1, share of the requests that were served within the SLO. */
  readonly goodput: number;
  /** Such requests per second. */
  readonly goodputRps: number;
  readonly cacheHitShare: number;
  readonly cacheHitTokens: number;
  /** 0..1, follow-ups that were served elsewhere than the turn before. */
  readonly movedShare: number;
  /** Moved follow-ups per total variation of the weights between the two turns; null where weights stood still. */
  readonly movesPerTv: number | null;
  /** Total variation of the weights, mean over frontends, once the scenario has settled. */
  readonly tvPerMinute: number | null;
  /** Largest swing of a weight between two turning points, 0..1; swings within the dead band are none. */
  readonly amplitude: number;
  /** Turning points per hour, over all weights of all frontends. */
  readonly reversals: number;
  /** From the last outside change until no weight is further from where it ends than the dead band. */
  readonly settlingSeconds: number | null;
  readonly shedShare: number;
  readonly failedShare: number;
  /** Further tries of clients. */
  readonly clientRetriesPerRequest: number;
  /** Further engines that frontends tried. */
  readonly failoversPerRequest: number;
  /** Largest over smallest mean time to the answer of a frontend. */
  readonly frontendSpread: number;
  /** Requests sent to the busiest engine, over what it can answer as operators take it. */
  readonly peakLoad: number;
  /** 1 if a profile was taken for wrong; null for policies without profiles. */
  readonly driftDetected: number | null;
}

/** Figures that are told of each class, too. */
export const CLASS_MEASURES = ['meanE2eMs', 'p99E2eMs', 'goodput', 'shedShare', 'failedShare'] as const;

/** NaN where a class had no requests. */
export type ClassFigures = Pick<Figures, (typeof CLASS_MEASURES)[number]>;

/** What one run showed. */
export interface Measures extends Figures {
  /** Weights as set, or shares of the requests where a policy has none. */
  readonly basis: 'weights' | 'flows';
  /** By id of a class; `all` where there are none. */
  readonly byClass: Readonly<Record<string, ClassFigures>>;
  /** Requests sent over what it can answer, by replica. */
  readonly loadByEngine: Readonly<Record<string, number>>;
}

/** Figures by name, each with the digits that are worth printing. */
export const FIGURE_DIGITS: Readonly<Record<keyof Figures, number>> = {
  meanE2eMs: 1,
  p99E2eMs: 1,
  p50TtftMs: 1,
  p99TtftMs: 1,
  goodput: 5,
  cacheHitShare: 5,
  movesPerTv: 3,
  amplitude: 4,
  reversals: 1,
  shedShare: 5,
  p50E2eMs: 1,
  p90E2eMs: 1,
  p999E2eMs: 1,
  meanTtftMs: 1,
  p90TtftMs: 1,
  p999TtftMs: 1,
  meanTbotMs: 2,
  p99TbotMs: 2,
  goodputRps: 2,
  cacheHitTokens: 0,
  movedShare: 5,
  tvPerMinute: 4,
  settlingSeconds: 0,
  failedShare: 5,
  clientRetriesPerRequest: 5,
  failoversPerRequest: 5,
  frontendSpread: 3,
  peakLoad: 3,
  driftDetected: 0,
  requests: 0,
};

export const MEASURE_NAMES = Object.keys(FIGURE_DIGITS) as readonly (keyof Figures)[];

/** Expected moves below which their ratio says nothing. */
const LEAST_MOVES = 20;

export function measure(scenario: Scenario, recorder: Recorder): Measures {
  const { e2eSeconds, ttftSeconds, tbotSeconds, requests, ends, byClass, load } = recorder;
  const [e2e, ttft, tbot] = [e2eSeconds, ttftSeconds, tbotSeconds].map((values) =>
    Float64Array.from(values).sort(),
  ) as [Float64Array, Float64Array, Float64Array];
  const at = (sorted: Float64Array, q: number) =>
    1000 * (sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? Number.NaN);
  const means = recorder.frontendE2eSeconds.filter((values) => values.length > 0).map(meanOf);
  const loads = scenario.engines.map(
    ({ nominalRps }, engine) => load[engine]! / (nominalRps * scenario.seconds),
  );
  return {
    requests,
    meanE2eMs: 1000 * meanOf(e2eSeconds),
    p50E2eMs: at(e2e, 0.5),
    p90E2eMs: at(e2e, 0.9),
    p99E2eMs: at(e2e, 0.99),
    p999E2eMs: at(e2e, 0.999),
    meanTtftMs: 1000 * meanOf(ttftSeconds),
    p50TtftMs: at(ttft, 0.5),
    p90TtftMs: at(ttft, 0.9),
    p99TtftMs: at(ttft, 0.99),
    p999TtftMs: at(ttft, 0.999),
    meanTbotMs: 1000 * meanOf(tbotSeconds),
    p99TbotMs: at(tbot, 0.99),
    goodput: recorder.good / requests,
    goodputRps: recorder.good / scenario.seconds,
    cacheHitShare: recorder.cachedTokens / recorder.promptTokens,
    cacheHitTokens: recorder.cachedTokens,
    movedShare: recorder.followUps === 0 ? 0 : recorder.moved / recorder.followUps,
    movesPerTv: recorder.expectedMoves < LEAST_MOVES ? null : recorder.moved / recorder.expectedMoves,
    tvPerMinute: tvPerMinute(scenario, recorder),
    ...oscillation(scenario, recorder),
    settlingSeconds: settlingSeconds(scenario, recorder),
    shedShare: ends.shed / requests,
    failedShare: (ends.failed + ends.timeout) / requests,
    clientRetriesPerRequest: recorder.clientRetries / requests,
    failoversPerRequest: recorder.failovers / requests,
    frontendSpread: Math.max(...means) / Math.min(...means),
    peakLoad: Math.max(...loads),
    driftDetected: recorder.driftDetected === undefined ? null : Number(recorder.driftDetected),
    byClass: Object.fromEntries(
      byClass.map((record, index) => [scenario.classes?.[index]?.id ?? 'all', classFigures(record)]),
    ),
    loadByEngine: Object.fromEntries(scenario.engines.map(({ id }, index) => [id, loads[index]!])),
  };
}

function classFigures({ ends, e2eSeconds, good }: ClassRecord): ClassFigures {
  const requests = e2eSeconds.length;
  return {
    meanE2eMs: 1000 * meanOf(e2eSeconds),
    p99E2eMs: 1000 * quantile(e2eSeconds, 0.99),
    goodput: good / requests,
    shedShare: ends.shed / requests,
    failedShare: (ends.failed + ends.timeout) / requests,
  };
}

type Weighted = Omit<Recorder['samples'][number], 'weights'> & {
  readonly weights: readonly (readonly number[])[];
};

/** Samples in which every frontend has weights; none for policies without. */
function weightedSamples(
  scenario: Scenario,
  { samples }: Pick<Recorder, 'samples'>,
  from: number,
): Weighted[] {
  const end = scenario.warmupSeconds + scenario.seconds;
  return samples.flatMap((sample) => {
    const weights = sample.weights.filter((row) => row !== undefined);
    const isWhole = weights.length === sample.weights.length;
    return isWhole && sample.atSeconds > from && sample.atSeconds <= end ? [{ ...sample, weights }] : [];
  });
}

function tvPerMinute(scenario: Scenario, recorder: Pick<Recorder, 'samples'>): number | null {
  const samples = weightedSamples(scenario, recorder, scenario.settledFrom);
  if (samples.length < 2) return null;
  let sum = 0;
  for (let at = 1; at < samples.length; at++) {
    samples[at]!.weights.forEach((row, frontend) => {
      const before = samples[at - 1]!.weights[frontend]!;
      sum += row.reduce((all, weight, engine) => all + Math.abs(weight - before[engine]!), 0) / 2;
    });
  }
  const minutes = (samples.at(-1)!.atSeconds - samples[0]!.atSeconds) / 60;
  return sum / scenario.frontends.length / minutes;
}

function settlingSeconds(scenario: Scenario, recorder: Pick<Recorder, 'samples'>): number | null {
  const { lastChangeAt } = scenario;
  if (lastChangeAt === undefined) return null;
  const samples = weightedSamples(scenario, recorder, lastChangeAt);
  const last = samples.at(-1);
  if (last === undefined) return null;
  const isAway = ({ weights }: Weighted) =>
    weights.some((row, frontend) =>
      row.some((weight, engine) => Math.abs(weight - last.weights[frontend]![engine]!) > DEAD_BAND),
    );
  const away = samples.findLast(isAway);
  return away === undefined ? 0 : away.atSeconds - lastChangeAt;
}

/** Changes of weights that count, and standard deviations of a sampled share that do. */
const DEAD_BAND = 0.02;
const DEAD_SIGMAS = 6;

/** Turning points of all weights after the scenario has settled. */
function oscillation(scenario: Scenario, { samples }: Pick<Recorder, 'samples'>): Oscillation {
  const end = scenario.warmupSeconds + scenario.seconds;
  const settled = samples.filter(({ atSeconds }) => atSeconds > scenario.settledFrom && atSeconds <= end);
  const hours = (end - scenario.settledFrom) / 3600;
  const basis = settled.every(({ weights }) => weights.every(Boolean)) ? 'weights' : 'flows';
  let amplitude = 0;
  let reversals = 0;
  scenario.frontends.forEach((_, frontend) => {
    const totals = settled.map(({ sent }) => sent[frontend]!.reduce((a, b) => a + b, 0));
    scenario.engines.forEach((_, engine) => {
      const series = settled.map(({ weights, sent }, index) =>
        basis === 'weights'
          ? weights[frontend]![engine]!
          : sent[frontend]![engine]! / Math.max(1, totals[index]!),
      );
      // Requests of one conversation come together: the widest a share can spread by chance is that of 0.5.
      const sampling = DEAD_SIGMAS * Math.sqrt(0.25 / Math.max(1, quantile(totals, 0.5)));
      const swings = turningPoints(series, basis === 'weights' ? DEAD_BAND : sampling);
      amplitude = Math.max(amplitude, swings.largest);
      reversals += swings.turns;
    });
  });
  return { amplitude, reversals: reversals / hours, basis };
}

/** Swings of a series that exceed the band: the largest one, and how often the direction changes. */
export function turningPoints(series: readonly number[], band: number): { largest: number; turns: number } {
  let low = series[0] ?? 0;
  let high = low;
  let direction = 0;
  let turns = 0;
  let largest = 0;
  for (const value of series) {
    if (direction >= 0 && value > high) high = value;
    if (direction <= 0 && value < low) low = value;
    const rises = direction <= 0 && value - low > band;
    const falls = direction >= 0 && high - value > band;
    if (rises || falls) {
      if (direction !== 0) turns++;
      direction = rises ? 1 : -1;
      if (rises) high = value;
      else low = value;
    }
    if (direction !== 0) largest = Math.max(largest, high - low);
  }
  return { largest, turns };
}
