import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MIN_WEIGHT, quantise } from './quantise.js';

const SPACE = 2 ** 32;
const weight = fc.oneof(
  fc.double({ min: 0, max: 1, noNaN: true }),
  fc.double({ min: 0, max: 1e12, noNaN: true }),
  fc.constant(0),
);
const weights = fc
  .array(weight, { minLength: 1, maxLength: 40 })
  .filter((list) => list.some((value) => value > 0));

describe('quantise', () => {
  it('adds up exactly and is never negative, whatever the scale', () => {
    fc.assert(
      fc.property(weights, fc.nat(SPACE), (list, total) => {
        const lengths = quantise(list, total);
        expect(lengths.reduce((sum, length) => sum + length, 0)).toBe(total);
        for (const length of lengths) expect(Number.isInteger(length) && length >= 0).toBe(true);
      }),
    );
  });

  it('is within one point of the exact share of the weights that count', () => {
    fc.assert(
      fc.property(weights, (list) => {
        const lengths = quantise(list, SPACE);
        const kept = list.map((value, index) => (lengths[index]! > 0 ? value : 0));
        const sum = kept.reduce((partial, value) => partial + value, 0);
        lengths.forEach((length, index) => {
          expect(Math.abs(length - (kept[index]! / sum) * SPACE)).toBeLessThan(1.001);
        });
      }),
    );
  });

  it('leaves out weights below the floor and gives their share to the others', () => {
    expect(quantise([1, MIN_WEIGHT / 2, 1], SPACE)).toEqual([SPACE / 2, 0, SPACE / 2]);
    expect(quantise([1, MIN_WEIGHT * 2], SPACE)[1]).toBeGreaterThan(0);
  });

  it('breaks ties by position', () => {
    expect(quantise([1, 1, 1], 4)).toEqual([2, 1, 1]);
    expect(quantise([1, 1, 1], SPACE)).toEqual([1431655766, 1431655765, 1431655765]);
  });

  it('gives back lengths that were made by it', () => {
    fc.assert(
      fc.property(weights, (list) => {
        const lengths = quantise(list, SPACE);
        expect(
          quantise(
            lengths.map((length) => length / SPACE),
            SPACE,
          ),
        ).toEqual(lengths);
      }),
    );
  });

  it('refuses weights that are negative, not finite or all 0', () => {
    for (const list of [[-1, 2], [Number.NaN], [Number.POSITIVE_INFINITY, 1], [0, 0], []]) {
      expect(() => quantise(list, SPACE)).toThrow(RangeError);
    }
    expect(quantise([0, 0], 0)).toEqual([0, 0]);
  });
});
