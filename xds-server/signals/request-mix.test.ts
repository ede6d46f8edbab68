import { expect, it } from 'vitest';
import type { ExpectedDemand } from '../config/config.js';
import type { Fleet } from '../fleet/fleet.js';
import { mixesOf } from './request-mix.js';

const row = (poolId: string, requestsPerSecond: number, uncachedPromptTokens: number) =>
  ({ frontendId: 'f', poolId, requestsPerSecond, uncachedPromptTokens, outputTokens: 10 }) as ExpectedDemand;

function fleetOf(engineIds: readonly string[], pools: Readonly<Record<string, readonly string[]>>) {
  const poolList = Object.entries(pools).map(([id, members]) => ({ id, engineIds: members }));
  return { engines: engineIds.map((id) => ({ id })), pools: poolList } as unknown as Fleet;
}

it('requests of an engine are as large as those of its pools, by their rates', () => {
  const fleet = fleetOf(['a', 'b', 'none'], { m: ['a', 'b'], n: ['b'] });
  expect([...mixesOf(fleet, [row('m', 1, 100), row('n', 3, 500)])]).toEqual([
    ['a', { uncachedPromptTokens: 100, outputTokens: 10 }],
    ['b', { uncachedPromptTokens: expect.closeTo(400, 3), outputTokens: 10 }],
    ['none', { uncachedPromptTokens: 0, outputTokens: 1 }],
  ]);
});

it('expected rows are gone through once for all engines of the same pools', () => {
  const ids = Array.from({ length: 100 }, (_, at) => `e${at}`);
  const pools = { m: ids, n: ids, o: ids.slice(50) };
  const rows = [row('m', 1, 100), row('n', 1, 200), row('o', 1, 300)];
  let times = 0;
  const counted = {
    *[Symbol.iterator]() {
      times++;
      yield* rows;
    },
  } as unknown as typeof rows;
  expect(mixesOf(fleetOf(ids, pools), counted).size).toBe(100);
  expect(times).toBe(2);
});
