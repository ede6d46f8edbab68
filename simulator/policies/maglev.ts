import { mix } from './hashing.js';

/** An entry that no engine has taken yet. */
const FREE = 0xffff;

/**
 * Maglev (Eisenbud et al., NSDI 2016) with weights as in Envoy: an engine takes turns in proportion to its weight.
 */
export class Maglev {
  readonly #size: number;
  /** Entries of the table in the order in which each engine wants them. */
  readonly #preferences: readonly Uint32Array[];

  /** `size`: entries of the table, a prime. Default 65537, as in Envoy. */
  constructor(engines: number, size = 65537) {
    this.#size = size;
    this.#preferences = Array.from({ length: engines }, (_, engine) => {
      const offset = mix(engine, 1) % size;
      const skip = (mix(engine, 2) % (size - 1)) + 1;
      return Uint32Array.from({ length: size }, (_, turn) => (offset + turn * skip) % size);
    });
  }

  /** Engine by entry of the table, which stand for equal shares of the keys; weights add up to 1. */
  map(weights: readonly number[]): Uint16Array {
    const table = new Uint16Array(this.#size).fill(FREE);
    const heaviest = Math.max(...weights);
    const turns = new Uint32Array(weights.length);
    const credit = new Float64Array(weights.length);
    for (let filled = 0; filled < this.#size; ) {
      for (let engine = 0; engine < weights.length && filled < this.#size; engine++) {
        credit[engine]! += weights[engine]! / heaviest;
        if (credit[engine]! < 1) continue;
        credit[engine]! -= 1;
        const preferences = this.#preferences[engine]!;
        let turn = turns[engine]!;
        while (table[preferences[turn]!] !== FREE) turn++;
        table[preferences[turn]!] = engine;
        turns[engine] = turn + 1;
        filled++;
      }
    }
    return table;
  }
}
