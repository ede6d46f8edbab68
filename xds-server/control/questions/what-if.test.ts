import { afterAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../config/load.js';
import { Optimizer, type OptimizerInput } from '../../optimizer/index.js';
import { optimizerInput } from '../../plan/make-plan.js';
import { Signals } from '../../signals/signals.js';
import { headroom } from './headroom.js';
import { whatIf } from './what-if.js';

const optimizer = new Optimizer();
afterAll(() => optimizer.close());

/** Two engines of 10 requests/s, near to one frontend each. */
function inputOf(westRps: number, eastRps: number, more = ''): OptimizerInput {
  const config = loadConfig('/none/fleet.yaml', () =>
    [
      'frontends: [{id: west, region: w}, {id: east, region: e}]',
      'engines:',
      '- {id: a, region: w, models: [m], profile: p, endpoints: [10.0.0.1:80]}',
      '- {id: b, region: e, models: [m], profile: p, endpoints: [10.0.0.2:80]}',
      'network: {rttMs: {west: {a: 1, b: 50}, east: {a: 50, b: 1}}}',
      'profiles: {p: {requestsPerSecond: 10}}',
      `demand: {west: {requestsPerSecond: ${westRps}}, east: {requestsPerSecond: ${eastRps}}}`,
      more,
    ].join('\n'),
  );
  const { state } = new Signals(config, [], 0).evaluate(0);
  const { profiles, policy } = config;
  return optimizerInput({ previous: null, state, profiles, policy });
}

describe('whatIf', () => {
  it('names the pools where a rate must be of one of several', async () => {
    const { state, ...input } = inputOf(4, 4);
    const pools = ['m', 'n'].map((id) => ({ ...state.fleet.pools[0]!, id }));
    const asked = whatIf(
      optimizer,
      { ...input, state: { ...state, fleet: { ...state.fleet, pools } } },
      { without: [], demand: [{ frontendId: 'west', requestsPerSecond: 9 }] },
    );
    await expect(asked).rejects.toThrow(/west\/POOL.* pools: m, n$/);
  });

  it('shows what the loss of an engine does to weights, utilisation and refusals', async () => {
    const result = await whatIf(optimizer, inputOf(4, 4), { without: ['b'], demand: [] });
    const east = result.rows.find(({ frontendId }) => frontendId === 'east')!;
    expect(east.weights).toEqual([
      { engineId: 'a', before: expect.closeTo(0, 3), after: 1 },
      { engineId: 'b', before: expect.closeTo(1, 3), after: 0 },
    ]);
    expect(result.engines.find(({ engineId }) => engineId === 'a')!.rho).toEqual({
      before: expect.closeTo(0.4, 3),
      after: expect.closeTo(0.8, 3),
    });
    expect(result.rows.every(({ refusedRps }) => refusedRps.after === 0)).toBe(true);
    expect(result.objectiveSeconds.after).toBeGreaterThan(result.objectiveSeconds.before);
  });

  it('multiplies or replaces demand', async () => {
    const grown = await whatIf(optimizer, inputOf(4, 4), {
      without: [],
      demand: [
        { frontendId: 'west', factor: 1.5 },
        { frontendId: 'east', requestsPerSecond: 30 },
      ],
    });
    expect(grown.rows.map(({ frontendId, demandRps }) => [frontendId, demandRps.after])).toEqual([
      ['east', 30],
      ['west', 6],
    ]);
    const refused = grown.rows.reduce((sum, { refusedRps }) => sum + refusedRps.after, 0);
    expect(refused).toBeCloseTo(16, 1);
  });

  it('takes an alias of a model for its pool', async () => {
    const changes = { without: [], demand: [{ frontendId: 'west', poolId: 'other', requestsPerSecond: 6 }] };
    const { rows } = await whatIf(optimizer, inputOf(4, 4, 'aliases: {other: m}'), changes);
    expect(rows.map(({ frontendId, demandRps }) => [frontendId, demandRps.after])).toEqual([
      ['east', 4],
      ['west', 6],
    ]);
  });

  it('replaces the demand of a pool as a whole, whatever classes it has', async () => {
    const classes = 'classes: {gold: {priority: 5, when: {header: {x-tier: gold}}}}';
    const state = inputOf(4, 0, classes);
    const shares = state.state.demands.map((demand) =>
      demand.frontendId === 'west' ? { ...demand, requestsPerSecond: demand.priority === 5 ? 1 : 3 } : demand,
    );
    const result = await whatIf(
      optimizer,
      { ...state, state: { ...state.state, demands: shares } },
      {
        without: [],
        demand: [
          { frontendId: 'west', requestsPerSecond: 12 },
          { frontendId: 'east', requestsPerSecond: 7 },
        ],
      },
    );
    expect(result.rows.map(({ frontendId, demandRps }) => [frontendId, demandRps])).toEqual([
      ['east', { before: 0, after: 7 }],
      ['west', { before: 4, after: 12 }],
    ]);
  });

  it('tells how near the optimum is and what could not be followed', async () => {
    const bounds = 'policy: {bounds: [{frontend: east, pool: m, engine: b, min: 0.5}]}';
    const result = await whatIf(optimizer, inputOf(4, 4, bounds), { without: ['b'], demand: [] });
    for (const side of ['before', 'after'] as const) {
      const { objectiveSeconds, lowerBoundSeconds, mixErrorSeconds } = result;
      expect(lowerBoundSeconds[side]).toBeLessThanOrEqual(objectiveSeconds[side]);
      expect(lowerBoundSeconds[side]).toBeGreaterThan(0.999 * objectiveSeconds[side]);
      expect(Math.abs(mixErrorSeconds[side])).toBeLessThan(objectiveSeconds[side]);
    }
    expect(result.warnings).toEqual([
      'bound of east and m on b is not followed: the engine cannot serve them now',
    ]);
  });

  it('leaves pools that would have nobody to engines of the last resort', async () => {
    const input = inputOf(4, 0);
    const { fleet } = input.state;
    const pools = fleet.pools.map((pool) => ({ ...pool, engineIds: ['a'], lastResortIds: ['b'] }));
    const drained = { ...input, state: { ...input.state, fleet: { ...fleet, pools } } };
    const westWithout = async (without: readonly string[]) => {
      const { rows } = await whatIf(optimizer, drained, { without, demand: [] });
      const { weights, refusedRps } = rows.find(({ frontendId }) => frontendId === 'west')!;
      return [weights.map(({ engineId, after }) => [engineId, after]), refusedRps.after];
    };
    expect(await westWithout(['a'])).toEqual([
      [
        ['a', 0],
        ['b', 1],
      ],
      0,
    ]);
    expect(await westWithout(['b'])).toEqual([[['a', 1]], 0]);
    expect(await westWithout(['a', 'b'])).toEqual([[['a', 0]], 4]);
  });

  it('refuses names that nothing has', async () => {
    const changes = { without: ['c'], demand: [] };
    await expect(whatIf(optimizer, inputOf(4, 4), changes)).rejects.toThrow(
      'unknown engine "c"; known: a, b',
    );
  });
});

describe('headroom', () => {
  it('tells who is refused without an engine and how much a frontend can grow', async () => {
    const result = await headroom(optimizer, inputOf(6, 8));
    expect(result.refusedRps).toBe(0);
    expect(result.engines.map(({ engineId, refused }) => [engineId, sum(refused)])).toEqual([
      ['a', expect.closeTo(4, 1)],
      ['b', expect.closeTo(4, 1)],
    ]);
    expect(result.engines[0]!.fullest).toEqual({ engineId: 'b', rho: expect.closeTo(1, 2) });
    expect(result.engines.map(({ lostPools }) => lostPools)).toEqual([[], []]);
    const growth = Object.fromEntries(result.frontends.map((entry) => [entry.frontendId, entry.growth]));
    // 20 requests/s in all: 12 are left for west beside 8 of east, and 14 for east beside 6 of west.
    expect(growth.west).toBeCloseTo(2, 1);
    expect(growth.east).toBeCloseTo(1.75, 1);
    expect(result.frontends.map(({ rps }) => rps)).toEqual([8, 6]);
    // 14 of them are asked for now.
    expect(result.together).toEqual({ rps: 14, growth: expect.closeTo(20 / 14, 1) });
  });

  it('tells of which priority those are who are refused', async () => {
    const classes =
      'classes: {gold: {priority: 5, when: {header: {x-tier: gold}}}, bulk: {priority: -5, when: {header: {x-tier: bulk}}}}';
    const input = inputOf(6, 0, classes);
    const rates = new Map([
      [5, 7],
      [0, 6],
      [-5, 2],
    ]);
    const demands = input.state.demands.map((demand) =>
      demand.frontendId === 'west' ? { ...demand, requestsPerSecond: rates.get(demand.priority)! } : demand,
    );
    const { engines } = await headroom(optimizer, { ...input, state: { ...input.state, demands } });
    expect(engines[0]!.refused).toEqual([
      {
        frontendId: 'west',
        poolId: 'm',
        rps: expect.closeTo(5, 1),
        byPriority: [
          { priority: 0, rps: expect.closeTo(3, 1) },
          { priority: -5, rps: expect.closeTo(2, 1) },
        ],
      },
    ]);
  });

  it('names pools that have nobody without an engine, also those without demand', async () => {
    const input = inputOf(0, 0);
    const { fleet } = input.state;
    const pools = [...fleet.pools, { id: 'n', model: 'n', needs: [], engineIds: ['b'] }];
    const { engines } = await headroom(optimizer, {
      ...input,
      state: { ...input.state, fleet: { ...fleet, pools } },
    });
    expect(engines.map(({ engineId, lostPools }) => [engineId, lostPools])).toEqual([
      ['a', []],
      ['b', ['n']],
    ]);
  });

  it('knows no growth without demand, and none when requests are refused already', async () => {
    const result = await headroom(optimizer, inputOf(0, 30));
    expect(result.frontends).toEqual([
      { frontendId: 'east', refusedRps: expect.closeTo(10, 1), rps: 30, growth: 1 },
      { frontendId: 'west', refusedRps: 0, rps: 0, growth: null },
    ]);
    expect(result.together).toEqual({ rps: 30, growth: 1 });
    expect(result.refusedRps).toBeCloseTo(10, 1);
  });
});

function sum(refused: readonly { readonly rps: number }[]): number {
  return refused.reduce((total, { rps }) => total + rps, 0);
}
