/** Half the sum of what two rows of weights differ by. The arrays must not change: each pair is looked at once. */
export class TotalVariation {
  readonly #known = new WeakMap<readonly number[], WeakMap<readonly number[], number>>();

  between(a: readonly number[], b: readonly number[]): number {
    if (a === b) return 0;
    let known = this.#known.get(a);
    if (!known) {
      known = new WeakMap();
      this.#known.set(a, known);
    }
    let value = known.get(b);
    if (value === undefined) {
      value = a.reduce((sum, weight, index) => sum + Math.abs(weight - b[index]!), 0) / 2;
      known.set(b, value);
    }
    return value;
  }
}
