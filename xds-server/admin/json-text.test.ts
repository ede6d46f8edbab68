import fc from 'fast-check';
import { expect, it } from 'vitest';
import { jsonText } from './json-text.js';

it('is the text that a value has as JSON, whatever it is', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
      expect([...jsonText(value)].join('')).toBe(JSON.stringify(value, null, 2));
    }),
  );
});

it('leaves out what is undefined, as JSON does, and has lists that are made while they are read', () => {
  function* twice() {
    yield { a: undefined, b: 'line\nbreak' };
    yield undefined;
  }
  const text = [...jsonText({ none: undefined, list: twice(), empty: new Set() })].join('');
  const value = { none: undefined, list: [...twice()], empty: [] };
  expect(text).toBe(JSON.stringify(value, null, 2));
});

it('is in pieces as small as the items of lists that are one below the top, and what these consist of', () => {
  const engines = Array.from({ length: 100 }, (_, at) => ({ id: `e${at}`, replicas: [1, 2, 3] }));
  const longest = Math.max(...[...jsonText({ engines })].map((piece) => piece.length));
  expect(longest).toBeLessThan(100);
});
