import { expect, it } from 'vitest';
import { argumentsOf, type Load, readResult } from './load.js';

const load: Load = {
  port: 1234,
  requests: 10,
  connections: 2,
  bodyBytes: 2048,
  model: 'm',
  headers: {},
  keyHeader: true,
  chunks: 0,
};

it('the key is left out of the headers only where the body has to be read', () => {
  expect(argumentsOf(load)).not.toContain('-no-key-header');
  expect(argumentsOf({ ...load, keyHeader: false })).toContain('-no-key-header');
});

it('headers are handed over in one argument', () => {
  const args = argumentsOf({ ...load, headers: { a: '1', b: '2' } });
  expect(args[args.indexOf('-H') + 1]).toBe('a: 1|b: 2');
});

it('a load counts only when every request was answered with 200', () => {
  const line = (change: object) =>
    JSON.stringify({ n: 10, errs: 0, codes: { 200: 10 }, p50: 1, p99: 2, ...change });
  expect(readResult(line({}), 10)).toEqual({ requests: 10, p50: 1, p99: 2 });
  expect(() => readResult(line({ codes: { 200: 9, 503: 1 } }), 10)).toThrow('503');
  expect(() => readResult(line({ n: 9, errs: 1, codes: { 200: 9 } }), 10)).toThrow('1 failed');
});
