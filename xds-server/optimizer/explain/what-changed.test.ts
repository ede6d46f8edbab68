import { afterAll, expect, test } from 'vitest';
import { Optimizer, whatChanged, whatChangedText } from '../index.js';
import { simpleProfile, threeRegions, type World, weightsOf, worldInput } from '../testing/world.js';

const optimizer = new Optimizer();
afterAll(() => optimizer.close());

async function changes(from: World, to: World) {
  const before = worldInput(from);
  const previousWeights = weightsOf(await optimizer.solve(before));
  return whatChanged(optimizer, before, worldInput({ ...to, previousWeights }));
}

const busierWest: World = {
  ...threeRegions,
  demands: threeRegions.demands.map((demand) =>
    demand.frontendId === 'west' ? { ...demand, requestsPerSecond: 98 } : demand,
  ),
};

test('one change is blamed, and nothing else', async () => {
  const demand = await changes(threeRegions, busierWest);
  expect(demand.effects.filter(({ movedRps }) => movedRps > 0.01).map(({ cause }) => cause)).toEqual([
    'demand',
  ]);
  const network = await changes(threeRegions, {
    ...threeRegions,
    networkMs: threeRegions.networkMs.map((row, at) => (at === 0 ? [1, 2, 3] : row)),
  });
  expect(network.effects.filter(({ movedRps }) => movedRps > 0.01).map(({ cause }) => cause)).toEqual([
    'network',
  ]);
});

test('an engine that is left to other pools is a change of capacity', async () => {
  const before = worldInput(threeRegions);
  const [chat] = before.state.fleet.pools;
  const pools = [{ ...chat!, engineIds: ['a', 'c'], lastResortIds: ['b'] }];
  const after = { ...before, state: { ...before.state, fleet: { ...before.state.fleet, pools } } };
  for (const [from, to] of [
    [before, after],
    [after, before],
  ] as const) {
    const { effects } = await whatChanged(optimizer, from, to);
    expect(effects.map(({ cause }) => cause)).toEqual(['capacity']);
    expect(effects[0]!.weights.some(({ engineId }) => engineId === 'b')).toBe(true);
  }
});

test('effects of several changes add up to the whole', async () => {
  const { effects, weights } = await changes(threeRegions, {
    ...busierWest,
    engines: [
      { id: 'a', profile: simpleProfile(100), health: 0.9 },
      { id: 'b', profile: simpleProfile(110) },
      { id: 'c', profile: simpleProfile(80) },
      { id: 'd', profile: simpleProfile(50) },
    ],
    networkMs: threeRegions.networkMs.map((row) => [...row, 20]),
  });
  expect(effects.map(({ cause }) => cause)).toEqual(['time', 'config', 'capacity', 'demand']);
  for (const { frontendId, engineId, before, after } of weights) {
    const steps = effects.flatMap((effect) =>
      effect.weights.filter((change) => change.frontendId === frontendId && change.engineId === engineId),
    );
    expect(steps.reduce((sum, step) => sum + step.after - step.before, 0)).toBeCloseTo(after - before, 9);
  }
  expect(weights.some(({ engineId }) => engineId === 'd')).toBe(true);
});

test('the text names the cause and the weights that it moved', async () => {
  const text = whatChangedText(await changes(threeRegions, busierWest));
  expect(text).toMatch(/^demand: \d+\.\d requests\/s moved, \+\d+\.\d+ user-seconds\/s$/m);
  expect(text).toMatch(/^ {2}west → b, pool chat: 0\.0 % → \d+\.\d %$/m);
  for (const [, before, after] of text.matchAll(/: (\d+\.\d) % → (\d+\.\d) %$/gm))
    expect(after).not.toBe(before);
  expect(whatChangedText({ effects: [], weights: [] })).toBe('No input changed.');
});

test('the text leaves out what would read as no change, and says what time stands for', () => {
  const pair = { frontendId: 'west', poolId: 'chat', engineId: 'b' };
  const time = {
    cause: 'time',
    weights: [{ ...pair, before: 0.5, after: 0.5001 }],
    movedRps: 0.01,
    objectiveSeconds: -1e-6,
    refusedRps: 1e-9,
  } as const;
  const nothing = 'Inputs changed, but nothing that shows followed.';
  expect(whatChangedText({ effects: [time], weights: [] })).toBe(nothing);
  const moves = [{ ...pair, before: 0.5, after: 0.6 }];
  const text = whatChangedText({ effects: [time, { ...time, weights: moves, movedRps: 1 }], weights: [] });
  expect(text).toBe(
    'time that conditions have held: 1.0 requests/s moved, 0.000 user-seconds/s\n  west → b, pool chat: 50.0 % → 60.0 %',
  );
});

test('the text has the largest of many changes', () => {
  const weights = Array.from({ length: 100 }, (_, at) => {
    return {
      frontendId: 'west',
      poolId: 'm',
      engineId: `e${at}`,
      before: 0,
      after: ((at * 37) % 100) / 1000,
    };
  });
  const effect = { cause: 'demand' as const, weights, movedRps: 1, objectiveSeconds: 0, refusedRps: 0 };
  const text = whatChangedText({ effects: [effect], weights });
  expect(text.match(/→ e\d+,/g)).toHaveLength(40);
  expect(text).toContain('0.0 % → 9.9 %');
  expect(text).not.toContain('0.0 % → 5.9 %');
  // One of them reads as no change.
  expect(text).toContain('  … and 59 smaller changes; JSON has all');
});
