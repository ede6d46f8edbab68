import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { sum } from '../collections.js';
import { WardropError } from '../errors.js';
import type { WeightBound } from '../fleet/policy.js';
import { Optimizer } from '../optimizer/index.js';
import type { OptimizerInput } from '../optimizer/solution.js';
import { oddInput } from '../optimizer/testing/odd.js';
import { randomInput, randomNumbers } from '../optimizer/testing/random.js';
import { simpleProfile, type World, worldInput } from '../optimizer/testing/world.js';
import { checkPlan } from './check-plan.js';
import { makePlan, type PlanSolver } from './make-plan.js';
import type { Plan, PlanRow } from './plan.js';

const optimizer = new Optimizer();
afterAll(() => optimizer.close());

const broken: PlanSolver = {
  solveChecked: async () => {
    throw new WardropError('WARDROP_PLAN_REJECTED', 'it broke');
  },
};

async function planOf(
  { state, profiles, policy }: OptimizerInput,
  previous: Plan | null = null,
  solver = broken,
): Promise<Plan> {
  const { plan, failure } = await makePlan(solver, { previous, state, profiles, policy }, () => 0);
  expect(failure?.message).toBe(solver === broken ? 'it broke' : undefined);
  return plan!;
}

const weightsOf = ({ weights }: PlanRow) =>
  Object.fromEntries(weights.map(({ engineId, weight }) => [engineId, Number(weight.toFixed(3))]));

/** Two engines beside the frontend and one far away, each good for 100 requests/s. */
const world: World = {
  frontends: ['f'],
  engines: [
    { id: 'far', profile: simpleProfile(100) },
    { id: 'near', profile: simpleProfile(100) },
    { id: 'next', profile: simpleProfile(100) },
  ],
  pools: { chat: ['far', 'near', 'next'] },
  networkMs: [[80, 5, 6]],
  demands: [],
};
const asking = (requestsPerSecond: number, rest: Partial<World> = {}) =>
  worldInput({ ...world, demands: [{ frontendId: 'f', requestsPerSecond }], ...rest });

describe('without any plan, when the solver breaks', () => {
  it('the nearest engines are filled to the target, then the next, then all to the limit, and the rest is refused', async () => {
    const rowAt = async (rps: number) => (await planOf(asking(rps))).rows[0]!;
    expect(weightsOf(await rowAt(100))).toEqual({ near: 0.5, next: 0.5 });
    expect(weightsOf(await rowAt(200))).toEqual({ far: 0.1, near: 0.45, next: 0.45 });
    expect(weightsOf(await rowAt(300))).toEqual({ far: 0.333, near: 0.333, next: 0.333 });
    expect((await rowAt(300)).shed).toEqual([]);
    expect((await rowAt(30_000)).shed).toEqual([{ priority: 0, fraction: expect.closeTo(0.99, 3) }]);
    expect(weightsOf(await rowAt(0))).toEqual({ far: 0.333, near: 0.333, next: 0.333 });
  });

  it('guaranteed shares are refused last, before them the more important classes', async () => {
    const demand = (priority: number, requestsPerSecond: number) => ({
      ...{ frontendId: 'f', priority, requestsPerSecond },
    });
    const { rows } = await planOf(
      asking(0, {
        demands: [demand(5, 200), demand(0, 100), demand(-5, 100)],
        policy: { minShares: [{ poolId: 'chat', priority: -5, share: 0.1 }] },
      }),
    );
    expect(rows[0]!.shed).toEqual([
      { priority: 0, fraction: expect.closeTo(0.1, 2) },
      { priority: -5, fraction: expect.closeTo(0.9, 2) },
    ]);
  });

  it('an engine that a row has no use for is full for it neither', async () => {
    for (const health of [2e-6, 1e-3]) {
      const { rows } = await planOf(
        worldInput({
          frontends: ['f'],
          engines: [
            { id: 'dust', profile: simpleProfile(100), health },
            { id: 'large', profile: simpleProfile(1000) },
          ],
          pools: { chat: ['dust', 'large'], code: ['dust'] },
          networkMs: [[5, 5]],
          demands: [
            { frontendId: 'f', poolId: 'chat', requestsPerSecond: 500 },
            { frontendId: 'f', poolId: 'code', requestsPerSecond: 1 },
          ],
        }),
      );
      expect(rows[0]).toMatchObject({ weights: [{ engineId: 'large', weight: 1 }], shed: [] });
      expect(rows[1]!.shed).toEqual([{ priority: 0, fraction: expect.closeTo(1 - 100 * health, 2) }]);
    }
  });

  it('many engines that each get next to nothing are used where near ones have no room for all', async () => {
    const far = Array.from({ length: 500 }, (_, at) => ({ id: `far${at}`, profile: simpleProfile(100) }));
    const near = ['near', 'next'].map((id) => ({ id, profile: simpleProfile(100) }));
    const engines = [...far, ...near];
    const { rows } = await planOf(
      asking(220, {
        engines,
        pools: { chat: engines.map(({ id }) => id) },
        networkMs: [engines.map(({ id }) => (id.startsWith('far') ? 80 : 5))],
      }),
    );
    expect(rows[0]!.shed).toEqual([]);
  });

  it('nobody is refused at an engine that is full of what others cannot place elsewhere while their own others have room', async () => {
    const crossed = (code: number, priority = 0) =>
      planOf(
        asking(0, {
          pools: { chat: ['far', 'near'], code: ['near'] },
          demands: [
            { frontendId: 'f', poolId: 'chat', requestsPerSecond: 50 },
            { frontendId: 'f', poolId: 'code', requestsPerSecond: code, priority },
          ],
        }),
      );
    for (const code of [90, 1000]) {
      const { rows } = await crossed(code);
      expect(rows[0]).toMatchObject({ weights: [{ engineId: 'far', weight: 1 }], shed: [] });
      expect(rows[1]!.shed[0]?.fraction ?? 0).toBeCloseTo(Math.max(0, 1 - 100 / code), 6);
    }
    expect((await crossed(90, -5)).rows[0]!.shed).toEqual([]);
  });

  it('nobody who has a choice is refused all because others have none', async () => {
    const { rows } = await planOf(
      asking(0, {
        engines: [
          { id: 'large', profile: simpleProfile(100) },
          { id: 'small', profile: simpleProfile(2) },
        ],
        pools: { any: ['large', 'small'], vision: ['large'] },
        networkMs: [[5, 5]],
        demands: ['any', 'vision'].map((poolId) => ({ frontendId: 'f', poolId, requestsPerSecond: 300 })),
      }),
    );
    for (const { shed } of rows) expect(shed[0]!.fraction).toBeCloseTo(5 / 6, 1);
  });

  it('demand of billions of times what an engine can do is refused but for what a filter can tell apart', async () => {
    for (const requestsPerSecond of [1e9, 1e6, 1]) {
      const engines = [{ id: 'dust', profile: simpleProfile(1), health: 2e-6 }];
      const demands = [{ frontendId: 'f', requestsPerSecond }];
      const { rows } = await planOf(worldInput({ frontends: ['f'], engines, networkMs: [[5]], demands }));
      expect(rows[0]!.shed[0]!.fraction).toBeCloseTo(1 - 2e-6 / requestsPerSecond, 6);
    }
  });

  it('every row has a plan that passes the checks and keeps the bounds of operators, whatever the fleet', async () => {
    const load = fc.double({ min: 0.1, max: 100, noNaN: true });
    await fc.assert(
      fc.asyncProperty(fc.nat(), load, fc.boolean(), async (seed, at, isBounded) => {
        const random = randomNumbers(seed);
        const input = randomInput(seed, {
          frontends: 1 + Math.floor(6 * random()),
          engines: 1 + Math.floor(20 * random()),
          pools: 1 + Math.floor(5 * random()),
          eligibility: 0.2 + 0.8 * random(),
          load: at,
        });
        const bounds = isBounded ? boundsOf(input, random) : [];
        const bounded = { ...input, policy: { ...input.policy, bounds } };
        const plan = await planOf(bounded);
        expect(checkPlan({ ...bounded, plan })).toEqual([]);
        expect(plan.rows.every(({ isPlain, weights }) => isPlain === true && weights.length > 0)).toBe(true);
        for (const { frontendId, poolId, engineId, min, max } of bounds) {
          const row = plan.rows.find((each) => each.frontendId === frontendId && each.poolId === poolId)!;
          const weight = row.weights.find((each) => each.engineId === engineId)?.weight ?? 0;
          expect(weight).toBeGreaterThanOrEqual(min * 0.999 - 1e-6);
          expect(weight).toBeLessThanOrEqual(max * 1.001 + 1e-6);
        }
      }),
      { numRuns: 60 },
    );
  });

  it('so it has where engines are fractions of a replica and demands are nothing or billions', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), async (seed) => {
        const odd = oddInput(seed);
        expect(checkPlan({ ...odd, plan: await planOf(odd) })).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });

  it('every part of every row and every check of it is a step, after which others may have their turn, and the plan is the same', async () => {
    const scale = { frontends: 5, engines: 20, pools: 4, eligibility: 0.5 };
    const { state, profiles, policy } = randomInput(1, { ...scale, load: 1.3 });
    const made = async (engines: typeof state.engines, previous: Plan | null) => {
      let pauses = 0;
      let beforeSolve = 0;
      const solver: PlanSolver = {
        solveChecked: (input) => {
          beforeSolve = pauses;
          return broken.solveChecked(input);
        },
      };
      const input = { previous, state: { ...state, engines }, profiles, policy };
      const pause = async () => void pauses++;
      const { plan } = await makePlan(solver, input, () => 0, pause);
      const { plan: atOnce } = await makePlan(broken, input, () => 0);
      expect(plan).toEqual(atOnce);
      return { plan: plan!, beforeSolve, afterSolve: pauses - beforeSolve };
    };
    const rows = scale.frontends * scale.pools;
    const first = await made(state.engines, null);
    expect(first.beforeSolve).toBe(0);
    expect(first.afterSolve).toBeGreaterThan(32 * rows);
    const [lost, ...others] = state.engines;
    const next = await made([{ ...lost!, health: 0 }, ...others], first.plan);
    expect(next.plan.id).not.toBe(first.plan.id);
    expect(next.beforeSolve).toBeGreaterThanOrEqual(rows);
    expect(next.afterSolve).toBeGreaterThan(32 * rows);
  });

  it('weights follow demand until there is a solve, which is said of rows no longer', async () => {
    const first = await planOf(asking(100));
    const later = await planOf(asking(200), first);
    expect(weightsOf(later.rows[0]!)).toMatchObject({ far: 0.1 });
    expect(await planOf(asking(200), later)).toBe(later);
    const solved = await planOf(asking(200), later, optimizer);
    expect(solved.rows.map(({ isPlain }) => isPlain)).toEqual([undefined]);
    expect(await planOf(asking(250), solved)).toBe(solved);
  });

  it('a fleet that cannot be placed has no plan, and both reasons are told', async () => {
    const { state, profiles, policy } = asking(Number.NaN);
    const { plan, failure } = await makePlan(broken, { previous: null, state, profiles, policy }, () => 0);
    expect(plan).toBeNull();
    expect(failure).toMatchObject({ code: 'WARDROP_PLAN_REJECTED' });
    expect(failure!.message).toMatch(/^it broke; nor is there a plain plan: .*NaN/);
  });
});

describe('with a plan, when the solver breaks', () => {
  const two = { chat: ['far', 'near'], code: ['near', 'next'] };
  const demands = [
    { frontendId: 'f', poolId: 'chat', requestsPerSecond: 150 },
    { frontendId: 'f', poolId: 'code', requestsPerSecond: 100 },
  ];

  it('rows that it says nothing of are placed on what others leave, and the others stay as they are', async () => {
    const before = await planOf(asking(150, { pools: { chat: two.chat } }), null, optimizer);
    const plan = await planOf(worldInput({ ...world, pools: two, demands }), before);
    expect(plan.rows[0]).toBe(before.rows[0]);
    expect(plan.rows[1]).toMatchObject({ poolId: 'code', isPlain: true });
    expect(weightsOf(plan.rows[1]!).next).toBeGreaterThan(0.7);
    expect(sum(plan.engines.map(({ rho }) => rho))).toBeCloseTo(2.5, 2);
  });

  it('a row that nobody could serve is placed once somebody can', async () => {
    const input = asking(50);
    const engines = input.state.engines.map((engine) => ({ ...engine, health: 0 }));
    const lost = { ...input, state: { ...input.state, engines } };
    const before = await planOf(lost, null, optimizer);
    expect(await planOf(lost, before)).toBe(before);
    expect(weightsOf((await planOf(input, before)).rows[0]!)).toEqual({ near: 0.5, next: 0.5 });
  });
});

/** A bound that can be followed for every other row with several engines. */
function boundsOf({ state }: OptimizerInput, random: () => number): WeightBound[] {
  return state.fleet.frontends.flatMap(({ id: frontendId }) =>
    state.fleet.pools.flatMap(({ id: poolId, engineIds }): WeightBound[] => {
      if (engineIds.length < 2 || random() < 0.5) return [];
      const engineId = engineIds[Math.floor(random() * engineIds.length)]!;
      const max = random();
      return [{ frontendId, poolId, engineId, min: random() < 0.5 ? 0 : max * random(), max }];
    }),
  );
}
