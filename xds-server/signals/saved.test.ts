import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { pack, packHashes, packRows, unpack, unpackHashes, unpackRows } from './saved.js';

describe('saved numbers', () => {
  it('are the same again, down to the bits', () => {
    fc.assert(
      fc.property(fc.array(fc.double()), (numbers) => {
        expect(unpack(pack(numbers))).toEqual(numbers);
      }),
    );
    expect(unpack(pack([-0, Number.NaN, -Infinity]))).toEqual([-0, Number.NaN, -Infinity]);
  });

  it('keep their names in rows', () => {
    const rows = fc.array(fc.record({ atMs: fc.double(), count: fc.double() }));
    fc.assert(
      fc.property(rows, (list) => {
        expect(unpackRows(packRows(list, ['count', 'atMs']), ['count', 'atMs'])).toEqual(list);
      }),
    );
  });

  it('may be hashes', () => {
    const hashes = fc.array(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }));
    fc.assert(
      fc.property(hashes, (list) => {
        expect(unpackHashes(packHashes(list))).toEqual(list);
      }),
    );
  });
});
