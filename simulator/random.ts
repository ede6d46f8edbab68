/** A seeded generator (mulberry32): the same seed gives the same run everywhere. */
export class Random {
  #state: number;

  /** `name` makes generators with one seed independent of each other. */
  constructor(seed: number, name = '') {
    let hash = 0x811c9dc5 ^ seed;
    for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
    this.#state = hash >>> 0;
  }

  /** 32 random bits. */
  bits(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (t ^ (t >>> 14)) >>> 0;
  }

  /** 0 <= x < 1. */
  unit(): number {
    return this.bits() / 2 ** 32;
  }

  exponential(mean: number): number {
    return -mean * Math.log(1 - this.unit());
  }

  /** Mean `shape`, by Marsaglia and Tsang (2000). */
  gamma(shape: number): number {
    if (shape < 1) return this.gamma(shape + 1) * this.unit() ** (1 / shape);
    const d = shape - 1 / 3;
    const c = 1 / Math.sqrt(9 * d);
    for (;;) {
      const x = this.normal();
      const v = (1 + c * x) ** 3;
      if (v > 0 && Math.log(1 - this.unit()) < (x * x) / 2 + d - d * v + d * Math.log(v)) return d * v;
    }
  }

  /** Mean 0, variance 1, by Box and Muller. */
  normal(): number {
    return Math.sqrt(-2 * Math.log(1 - this.unit())) * Math.cos(2 * Math.PI * this.unit());
  }

  between({ min, max }: Range): number {
    return min + (max - min) * this.unit();
  }

  /** A whole number, both ends included. */
  integer({ min, max }: Range): number {
    return min + Math.floor((max - min + 1) * this.unit());
  }

  /** The same items in another order. */
  shuffled<T>(items: readonly T[]): T[] {
    return items
      .map((item) => ({ item, place: this.unit() }))
      .sort((a, b) => a.place - b.place)
      .map(({ item }) => item);
  }
}

/** Equally likely from `min` to `max`. */
export interface Range {
  readonly min: number;
  readonly max: number;
}

export function mean({ min, max }: Range): number {
  return (min + max) / 2;
}
