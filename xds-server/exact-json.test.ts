import fc from 'fast-check';
import { expect, it } from 'vitest';
import { exactJson, parseExactJson } from './exact-json.js';

const WORDS = ['(infinity)', '(-infinity)', '(nan)', '(-0)', '(0)', '(', ''];

it('gives back every number, and every text, also one that reads like a number', () => {
  const word = fc.tuple(fc.nat(3), fc.constantFrom(...WORDS)).map(([more, text]) => '('.repeat(more) + text);
  const value = fc.oneof(fc.double(), fc.string(), word, fc.constant(null), fc.boolean());
  fc.assert(
    fc.property(
      fc.array(fc.dictionary(fc.oneof(fc.string(), word), value, { noNullPrototype: true })),
      (all) => {
        expect(parseExactJson(exactJson(all))).toEqual(all);
      },
    ),
  );
});

it('is other JSON where there is nothing that JSON has no words for', () => {
  const value = { a: [1, '(b)', '((', null], c: { d: -1e300, e: '(nan' } };
  expect(exactJson(value)).toBe(JSON.stringify(value));
});
