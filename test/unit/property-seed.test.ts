import fc from 'fast-check';
import { expect, it } from 'vitest';

it('properties draw the same inputs in every run', () => {
  const drawn = () => {
    const inputs: number[] = [];
    fc.assert(
      fc.property(fc.integer(), (input) => {
        inputs.push(input);
      }),
    );
    return inputs;
  };
  expect(drawn()).toEqual(drawn());
});
