/** NaN for no values. */
export function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Smallest value that at least the share `q` of the values does not exceed; NaN for no values. */
export function quantile(values: readonly number[], q: number): number {
  return quantileOfSorted(Float64Array.from(values).sort(), q);
}

/** The same of values in order. */
export function quantileOfSorted(sorted: Float64Array, q: number): number {
  return sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? Number.NaN;
}
