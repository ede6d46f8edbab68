import { choicesOf, rowOf } from './choices.js';
import { normalised, ranked, usable } from './hashing.js';
import type { PolicyFactory, Telemetry } from './policy.js';

export interface ProportionalOptions {
  /** Relative change of a weight per period and relative distance from the average. */
  readonly gain: number;
  /** Share of a new signal in the smoothed one. */
  readonly smoothing: number;
}

/** A weight never falls below this, so that the engine keeps being measured. */
const LEAST_WEIGHT = 0.01;
/** The step of one period is bounded by this share of the weight. */
const LARGEST_STEP = 0.5;

/**
 * The old design of the talk: engine signals are smoothed, each engine gets a score against the fleet average, and
 * every frontend nudges its weights by the score, period after period. The signal is the time to the answer that
 * frontends measured, network included. True gain, period and delay of the original are not public; the sweep shows
 * the whole range. It starts with everything at the nearest engine.
 */
export function proportional({ gain, smoothing }: ProportionalOptions, id = 'proportional'): PolicyFactory {
  return ({ scenario, local }) => {
    const choices = choicesOf(scenario);
    const smoothed = choices.map((rows) => rows.map(() => scenario.engines.map(() => Number.NaN)));
    let weights: (readonly number[])[][] = choices.map((rows, frontend) =>
      rows.map((engines) => {
        const rtt = scenario.rttMs[frontend]!;
        const least = Math.min(...engines.map((engine) => rtt[engine]!));
        return normalised(
          rtt.map((ms, engine) => (engines.includes(engine) ? (ms === least ? 1 : LEAST_WEIGHT) : 0)),
        );
      }),
    );
    const nudged = (
      row: readonly number[],
      signal: readonly number[],
      engines: Telemetry['engines'],
    ): readonly number[] => {
      const average = weightedMean(signal, row);
      if (Number.isNaN(average)) return row;
      return normalised(
        row.map((weight, engine) => {
          if (weight === 0) return 0;
          const value = signal[engine]!;
          const score = Number.isNaN(value) ? 0 : (average - value) / average;
          const step = Math.max(-LARGEST_STEP, Math.min(LARGEST_STEP, gain * score));
          return engines[engine]!.ready ? Math.max(LEAST_WEIGHT, weight * (1 + step)) : LEAST_WEIGHT;
        }),
      );
    };
    return {
      id,
      update({ engines, e2eSeconds }) {
        weights = weights.map((rows, frontend) =>
          rows.map((row, pool) => {
            const signal = smoothed[frontend]![pool]!;
            e2eSeconds[frontend]![pool]!.forEach((seconds, engine) => {
              if (Number.isNaN(seconds)) return;
              const last = signal[engine]!;
              signal[engine] = Number.isNaN(last) ? seconds : last + smoothing * (seconds - last);
            });
            return nudged(row, signal, engines);
          }),
        );
      },
      decide: (request) =>
        ranked(request.conversation.hash, usable(rowOf(weights, request), local.ready[request.frontend]!)),
      weights: (frontend, pool) => weights[frontend]![pool],
    };
  };
}

function weightedMean(values: readonly number[], weights: readonly number[]): number {
  let sum = 0;
  let total = 0;
  values.forEach((value, index) => {
    if (Number.isNaN(value)) return;
    sum += weights[index]! * value;
    total += weights[index]!;
  });
  return sum / total;
}
