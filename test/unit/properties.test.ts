import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Host } from '../../simulator/filter-host/host.js';
import { withTimes } from '../properties.js';

it('properties draw the same inputs in every run', () => {
  expect(drawn(fc)).toEqual(drawn(fc));
});

const envoyDraws: Uint8Array[] = [];

it.each(['in one run', 'in another run'])(
  'emulated Envoys draw the same in every run, and differ from each other: %s',
  () => {
    const [one, other] = [new Uint8Array(16), new Uint8Array(16)];
    new Host().fillRandom(one);
    new Host().fillRandom(other);
    expect(one).not.toEqual(other);
    envoyDraws.push(one);
    expect(one).toEqual(envoyDraws[0]);
  },
);

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
