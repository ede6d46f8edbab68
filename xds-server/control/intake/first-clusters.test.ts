import { expect, it } from 'vitest';
import { FirstClusters } from './first-clusters.js';

it('after a start, an Envoy of before is told of new pools once it has its clusters, or after 10 s', () => {
  let nowMs = 5_000;
  const first = new FirstClusters(['m'], () => nowMs);
  const asked = (hasClusters: boolean, ...poolIds: string[]) => first.isMissing(poolIds, () => hasClusters);
  expect([asked(false, 'm', 'n'), asked(false, 'm'), asked(true, 'm', 'n')]).toEqual([true, false, false]);
  nowMs += 9_999;
  expect(asked(false, 'n')).toBe(true);
  nowMs += 1;
  expect(asked(false, 'n')).toBe(false);
});
