import fc from 'fast-check';
import { expect, it } from 'vitest';
import { withTimes } from '../properties.js';

it('properties draw the same inputs in every run', () => {
  expect(drawn(fc)).toEqual(drawn(fc));
});

it('properties draw as many times as many inputs as a developer asks for, whether they say how many or not', () => {
  const runs = (times: number, own = {}) => drawn(withTimes(fc, times), own).length;
  expect(runs(3)).toBe(3 * runs(1));
  expect(runs(3, { numRuns: 7 })).toBe(3 * runs(1, { numRuns: 7 }));
});

function drawn({ assert, integer, property }: typeof fc, parameters?: fc.Parameters<[number]>): number[] {
  const inputs: number[] = [];
  assert(
    property(integer(), (input) => {
      inputs.push(input);
    }),
    parameters,
  );
  return inputs;
}
