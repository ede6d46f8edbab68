import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { explain, explanationText, Optimizer, type Solution } from '../optimizer/index.js';
import { solveFleet } from '../optimizer/solve.js';
import { oddInput } from '../optimizer/testing/odd.js';
import { shakenDemand } from '../optimizer/testing/random.js';
import { worldInput } from '../optimizer/testing/world.js';
import { LocalExecutor } from '../optimizer/thread/executor.js';
import { makePlan, type PlanOutcome } from './make-plan.js';
import type { Plan } from './plan.js';
import { pieces, planFor, rowOf, type TestFleet } from './testing/planned-fleet.js';

const optimizer = new Optimizer();
afterAll(() => optimizer.close());

async function outcomeOf(fleet: TestFleet, previous: Plan | null): Promise<PlanOutcome & { plan: Plan }> {
  const outcome = await planFor(optimizer, fleet, previous);
  expect(outcome.failure).toBeUndefined();
  return { ...outcome, plan: outcome.plan! };
}

async function planOf(fleet: TestFleet, previous: Plan | null): Promise<Plan> {
  return (await outcomeOf(fleet, previous)).plan;
}

describe('equal engines under light load', () => {
  const five: TestFleet = {
    engines: { e1: 100, e2: 100, e3: 100, e4: 100, e5: 100 },
    rttMs: { f: { e1: 5, e2: 5, e3: 5, e4: 5, e5: 5 } },
    demand: { f: 60 },
  };
  const four: TestFleet = {
    ...five,
    engines: { e1: 100, e2: 100, e3: 100, e4: 100 },
    rttMs: { f: { e1: 5, e2: 5, e3: 5, e4: 5 } },
  };

  /** Shares of the hash space that moved, by `from→to`. */
  function moved(before: Plan, after: Plan): Map<string, number> {
    const moves = new Map<string, number>();
    for (const piece of pieces(rowOf(before, 'f'), rowOf(after, 'f'))) {
      if (piece.before.ownerId === piece.after.ownerId) continue;
      const move = `${piece.before.ownerId}→${piece.after.ownerId}`;
      moves.set(move, (moves.get(move) ?? 0) + piece.share);
    }
    return moves;
  }

  const sum = (values: Iterable<number>): number => [...values].reduce((total, value) => total + value, 0);

  it('a new one gets its share, evenly from all, and nothing else moves', async () => {
    const before = await planOf(four, null);
    const moves = moved(before, await planOf(five, before));
    expect(Math.abs(sum(moves.values()) - 0.2)).toBeLessThan(0.015);
    expect([...moves.keys()].every((move) => move.endsWith('→e5'))).toBe(true);
  });

  it('of a lost one exactly its own moves, evenly to all others, and back when it returns', async () => {
    const before = await planOf(five, await planOf(four, null));
    const without = await planOf({ ...five, lost: ['e2'] }, before);
    const moves = moved(before, without);
    const share = rowOf(before, 'f').weights.find(({ engineId }) => engineId === 'e2')!.weight;
    expect(sum(moves.values())).toBe(share);
    for (const move of ['e2→e1', 'e2→e3', 'e2→e4', 'e2→e5']) {
      expect(moves.get(move)).toBeLessThan((1.15 * share) / 4);
    }
    expect(moved(before, await planOf(five, without))).toEqual(new Map());
  });
});

it('fractions of a replica beside whole ones, and demands of nothing beside billions, are solved, from weights in force too', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(), async (seed) => {
      const { state, profiles, policy } = oddInput(seed);
      const first = await makePlan(optimizer, { previous: null, state, profiles, policy }, () => 0);
      expect(first.failure).toBeUndefined();
      const shaken = shakenDemand(first.input, 0.3, seed).state.demands;
      const demands = shaken.map((demand) => ({
        ...demand,
        requestsPerSecond: Math.min(1e9, demand.requestsPerSecond),
      }));
      const later = { previous: first.plan, state: { ...state, demands }, profiles, policy };
      expect((await makePlan(optimizer, later, () => 0)).failure).toBeUndefined();
    }),
    { numRuns: 12, examples: [[806], [849], [1275]] },
  );
});

it('an engine that serves three times as much gets three times the traffic, and more while queues are short', async () => {
  const ratios: number[] = [];
  for (const demand of [10, 20, 30, 40, 48]) {
    const fleet: TestFleet = {
      engines: { e1: 10, e2: 10, e3: 30 },
      rttMs: { f: { e1: 5, e2: 5, e3: 5 } },
      demand: { f: demand },
    };
    const [e1, e2, e3] = rowOf(await planOf(fleet, null), 'f').weights.map(({ weight }) => weight);
    expect(e1).toBeCloseTo(e2!, 2);
    ratios.push(e3! / e1!);
  }
  expect(ratios).toEqual([...ratios].sort((a, b) => b - a));
  expect(ratios.at(-1)).toBeGreaterThan(2.9);
  expect(ratios.at(-1)).toBeLessThan(3.3);
});

it('an engine too small to be given traffic by rows that keep their weights is stated as it is', async () => {
  const fleet: TestFleet = {
    engines: { large: 30_000, small: 100 },
    rttMs: { f: { large: 5, small: 5 } },
    demand: { f: 24_000 },
  };
  const before = await planOf({ ...fleet, lost: ['small'] }, null);
  const { plan } = await outcomeOf(fleet, before);
  expect(rowOf(plan, 'f').weights).toEqual([{ engineId: 'large', weight: 1 }]);
  expect(plan.engines.map(({ rho }) => rho)).toEqual([expect.closeTo(0.8, 2), 0]);
});

it('a small engine that is back is filled while the only row of its own sheds, though a large row would keep its weights', async () => {
  const worldWith = (health: number) =>
    worldInput({
      frontends: ['f'],
      engines: [
        { id: 'large', replicas: 300 },
        { id: 'small', replicas: 1, health },
      ],
      pools: { both: ['large', 'small'], one: ['small'] },
      networkMs: [[5, 5]],
      demands: [
        { frontendId: 'f', poolId: 'both', requestsPerSecond: 60_000 },
        { frontendId: 'f', poolId: 'one', requestsPerSecond: 30 },
      ],
    });
  const { plan: before } = await makePlan(optimizer, { ...worldWith(0), previous: null }, () => 0);
  const { plan, failure } = await makePlan(optimizer, { ...worldWith(1), previous: before }, () => 0);
  expect(failure).toBeUndefined();
  expect(plan!.engines.find(({ engineId }) => engineId === 'small')!.rho).toBeGreaterThan(0.95);
});

it('the plan after a lost engine is the next one, however many steps have made it', async () => {
  const fleet: TestFleet = {
    engines: { e1: 100, e2: 100 },
    rttMs: { f: { e1: 5, e2: 5 } },
    demand: { f: 60 },
  };
  const before = await planOf(fleet, null);
  const after = await planOf({ ...fleet, lost: ['e2'], demand: { f: 80 } }, before);
  expect(after.sequence).toBe(before.sequence + 1);
});

it('a plan of which no snapshot can be written is none', async () => {
  const input = worldInput({
    frontends: ['f'],
    engines: [{ id: 'longer than a snapshot may have it '.repeat(4) }],
    networkMs: [[5]],
    demands: [{ frontendId: 'f', requestsPerSecond: 1 }],
  });
  const { plan, failure } = await makePlan(optimizer, { ...input, previous: null }, () => 0);
  expect([plan, failure?.code]).toEqual([null, 'WARDROP_SNAPSHOT_INVALID']);
});

describe('demand above capacity', () => {
  const fleet: TestFleet = {
    engines: { e1: 10, e2: 10 },
    rttMs: { f: { e1: 2, e2: 30 } },
    demand: { f: 30 },
  };
  const shedOf = (plan: Plan, frontendId = 'f'): number =>
    Math.max(0, ...rowOf(plan, frontendId).shed.map(({ fraction }) => fraction));

  it('gives a plan that fills both engines, refuses the rest and says so', async () => {
    const { plan, input, solution } = await outcomeOf(fleet, null);
    for (const { rho } of plan.engines) expect(rho).toBeCloseTo(1, 3);
    expect(shedOf(plan)).toBeGreaterThanOrEqual(1 / 3);
    expect(shedOf(plan)).toBeLessThan(0.35);
    expect(rowOf(plan, 'f').weights.map(({ weight }) => weight)).toEqual([
      expect.closeTo(0.5, 3),
      expect.closeTo(0.5, 3),
    ]);
    const pair = { frontendId: 'f', poolId: rowOf(plan, 'f').poolId, engineId: 'e1' };
    expect(explanationText(explain(input, solution!, pair))).toMatch(
      /Demand above capacity: of 30\.0 requests\/s, 33\.3 % of priority 0/,
    );
  });

  it('still fills an engine that has come back alone of very many', async () => {
    for (const demand of [400, 999, 1777, 60_000]) {
      const { plan } = await outcomeOf({ ...fleet, lost: ['e1'], demand: { f: demand } }, null);
      expect((1 - shedOf(plan)) * demand).toBeGreaterThan(9.7);
      expect((1 - shedOf(plan)) * demand).toBeLessThanOrEqual(10);
    }
  });

  it('refuses nothing any more with the first plan for a demand that fits', async () => {
    const full = await planOf(fleet, null);
    const fits = await planOf({ ...fleet, demand: { f: 12 } }, full);
    expect(shedOf(fits)).toBe(0);
    for (const { rho } of fits.engines) expect(rho).toBeLessThan(1);
  });

  it('keeps usable weights without any demand', async () => {
    const before = await planOf({ ...fleet, demand: { f: 12 } }, null);
    for (const previous of [null, before]) {
      const plan = await planOf({ ...fleet, demand: { f: 0 } }, previous);
      const weights = rowOf(plan, 'f').weights.map(({ weight }) => weight);
      expect(weights.reduce((total, weight) => total + weight, 0)).toBe(1);
      expect(rowOf(plan, 'f').segments[0]!.backupId).not.toBeNull();
      expect(shedOf(plan)).toBe(0);
    }
  });

  it('sends nothing to an engine without capacity', async () => {
    const plan = await planOf({ ...fleet, lost: ['e2'] }, null);
    expect(rowOf(plan, 'f').weights).toEqual([{ engineId: 'e1', weight: 1 }]);
    expect(shedOf(plan)).toBeGreaterThanOrEqual(2 / 3);
  });

  it('refuses all of a frontend that reaches no engine, and nothing of others', async () => {
    const cutOff: TestFleet = {
      ...fleet,
      rttMs: { f: { e1: 2, e2: 30 }, island: { e1: null, e2: null } },
      demand: { f: 12, island: 5 },
    };
    const plan = await planOf(cutOff, null);
    expect(rowOf(plan, 'island')).toMatchObject({ weights: [], segments: [] });
    expect(shedOf(plan, 'island')).toBe(1);
    expect(shedOf(plan, 'f')).toBe(0);
  });
});

describe('a solution that is wrong', () => {
  const fleet: TestFleet = {
    engines: { e1: 100, e2: 100 },
    rttMs: { f: { e1: 2, e2: 30 } },
    demand: { f: 60 },
  };
  /** An optimizer whose solutions come out changed. */
  const tampering = (change: (solution: Solution) => Solution): Optimizer =>
    new Optimizer({
      executor: () => new LocalExecutor((solver, input) => change(solveFleet(solver, input))),
    });
  const faults: [string, RegExp, (solution: Solution) => Solution][] = [
    [
      'loses demand',
      /flows add up to/,
      (solution) => ({ ...solution, rows: solution.rows.map((row) => ({ ...row, flows: [] })) }),
    ],
    [
      'states another objective than its flows have',
      /the objective is .* instead of/,
      (solution) => ({ ...solution, objectiveSeconds: solution.objectiveSeconds * 1.01 }),
    ],
    [
      'claims to be better than is possible',
      /lower bound .* is above the objective/,
      (solution) => ({ ...solution, lowerBoundSeconds: solution.objectiveSeconds * 1.01 }),
    ],
  ];

  for (const [what, why, change] of faults) {
    it(`because it ${what} leaves the last good plan in force and says why`, async () => {
      const good = await planOf(fleet, null);
      const changed = { ...fleet, demand: { f: 150 } };
      const { plan, failure } = await planFor(tampering(change), changed, good);
      expect(plan).toBe(good);
      expect(failure?.code).toBe('WARDROP_PLAN_REJECTED');
      expect(failure?.message).toMatch(why);
    });
  }
});
