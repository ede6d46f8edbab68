import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hash64, id64, keyHash, mix64, partitionPoint, replicaScore, shedPoint } from './hash.js';
import { hashVectors, keyVectors, mixVectors } from './hash-vectors.js';

const utf8 = new TextEncoder();

describe('hash64', () => {
  it('equals the reference implementation', () => {
    for (const { text, seed, hash } of hashVectors) expect(hash64(utf8.encode(text), seed)).toBe(hash);
  });

  it('depends on the bytes only, not on where they lie in their buffer', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 40 }),
        fc.nat(15),
        fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
        (bytes, shift, seed) => {
          const moved = new Uint8Array(shift + bytes.length);
          moved.set(bytes, shift);
          expect(hash64(moved.subarray(shift), seed)).toBe(hash64(bytes, seed));
        },
      ),
    );
  });
});

describe('keyHash', () => {
  it('equals the reference implementation', () => {
    for (const { salt, tenant, key, hash, shedPoint: point } of keyVectors) {
      expect(keyHash(salt, tenant, key)).toBe(hash);
      expect(shedPoint(hash)).toBe(point);
    }
  });

  it('frames its parts: moving characters between tenant and key changes the hash', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 2, maxLength: 20 }), fc.nat(), (text, cut) => {
        const at = 1 + (cut % (text.length - 1));
        fc.pre(id64(text.slice(0, at)) !== id64(text));
        expect(keyHash('s', text.slice(0, at), text.slice(at))).not.toBe(keyHash('s', text, ''));
      }),
    );
  });

  it('spreads consecutive keys evenly over the partition and over the shed space, independently', () => {
    const cells = new Array<number>(16).fill(0);
    const count = 16_000;
    for (let i = 0; i < count; i++) {
      const hash = keyHash('salt', '', `session-${i}`);
      const cell = (partitionPoint(hash) >>> 30) * 4 + (shedPoint(hash) >>> 30);
      cells[cell]!++;
    }
    // Chi-square with 15 degrees of freedom exceeds 44 once in 10^4 fair draws; the keys are fixed.
    const expected = count / 16;
    const chiSquare = cells.reduce((sum, seen) => sum + (seen - expected) ** 2 / expected, 0);
    expect(chiSquare).toBeLessThan(44);
  });
});

describe('mix64', () => {
  it('equals the reference finalizer', () => {
    for (const { value, mixed } of mixVectors) expect(mix64(value)).toBe(mixed);
  });

  it('gives every replica of an engine its share of the keys', () => {
    const seeds = ['10.0.0.1:8000', '10.0.0.2:8000', '10.0.0.3:8000'].map(id64);
    const wins = [0, 0, 0];
    for (let i = 0; i < 9000; i++) {
      const scores = seeds.map((seed) => replicaScore(keyHash('salt', '', `k${i}`), seed));
      const best = scores.reduce((top, score, index) => (score > scores[top]! ? index : top), 0);
      wins[best]!++;
    }
    // Three standard deviations of a fair draw are 134.
    for (const seen of wins) expect(Math.abs(seen - 3000)).toBeLessThan(150);
  });
});
