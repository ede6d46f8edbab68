import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mix, normalised, ranked, rendezvous, usable } from './hashing.js';

const anyWeights = fc
  .array(fc.integer({ min: 0, max: 100 }), { minLength: 2, maxLength: 6 })
  .filter((weights) => weights.filter((weight) => weight > 0).length > 1);
const keys = Array.from({ length: 4000 }, (_, key) => mix(key, 77));

describe('weighted rendezvous', () => {
  it('gives each engine its weight of the keys, within sampling error', () => {
    fc.assert(
      fc.property(anyWeights, (weights) => {
        const shares = normalised(weights);
        const counts = weights.map(() => 0);
        for (const key of keys) counts[rendezvous(key, weights)]! += 1 / keys.length;
        shares.forEach((share, engine) => {
          const deviation = Math.sqrt((share * (1 - share)) / keys.length);
          expect(Math.abs(counts[engine]! - share)).toBeLessThan(5 * deviation + 1e-9);
        });
      }),
      { numRuns: 20 },
    );
  });

  it('moves keys only to an engine whose weight grows', () => {
    fc.assert(
      fc.property(anyWeights, fc.nat(), (weights, which) => {
        const grown = which % weights.length;
        const after = weights.map((weight, engine) => (engine === grown ? weight + 10 : weight));
        for (const key of keys.slice(0, 300)) {
          const next = rendezvous(key, after);
          if (next !== rendezvous(key, weights)) expect(next).toBe(grown);
        }
      }),
    );
  });

  it('names as the next engine the one that would win without those before, up to two', () => {
    for (const key of keys.slice(0, 300)) {
      const list = ranked(key, [3, 2, 0, 1, 4]);
      expect(list).toHaveLength(2);
      list.forEach((engine, at) => {
        const rest = [3, 2, 0, 1, 4].map((weight, other) => (list.slice(0, at).includes(other) ? 0 : weight));
        expect(engine).toBe(rendezvous(key, rest));
      });
    }
    expect(ranked(7, [0, 1])).toEqual([1]);
  });
});

describe('usable weights', () => {
  it('leave out who is not ready, unless nobody is left', () => {
    expect(usable([1, 2, 3], [true, false, true])).toEqual([1, 0, 3]);
    expect(usable([1, 2, 0], [false, false, true])).toEqual([1, 2, 0]);
  });
});
