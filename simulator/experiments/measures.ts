import { meanOf, quantile } from '../load/statistics.js';
import type { Recorder } from '../virtual/recorder.js';
import type { Scenario } from '../virtual/scenario.js';

export interface Oscillation {
  /** Largest swing of a weight between two turning points, 0..1; swings within the dead band are none. */
  readonly amplitude: number;
  /** Turning points per hour, over all weights of all frontends. */
  readonly reversals: number;
  /** Weights as set, or shares of the requests where a policy has none. */
  readonly basis: 'weights' | 'flows';
}

/** What one run showed. */
export interface Measures {
  readonly requests: number;
  readonly meanE2eMs: number;
  readonly p50E2eMs: number;
  readonly p99E2eMs: number;
  readonly p999E2eMs: number;
  readonly p50TtftMs: number;
  readonly p99TtftMs: number;
  /** 0..1, share of the requests that were served within the SLO. */
  readonly goodput: number;
  readonly cacheHitShare: number;
  /** 0..1, follow-ups that were served elsewhere than the turn before. */
  readonly movedShare: number;
  /** Moved follow-ups per total variation of the weights between the two turns; null where weights stood still. */
  readonly movesPerTv: number | null;
  readonly oscillation: Oscillation;
  readonly shedShare: number;
  readonly failedShare: number;
  readonly clientRetriesPerRequest: number;
  /** Largest over smallest mean time to the answer of a frontend. */
  readonly frontendSpread: number;
}

/** Expected moves below which their ratio says nothing. */
const LEAST_MOVES = 20;

export function measure(scenario: Scenario, recorder: Recorder): Measures {
  const { e2eSeconds, ttftSeconds, requests, ends } = recorder;
  const e2e = Float64Array.from(e2eSeconds).sort();
  const ttft = Float64Array.from(ttftSeconds).sort();
  const at = (sorted: Float64Array, q: number) =>
    1000 * (sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? Number.NaN);
  const means = recorder.frontendE2eSeconds.map(meanOf);
  return {
    requests,
    meanE2eMs: 1000 * meanOf(e2eSeconds),
    p50E2eMs: at(e2e, 0.5),
    p99E2eMs: at(e2e, 0.99),
    p999E2eMs: at(e2e, 0.999),
    p50TtftMs: at(ttft, 0.5),
    p99TtftMs: at(ttft, 0.99),
    goodput: recorder.good / requests,
    cacheHitShare: recorder.cachedTokens / recorder.promptTokens,
    movedShare: recorder.moved / recorder.followUps,
    movesPerTv: recorder.expectedMoves < LEAST_MOVES ? null : recorder.moved / recorder.expectedMoves,
    oscillation: oscillation(scenario, recorder),
    shedShare: ends.shed / requests,
    failedShare: (ends.failed + ends.timeout) / requests,
    clientRetriesPerRequest: recorder.clientRetries / requests,
    frontendSpread: Math.max(...means) / Math.min(...means),
  };
}

/** Changes of weights that count, and standard deviations of a sampled share that do. */
const DEAD_BAND = 0.02;
const DEAD_SIGMAS = 6;

/** Turning points of all weights after the scenario has settled. */
export function oscillation(scenario: Scenario, { samples }: Pick<Recorder, 'samples'>): Oscillation {
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
