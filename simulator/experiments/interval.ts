/** Two-sided 95 % quantiles of Student's t by degrees of freedom, from 1. */
const T95 = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131,
  2.12, 2.11, 2.101, 2.093, 2.086,
];

/** A mean over seeds, and half the width of its 95 % confidence interval (NaN for a single seed). */
export interface Estimate {
  readonly mean: number;
  readonly halfWidth: number;
}

export function estimate(values: readonly number[]): Estimate {
  const count = values.length;
  const mean = values.reduce((a, b) => a + b, 0) / count;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (count - 1);
  const t = T95[count - 2] ?? 1.96;
  return { mean, halfWidth: count < 2 ? Number.NaN : t * Math.sqrt(variance / count) };
}
