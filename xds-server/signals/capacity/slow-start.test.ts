import { describe, expect, it } from 'vitest';
import type { Engine, Pool } from '../../fleet/fleet.js';
import { SlowStart } from './slow-start.js';

const engines = ['a', 'b', 'c'].map((id, at) => ({
  id,
  endpoints: [`10.0.0.${at}:80`],
  slowStartSeconds: 20,
})) as unknown as Engine[];
const pools: Pool[] = [{ id: 'm', model: 'm', needs: [], engineIds: ['a', 'b', 'c'] }];

function ramps(
  start: SlowStart,
  ready: readonly boolean[],
  second: number,
  list = engines,
): readonly number[] {
  const readiness = list.map((_, at) => [ready[at]!]);
  const known = pools.map((pool) => ({ ...pool, engineIds: list.map(({ id }) => id) }));
  return start.ramps(list, known, readiness, second * 1_000);
}

describe('slow start', () => {
  it('brings a replica back in four steps', () => {
    const start = new SlowStart();
    expect(ramps(start, [true, true, true], 0)).toEqual([1, 1, 1]);
    ramps(start, [true, true, false], 100);
    const back = [110, 114, 115, 120, 125, 129, 130].map(
      (second) => ramps(start, [true, true, true], second)[2],
    );
    expect(back).toEqual([0.25, 0.25, 0.5, 0.75, 1, 1, 1]);
  });

  it('is for replicas that turn up, not for those that were there at the start', () => {
    const start = new SlowStart();
    expect(ramps(start, [true, true], 0, engines.slice(0, 2))).toEqual([1, 1]);
    expect(ramps(start, [true, true, true], 10)).toEqual([1, 1, 0.25]);
  });

  it('is not for a replica that was away for a moment', () => {
    const start = new SlowStart();
    ramps(start, [true, true, true], 0);
    ramps(start, [true, true, false], 10);
    expect(ramps(start, [true, true, true], 14)).toEqual([1, 1, 1]);
  });

  it('is left out when too much of a pool would be missing', () => {
    const start = new SlowStart();
    ramps(start, [true, true, true], 0);
    ramps(start, [false, false, false], 10);
    expect(ramps(start, [true, true, true], 20)).toEqual([1, 1, 1]);
  });
});
