/**
 * Stateless ways to map keys to weighted engines, as others do it: the weights of the moment decide alone. Each is a
 * function from weights (adding up to 1) to a map of sampled or exact places in the key space to engines.
 */
export interface Rival {
  /** Engine by place; places stand for equal shares of the keys. */
  map(weights: readonly number[]): Uint16Array;
}

/** An entry that no engine has taken yet. */
const FREE = 0xffff;

/** Two small numbers to 32 well-mixed bits (the finalizer of MurmurHash3). */
function mix(a: number, b: number): number {
  let x = (Math.imul(a + 1, 0x9e3779b1) ^ Math.imul(b + 1, 0x85ebca6b)) >>> 0;
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return (x ^ (x >>> 16)) >>> 0;
}

/** Weighted rendezvous (Thaler and Ravishankar; score -weight / ln u), over a sample of keys. */
export class WeightedRendezvous implements Rival {
  readonly #scores: Float64Array[];

  constructor(engines: number, keys = 4096) {
    this.#scores = Array.from({ length: engines }, (_, engine) =>
      Float64Array.from({ length: keys }, (_, key) => -1 / Math.log((mix(engine, key) + 0.5) / 2 ** 32)),
    );
  }

  map(weights: readonly number[]): Uint16Array {
    const keys = this.#scores[0]!.length;
    const result = new Uint16Array(keys);
    for (let key = 0; key < keys; key++) {
      let best = -1;
      for (let engine = 0; engine < weights.length; engine++) {
        const score = weights[engine]! * this.#scores[engine]![key]!;
        if (score > best) {
          best = score;
          result[key] = engine;
        }
      }
    }
    return result;
  }
}

/** Maglev (NSDI 2016) with weights as in Envoy: an engine takes turns in proportion to its weight. */
export class Maglev implements Rival {
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

/**
 * Ring hash with points in proportion to weight, as many as Envoy makes by default (so that the lightest engine has a
 * whole number of at least `minSize` x weight), over a sample of keys.
 */
export class RingHash implements Rival {
  readonly #keys: Uint32Array;
  readonly #minSize: number;

  constructor(keys = 16384, minSize = 1024) {
    this.#keys = Uint32Array.from({ length: keys }, (_, key) => Math.floor(((key + 0.5) / keys) * 2 ** 32));
    this.#minSize = minSize;
  }

  map(weights: readonly number[]): Uint16Array {
    const lightest = Math.min(...weights.filter((weight) => weight > 0));
    const scale = Math.ceil(lightest * this.#minSize) / lightest;
    const ring = weights
      .flatMap((weight, engine) =>
        Array.from({ length: Math.round(weight * scale) }, (_, point) => ({
          at: mix(engine + 1000, point),
          engine,
        })),
      )
      .sort((a, b) => a.at - b.at);
    const result = new Uint16Array(this.#keys.length);
    let next = 0;
    this.#keys.forEach((key, index) => {
      while (next < ring.length && ring[next]!.at < key) next++;
      result[index] = ring[next % ring.length]!.engine;
    });
    return result;
  }
}
