import { MOST_ATTEMPTS } from './choices.js';

/** Mixes two 32-bit numbers to 32 well-mixed bits (the finalizer of MurmurHash3). */
export function mix(a: number, b: number): number {
  let x = (Math.imul(a ^ 0x9e3779b1, 0x85ebca6b) ^ Math.imul(b + 1, 0xc2b2ae35)) >>> 0;
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return (x ^ (x >>> 16)) >>> 0;
}

/**
 * Weighted rendezvous hashing (Thaler and Ravishankar 1998; weights as in Schindelhauer and Schomaker 2005: the
 * largest `-w / ln u` wins). Engines with weight 0 never win; -1 when there is no other.
 */
export function rendezvous(key: number, weights: readonly number[]): number {
  let best = -1;
  let bestScore = 0;
  for (let engine = 0; engine < weights.length; engine++) {
    const weight = weights[engine]!;
    if (weight <= 0) continue;
    const score = -weight / Math.log((mix(key, engine) + 0.5) / 2 ** 32);
    if (score <= bestScore) continue;
    bestScore = score;
    best = engine;
  }
  return best;
}

/** Weights with those of engines that are not ready set to 0; as they are when nobody is ready. */
export function usable(weights: readonly number[], ready: readonly boolean[]): readonly number[] {
  if (ready.every(Boolean)) return weights;
  const rest = weights.map((weight, engine) => (ready[engine] ? weight : 0));
  return rest.some((weight) => weight > 0) ? rest : weights;
}

/** Engines to try in turn: the one that wins by weighted rendezvous, and those that would without it. */
export function ranked(key: number, weights: readonly number[]): number[] {
  const rest = [...weights];
  const engines: number[] = [];
  while (engines.length < MOST_ATTEMPTS) {
    const engine = rendezvous(key, rest);
    if (engine < 0) break;
    engines.push(engine);
    rest[engine] = 0;
  }
  return engines;
}

export function normalised(values: readonly number[]): number[] {
  const sum = values.reduce((a, b) => a + b, 0);
  return values.map((value) => value / sum);
}
