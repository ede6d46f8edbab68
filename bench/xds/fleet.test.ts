import { expect, it } from 'vitest';
import { fleetOf, weightsAt } from './fleet.js';

const fleet = fleetOf({ frontends: 3, clusters: 2, endpoints: 60 });

it('every push changes the weight of every pool for every frontend, and shares add up to one', () => {
  for (let turn = 0; turn < 20; turn++) {
    const [before, after] = [weightsAt(fleet, turn), weightsAt(fleet, turn + 1)];
    expect(after.rows).toHaveLength(6);
    for (const [index, row] of after.rows.entries()) {
      expect(row.weights).not.toEqual(before.rows[index]!.weights);
      expect(row.weights.reduce((sum, { weight }) => sum + weight, 0)).toBeCloseTo(1);
    }
  }
});

it('a cluster has as many endpoints as asked for, all different', () => {
  const endpoints = fleet.engines.flatMap((engine) => engine.endpoints);
  expect(new Set(endpoints).size).toBe(120);
  for (const { engineIds } of fleet.pools) {
    const own = fleet.engines.filter(({ id }) => engineIds.includes(id));
    expect(own.flatMap((engine) => engine.endpoints)).toHaveLength(60);
  }
});
