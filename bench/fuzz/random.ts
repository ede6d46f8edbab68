/** A small generator (xorshift32) whose draws a seed repeats. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0 || 1;
  }

  /** A whole number from 0 to `limit` - 1. */
  below(limit: number): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x >>> 0;
    return Math.floor((this.#state / 2 ** 32) * limit);
  }

  oneOf<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!;
  }
}
