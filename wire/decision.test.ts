import { expect, it } from 'vitest';
import { decisionOf } from './decision.js';

const read = (value: unknown) => decisionOf({ 'x-wardrop': value });

it('reads the reason and what parameters there are', () => {
  expect(read('planned; engine="west-a"; plan="0123456789abcdef"')).toEqual({
    reason: 'planned',
    engine: 'west-a',
    plan: '0123456789abcdef',
  });
  expect(read('no-key; engine="a;b"; plan="0000000000000001"; mode=observe')).toMatchObject({
    engine: 'a;b',
    mode: 'observe',
  });
  expect(read('shed')).toEqual({ reason: 'shed' });
});

it('says nothing of anything else', () => {
  for (const value of [undefined, '', 'planned, planned', 'planned;engine', 'planned; engine="a', 5]) {
    expect(read(value)).toEqual({});
  }
});
