import { describe, expect, it } from 'vitest';
import { type CheckInput, checkPlan, type ViolationCode } from './check-plan.js';
import { evolvePlan } from './evolve.js';
import type { Plan, PlanRow } from './plan.js';
import { evolveInput } from './testing/fleet.js';

/** Two engines of one replica, each with half of 100 requests/s, so at half of their capacity. */
function goodInput(): CheckInput {
  const input = evolveInput([{ weights: { e0: 0.5, e1: 0.5 }, demandRps: 100 }], [1, 1, 0]);
  return {
    plan: evolvePlan(input),
    state: input.state,
    profiles: input.profiles,
    policy: input.policy,
  };
}

function withRow(change: Partial<PlanRow>): CheckInput {
  const input = goodInput();
  return { ...input, plan: { ...input.plan, rows: [{ ...input.plan.rows[0]!, ...change }] } };
}

function withPlan(change: Partial<Plan>): CheckInput {
  const input = goodInput();
  return { ...input, plan: { ...input.plan, ...change } };
}

function withEngine(change: object): CheckInput {
  const input = goodInput();
  const engines = input.plan.engines.map((engine, index) =>
    index === 0 ? { ...engine, ...change } : engine,
  );
  return { ...input, plan: { ...input.plan, engines } };
}

const { segments, weights } = goodInput().plan.rows[0]!;
const [first, second] = segments as [PlanRow['segments'][number], PlanRow['segments'][number]];

const bad: [string, ViolationCode, CheckInput][] = [
  ['a row is missing', 'rows-incomplete', withPlan({ rows: [] })],
  [
    'a row is there twice',
    'rows-incomplete',
    withPlan({ rows: [...goodInput().plan.rows, ...goodInput().plan.rows] }),
  ],
  ['weights do not add up', 'weights-sum', withRow({ weights: [{ engineId: 'e0', weight: 0.5 }] })],
  [
    'a weight is not a number',
    'weights-invalid',
    withRow({ weights: [{ engineId: 'e0', weight: Number.NaN }] }),
  ],
  [
    'a weight is negative',
    'weights-invalid',
    withRow({ weights: [{ engineId: 'e0', weight: -1 }, ...weights] }),
  ],
  ['weights are out of order', 'weights-invalid', withRow({ weights: [...weights].reverse() })],
  ['the space is not covered', 'segments-invalid', withRow({ segments: [second] })],
  ['segments overlap', 'segments-invalid', withRow({ segments: [first, second, { ...first, start: 5 }] })],
  [
    'a start is no whole point',
    'segments-invalid',
    withRow({ segments: [first, { ...second, start: 0.5 }] }),
  ],
  [
    'a length is off by a point',
    'segments-length',
    withRow({ segments: [first, { ...second, start: second.start + 1 }] }),
  ],
  ['an owner has no weight', 'segments-length', withRow({ segments: [first, { ...second, ownerId: 'e2' }] })],
  [
    'an owner is not eligible',
    'owner-ineligible',
    withRow({ segments: [first, { ...second, ownerId: 'x' }] }),
  ],
  [
    'a backup is not eligible',
    'backup-ineligible',
    withRow({ segments: [first, { ...second, backupId: 'x' }] }),
  ],
  [
    'an engine is its own backup',
    'backup-ineligible',
    withRow({ segments: [first, { ...second, backupId: 'e1' }] }),
  ],
  ['a row is given up without need', 'row-unserved', withRow({ segments: [], weights: [] })],
  ['a retry ratio is above 1', 'fraction-invalid', withRow({ retryRatio: 1.1 })],
  ['a demand is negative', 'fraction-invalid', withRow({ demandRps: -1 })],
  ['a shed fraction is above 1', 'fraction-invalid', withRow({ shed: [{ priority: 0, fraction: 2 }] })],
  [
    'priorities are out of order',
    'fraction-invalid',
    withRow({
      shed: [
        { priority: 0, fraction: 0 },
        { priority: 1, fraction: 0 },
      ],
    }),
  ],
  [
    'something is shed below the hard limit',
    'shed-needless',
    withRow({ shed: [{ priority: 0, fraction: 0.1 }] }),
  ],
  ['an engine is missing', 'engines-invalid', withPlan({ engines: [] })],
  ['a capacity is wrong', 'engines-invalid', withEngine({ effectiveCapacity: 2 })],
  ['a utilisation is wrong', 'engines-invalid', withEngine({ rho: 0.7 })],
  [
    'a price is infinite',
    'engines-invalid',
    withEngine({ congestionPriceSeconds: Number.POSITIVE_INFINITY }),
  ],
  ['a price is negative', 'engines-invalid', withEngine({ scarcityPriceSeconds: -1 })],
  ['the objective is not a number', 'objective-invalid', withPlan({ objectiveSeconds: Number.NaN })],
];

describe('checkPlan', () => {
  it('finds nothing wrong with a good plan', () => {
    expect(checkPlan(goodInput())).toEqual([]);
  });

  it.each(bad)('reports when %s', (_, code, input) => {
    const violations = checkPlan(input);
    expect(violations.map((violation) => violation.code)).toContain(code);
    for (const { message } of violations) expect(message).not.toBe('');
  });

  it('recomputes loads: an engine above its hard limit is reported, at the limit it is not', () => {
    const withDemand = (requestsPerSecond: number) => {
      const input = goodInput();
      const demands = input.state.demands.map((demand) => ({ ...demand, requestsPerSecond }));
      return checkPlan({ ...input, state: { ...input.state, demands } }).map(({ code }) => code);
    };
    expect(withDemand(200)).not.toContain('capacity-exceeded');
    expect(withDemand(201)).toContain('capacity-exceeded');
    expect(withDemand(Number.NaN)).toContain('capacity-exceeded');
  });

  it('lets a plan stay in force while capacities and demands differ a little from those it states', () => {
    const input = goodInput();
    const demands = input.state.demands.map((demand) => ({ ...demand, requestsPerSecond: 109 }));
    const engines = input.state.engines.map((engine) => ({ ...engine, health: 0.91 }));
    expect(checkPlan({ ...input, state: { ...input.state, demands, engines } })).toEqual([]);
  });

  it('reports owners and backups that the frontend cannot reach', () => {
    const input = goodInput();
    const fleet = { ...input.state.fleet, networkSeconds: [[0.01, Number.POSITIVE_INFINITY, 0.01]] };
    const codes = checkPlan({ ...input, state: { ...input.state, fleet } }).map(({ code }) => code);
    expect(codes).toContain('owner-ineligible');
    expect(codes).toContain('backup-ineligible');
  });

  it('accepts that a row is refused while engines out of its reach have room, and only then', () => {
    const refused = { frontendId: 'island', weights: {}, shed: [{ priority: 0, fraction: 1 }] };
    const input = evolveInput([refused, { weights: { e0: 1 } }], [2]);
    const codes = (islandSeconds: number) => {
      const fleet = { ...input.state.fleet, networkSeconds: [[islandSeconds], [0.01]] };
      const violations = checkPlan({ plan: evolvePlan(input), ...input, state: { ...input.state, fleet } });
      return violations.map(({ code }) => code);
    };
    expect(codes(Number.POSITIVE_INFINITY)).toEqual([]);
    expect(codes(0.01)).toContain('shed-needless');
  });

  it('accepts that a row is refused while engines have room where an operator bounds its weights', () => {
    const input = withRow({ shed: [{ priority: 0, fraction: 0.1 }] });
    const bound = {
      frontendId: 'west',
      poolId: input.plan.rows[0]!.poolId,
      engineId: 'e0',
      min: 0,
      max: 0.5,
    };
    const codes = (frontendId: string) => {
      const policy = { ...input.policy, bounds: [{ ...bound, frontendId }] };
      return checkPlan({ ...input, policy }).map(({ code }) => code);
    };
    expect(codes('west')).not.toContain('shed-needless');
    expect(codes('elsewhere')).toContain('shed-needless');
  });

  it('accepts that next to nothing of all capacity is left empty where somebody is refused', () => {
    const refused = [{ priority: 0, fraction: 0.5 }];
    const input = evolveInput([{ weights: { e0: 1 }, demandRps: 0.01, shed: refused }], [1, 1]);
    const { fleet, engines } = input.state;
    const codes = (health: number) => {
      const state = {
        ...input.state,
        fleet: { ...fleet, networkSeconds: [[0.01, Number.POSITIVE_INFINITY]] },
        engines: engines.map((engine, at) => (at === 0 ? { ...engine, health } : engine)),
      };
      const plan = evolvePlan({ ...input, state });
      return checkPlan({ ...input, state, plan }).map(({ code }) => code);
    };
    expect(codes(9e-5)).not.toContain('shed-needless');
    expect(codes(2e-4)).toContain('shed-needless');
  });

  it('reports that a pool is refused while its only engine has room, however small that is beside the engines of others', () => {
    const refused = [{ priority: 0, fraction: 0.5 }];
    const alone = { id: 'small/0', model: 'small', needs: [], engineIds: ['e0'] };
    const { state, ...input } = evolveInput(
      [{ weights: { e0: 1 }, demandRps: 50, shed: refused }],
      [1, 20_000],
    );
    const demands = state.demands.map((demand) => ({ ...demand, poolId: alone.id }));
    const fleet = { ...state.fleet, pools: [alone] };
    const apart = { ...input, state: { ...state, fleet, demands } };
    const rows = apart.solution.rows.map((row) => ({ ...row, poolId: alone.id }));
    const plan = evolvePlan({ ...apart, solution: { ...apart.solution, rows } });
    expect(checkPlan({ ...apart, plan }).map(({ code }) => code)).toEqual(['shed-needless']);
  });

  it('counts engines of less than a millionth of a replica as none, as solves do', () => {
    const input = evolveInput([{ weights: {} }], [1]);
    const engines = input.state.engines.map((engine) => ({ ...engine, health: 9e-7 }));
    const faint = { ...input, state: { ...input.state, engines } };
    const plan = {
      ...evolvePlan(faint),
      engines: [{ ...evolvePlan(faint).engines[0]!, effectiveCapacity: 0 }],
    };
    expect(checkPlan({ plan, ...faint })).toEqual([]);
  });

  it('accepts a row without weights when nobody could serve it', () => {
    const input = evolveInput([{ weights: {} }], [0, 0]);
    const plan = evolvePlan(input);
    expect(checkPlan({ plan, ...input })).toEqual([]);
    const closed = withRow({ segments: [], weights: [] });
    const bounds = ['e0', 'e1'].map((engineId) => ({
      frontendId: 'west',
      poolId: closed.plan.rows[0]!.poolId,
      engineId,
      min: 0,
      max: 0,
    }));
    const codes = checkPlan({ ...closed, policy: { ...closed.policy, bounds } }).map(({ code }) => code);
    expect(codes).not.toContain('row-unserved');
  });
});
