import { expect, it } from 'vitest';
import type { AssertionEntry } from '../scenario-file/schema.js';
import { checkAssertions } from './assertions.js';
import type { Cell } from './comparison.js';

const cell = (policy: string, shedShare: number) =>
  ({ scenario: { id: 's' }, policy, runs: [{ shedShare }] }) as unknown as Cell;

const check = (bounds: Partial<AssertionEntry>, own: number, other: number) => {
  const assertion = { policy: 'a', measure: 'shedShare', ...bounds } as AssertionEntry;
  return checkAssertions('s', [assertion], [cell('a', own), cell('b', other)])[0]!;
};

it.each([
  [{ atMost: 1.2, timesThatOf: 'b' }, 0.3, 0.2, 'fails', 1.5],
  [{ atMost: 1.2, timesThatOf: 'b' }, 0.2, 0.2, 'holds', 1],
  [{ atLeast: 0.1, beyondThatOf: 'b' }, 0.5, 0.25, 'holds', 0.25],
  [{ atLeast: 0.3, beyondThatOf: 'b' }, 0.5, 0.25, 'fails', 0.25],
])(
  'compares with a multiple of another policy or its difference to it: %#',
  (bounds, own, other, result, value) => {
    expect(check(bounds, own, other)).toMatchObject({ result, value: expect.closeTo(value) });
  },
);

it('where neither has any, that is no more and no less than any multiple of the other', () => {
  expect(check({ atMost: 1.2, timesThatOf: 'b' }, 0, 0)).toMatchObject({ result: 'holds', value: null });
  expect(check({ atMost: 1.2, timesThatOf: 'b' }, 0.1, 0).result).toBe('fails');
});
