import { mix } from '../../simulator/policies/hashing.js';

/**
 * Stateless ways to map keys to weighted engines, as others do it: the weights of the moment decide alone. Each is a
 * function from weights (adding up to 1) to a map of sampled or exact places in the key space to engines.
 */
export interface Rival {
  /** Engine by place; places stand for equal shares of the keys. */
  map(weights: readonly number[]): Uint16Array;
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
