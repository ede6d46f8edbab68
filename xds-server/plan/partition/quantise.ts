/** Weights below this share, about one request in a million, count as 0: a segment of that size would help nobody. */
export const MIN_WEIGHT = 2 ** -20;

/**
 * Splits `total` into integer lengths in proportion to `weights` (any non-negative scale), exactly: lengths add up
 * to `total`. Rounding is by largest remainder, ties go to the lower index, so the result depends on nothing but the
 * arguments. Weights whose share is below `MIN_WEIGHT` get 0.
 *
 * Throws RangeError when a weight is negative or not finite, or when all are 0 while `total` is not.
 */
export function quantise(weights: readonly number[], total: number): number[] {
  const lengths = new Array<number>(weights.length).fill(0);
  if (total === 0) return lengths;
  const kept = withoutDust(weights);
  const sum = kept.reduce((partial, weight) => partial + weight, 0);
  if (!(sum > 0)) throw new RangeError('no weight is above 0');

  const remainders: { index: number; remainder: number }[] = [];
  let assigned = 0;
  kept.forEach((weight, index) => {
    if (weight === 0) return;
    const exact = (weight / sum) * total;
    const length = Math.floor(exact);
    lengths[index] = length;
    assigned += length;
    remainders.push({ index, remainder: exact - length });
  });
  remainders.sort((a, b) => b.remainder - a.remainder || a.index - b.index);
  // Rounding of the divisions can leave a few points too many as well as too few.
  const step = assigned <= total ? 1 : -1;
  if (step < 0) remainders.reverse();
  for (let i = 0; assigned !== total; i = (i + 1) % remainders.length) {
    const { index } = remainders[i]!;
    if (lengths[index]! + step < 0) continue;
    lengths[index]! += step;
    assigned += step;
  }
  return lengths;
}

/** Weights scaled to a sum of 1, those below the floor replaced by 0. */
function withoutDust(weights: readonly number[]): number[] {
  let largest = 0;
  for (const weight of weights) {
    if (!(weight >= 0) || weight === Number.POSITIVE_INFINITY) {
      throw new RangeError(`a weight must be finite and not negative, got ${weight}`);
    }
    largest = Math.max(largest, weight);
  }
  if (largest === 0) throw new RangeError('no weight is above 0');
  // Dividing by the largest first keeps sums of huge or denormal weights finite.
  const scaled = weights.map((weight) => weight / largest);
  const sum = scaled.reduce((partial, weight) => partial + weight, 0);
  return scaled.map((weight) => (weight / sum < MIN_WEIGHT ? 0 : weight / sum));
}
