import { afterAll, expect, it } from 'vitest';
import { WardropError } from '../../errors.js';
import type { Fleet } from '../../fleet/fleet.js';
import { Optimizer } from '../../optimizer/index.js';
import { planFor, type TestFleet } from '../../plan/testing/planned-fleet.js';
import { type ExplainQuery, explainedPair, explainSolved } from './explain.js';

const optimizer = new Optimizer();
afterAll(() => optimizer.close());

it('says of what came after the last good solve that its weights are plain, not that it is unknown', async () => {
  const old: TestFleet = { engines: { a: 10 }, rttMs: { west: { a: 1 } }, demand: { west: 1 } };
  const grown: TestFleet = {
    engines: { a: 10, b: 10 },
    rttMs: { west: { a: 1, b: 9 }, east: { a: 9, b: 1 } },
    demand: { west: 1, east: 1 },
  };
  const solved = await planFor(optimizer, old, null);
  const failing = {
    solveChecked: async () => {
      throw new WardropError('WARDROP_SOLVER_FAILED', 'no way');
    },
  };
  const { plan, failure } = await planFor(failing, grown, solved.plan);
  const explained = (query: ExplainQuery) =>
    explainSolved(query, {
      input: solved.input,
      solution: solved.solution!,
      plan,
      failure: failure!.message,
      signals: { correctedNetworkSeconds: () => undefined },
      capacities: [],
    });
  expect(() => explained({ frontend: 'east', engine: 'a' })).toThrow(
    'frontend "east" is newer than the last solve that succeeded (no way); its weights are plain until one does',
  );
  expect(() => explained({ frontend: 'west', engine: 'b' })).toThrow('engine "b" is newer than');
  expect(() => explained({ frontend: 'north', engine: 'a' })).toThrow(
    'unknown frontend "north"; known: west',
  );
  expect(explained({ frontend: 'west', engine: 'a' }).explanation.engine.weight).toBe(1);
});

it('takes an alias of a model for its pool', () => {
  const pool = { id: 'm', model: 'm', needs: [], engineIds: ['a'] };
  const fleet = {
    frontends: [{ id: 'f' }],
    engines: [{ id: 'a' }],
    pools: [pool, { ...pool, id: 'm~eu', needs: ['eu'] }],
    aliases: [{ name: 'other', model: 'm' }],
  } as unknown as Fleet;
  const pairOf = (name: string) => explainedPair({ frontend: 'f', engine: 'a', pool: name }, fleet).poolId;
  expect([pairOf('other'), pairOf('m~eu')]).toEqual(['m', 'm~eu']);
  expect(() => pairOf('another')).toThrow('unknown pool "another"; known: m, m~eu');
});
