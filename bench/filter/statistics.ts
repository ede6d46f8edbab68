import { Random } from '../../simulator/random.js';

/** A figure with its 95 % interval. */
export interface Estimate {
  readonly value: number;
  readonly low: number;
  readonly high: number;
}

const RESAMPLES = 2000;

/**
 * A figure made of rounds, with a bootstrap interval: `figure` is given the numbers of the rounds to use, with
 * repetitions. What was measured in one round stays together, so that a machine that was slow for a while is slow for
 * everything that is compared.
 */
export function estimate(rounds: number, figure: (chosen: readonly number[]) => number): Estimate {
  const random = new Random(rounds, 'bootstrap');
  const all = Array.from({ length: rounds }, (_, round) => round);
  const resampled = Array.from({ length: RESAMPLES }, () =>
    figure(all.map(() => Math.floor(random.unit() * rounds))),
  );
  resampled.sort((a, b) => a - b);
  return { value: figure(all), low: quantile(resampled, 0.025), high: quantile(resampled, 0.975) };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Nearest rank of sorted values. */
export function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!;
}
