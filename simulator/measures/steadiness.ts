import { quantile } from '../load/statistics.js';
import { rowsOf, type Scenario } from '../scenario.js';
import type { Recorder, Sample } from '../virtual/recorder.js';
import type { Measures } from './measures.js';

/** Changes of weights that count, and standard deviations of a sampled share that do. */
const DEAD_BAND = 0.02;
const DEAD_SIGMAS = 6;

type Weighted = Omit<Sample, 'weights'> & {
  readonly weights: readonly (readonly number[])[];
};

/** Indices of the rows that requests came to: weights of others move without harm. */
function usedRows(scenario: Scenario, samples: readonly Sample[]): number[] {
  return rowsOf(scenario).flatMap((_, row) =>
    samples.some(({ sent }) => sent[row]!.some((count) => count > 0)) ? [row] : [],
  );
}

/** Samples in which every row has weights; none for policies without. */
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

/** Mean over rows, once the scenario has settled; null for policies without weights. */
export function tvPerMinute(scenario: Scenario, recorder: Pick<Recorder, 'samples'>): number | null {
  const samples = weightedSamples(scenario, recorder, scenario.settledFrom);
  if (samples.length < 2) return null;
  const rows = usedRows(scenario, recorder.samples);
  let sum = 0;
  for (let at = 1; at < samples.length; at++) {
    for (const row of rows) {
      const before = samples[at - 1]!.weights[row]!;
      const now = samples[at]!.weights[row]!;
      sum += now.reduce((all, weight, engine) => all + Math.abs(weight - before[engine]!), 0) / 2;
    }
  }
  const minutes = (samples.at(-1)!.atSeconds - samples[0]!.atSeconds) / 60;
  return sum / rows.length / minutes;
}

/** From the last outside change on; null where there is none, and for policies without weights. */
export function settlingSeconds(scenario: Scenario, recorder: Pick<Recorder, 'samples'>): number | null {
  const { lastChangeAt } = scenario;
  if (lastChangeAt === undefined) return null;
  const samples = weightedSamples(scenario, recorder, lastChangeAt);
  const last = samples.at(-1);
  if (last === undefined) return null;
  const rows = usedRows(scenario, recorder.samples);
  const isAway = ({ weights }: Weighted) =>
    rows.some((row) =>
      weights[row]!.some((weight, engine) => Math.abs(weight - last.weights[row]![engine]!) > DEAD_BAND),
    );
  const away = samples.findLast(isAway);
  return away === undefined ? 0 : away.atSeconds - lastChangeAt;
}

/** How weights moved once nothing outside did: turning points of all weights after the scenario has settled. */
export function oscillation(
  scenario: Scenario,
  { samples }: Pick<Recorder, 'samples'>,
): Pick<Measures, 'amplitude' | 'reversals' | 'basis'> {
  const end = scenario.warmupSeconds + scenario.seconds;
  const settled = samples.filter(({ atSeconds }) => atSeconds > scenario.settledFrom && atSeconds <= end);
  const hours = (end - scenario.settledFrom) / 3600;
  const basis = settled.every(({ weights }) => weights.every(Boolean)) ? 'weights' : 'flows';
  let amplitude = 0;
  let reversals = 0;
  for (const row of usedRows(scenario, samples)) {
    const totals = settled.map(({ sent }) => sent[row]!.reduce((a, b) => a + b, 0));
    scenario.engines.forEach((_, engine) => {
      const series = settled.map(({ weights, sent }, index) =>
        basis === 'weights' ? weights[row]![engine]! : sent[row]![engine]! / Math.max(1, totals[index]!),
      );
      // Requests of one conversation come together: the widest a share can spread by chance is that of 0.5.
      const sampling = DEAD_SIGMAS * Math.sqrt(0.25 / Math.max(1, quantile(totals, 0.5)));
      const swings = turningPoints(series, basis === 'weights' ? DEAD_BAND : sampling);
      amplitude = Math.max(amplitude, swings.largest);
      reversals += swings.turns;
    });
  }
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
