import { describe, expect, it } from 'vitest';
import { checkSnapshot } from '../../wire/snapshot-rules.js';
import { evolvePlan } from './evolve.js';
import { HASH_SPACE } from './plan.js';
import { noRelief } from './protection/relief.js';
import { buildSnapshotView, type SnapshotViewInput } from './snapshot-view.js';
import { evolveInput, POOL } from './testing/fleet.js';

function viewInput(weights: Record<string, number>, replicas = [2, 1, 1]): SnapshotViewInput {
  const input = evolveInput([{ weights }], replicas);
  return {
    plan: evolvePlan(input),
    fleet: input.state.fleet,
    engines: input.state.engines,
    frontendId: 'west',
    version: 7,
    salt: 'salt',
    issuedAtMs: 5,
  };
}

describe('buildSnapshotView', () => {
  it('names the engines of a plan by their index in the fleet', () => {
    const input = viewInput({ e0: 0.5, e2: 0.5 });
    const view = buildSnapshotView(input);
    expect(view).toMatchObject({
      version: 7,
      planId: input.plan.id,
      frontendId: 'west',
      salt: 'salt',
      issuedAtMs: 5,
    });
    expect(view.models).toEqual([{ name: 'llama', pool: 0 }]);
    expect(view.pools).toEqual([
      {
        id: POOL,
        cluster: POOL,
        engines: [0, 1, 2],
        segments: [
          { start: 0, owner: 0, backup: 2 },
          { start: HASH_SPACE / 2, owner: 2, backup: 0 },
        ],
        retryRatio: 0.2,
        shedFraction: 0,
      },
    ]);
  });

  it('takes readiness from the present state, not from the plan', () => {
    const input = viewInput({ e0: 1 });
    const engines = input.engines.map((engine) => ({
      ...engine,
      replicas: engine.replicas.map((replica) => ({ ...replica, ready: false })),
    }));
    expect(buildSnapshotView({ ...input, engines }).engines[0]).toEqual({
      id: 'e0',
      replicas: [
        { address: '10.0.0.1:8000', ready: false },
        { address: '10.0.0.2:8000', ready: false },
      ],
    });
  });

  it('tells the share of default-priority requests to refuse', () => {
    const input = evolveInput(
      [{ weights: { e0: 1 }, demandRps: 200, shed: [{ priority: 0, fraction: 0.5 }] }],
      [1],
    );
    const view = buildSnapshotView({ ...viewInput({ e0: 1 }), plan: evolvePlan(input) });
    expect(view.pools[0]!.shedFraction).toBe(0.5);
    expect(view.pools[0]!.retryRatio).toBe(0);
  });

  it('refuses nobody for want of capacity where no engine has a replica: the filter says that nobody is available', () => {
    const input = viewInput({ e0: 1 });
    const rows = input.plan.rows.map((row) => ({ ...row, shed: [{ priority: 0, fraction: 1 }] }));
    const shedding = { ...input, plan: { ...input.plan, rows } };
    const without = (ids: readonly string[]) =>
      input.engines.map((engine) => (ids.includes(engine.id) ? { ...engine, replicas: [] } : engine));
    const shedOf = (ids: readonly string[]) =>
      buildSnapshotView({ ...shedding, engines: without(ids) }).pools[0]!.shedFraction;
    expect([shedOf([]), shedOf(['e0', 'e1']), shedOf(['e0', 'e1', 'e2'])]).toEqual([1, 1, 0]);
  });

  it('hands the segments of engines that are no longer eligible to their backups', () => {
    const input = viewInput({ e0: 0.5, e1: 0.5 });
    const pools = input.fleet.pools.map((pool) => ({ ...pool, engineIds: ['e1', 'e2'] }));
    const view = buildSnapshotView({ ...input, fleet: { ...input.fleet, pools } });
    expect(view.pools[0]!.segments).toEqual([{ start: 0, owner: 1, backup: -1 }]);
  });

  it('tells the pool of every combination of the needs of a model, under all its names', () => {
    const input = viewInput({ e0: 1 });
    const [pool] = input.fleet.pools;
    const fleet = {
      ...input.fleet,
      pools: [pool!, { ...pool!, id: 'llama~eu', needs: ['eu'], engineIds: ['e1'] }],
      needs: [
        { id: 'eu', when: { kind: 'header', name: 'x-region', value: 'eu' }, labels: { region: ['eu'] } },
        { id: 'long', when: { kind: 'promptTokens', above: 9 }, labels: null },
      ] as const,
      modelNeeds: [{ model: 'llama', needs: ['eu', 'long'], poolIds: [POOL, 'llama~eu', null, null] }],
      aliases: [{ name: 'alias', model: 'llama' }],
    };
    const view = buildSnapshotView({ ...input, fleet });
    expect(view.needs).toEqual([
      { id: 'eu', when: { kind: 'header', name: 'x-region', value: 'eu' } },
      { id: 'long', when: { kind: 'promptTokens', above: 9 } },
    ]);
    expect(view.models).toEqual([
      { name: 'alias', pool: 0, needs: [0, 1], pools: [0, 1, -1, -1] },
      { name: 'llama', pool: 0, needs: [0, 1], pools: [0, 1, -1, -1] },
    ]);
    expect(() => checkSnapshot(view)).not.toThrow();
  });

  it('gives a pool that the plan does not know no segments', () => {
    const input = viewInput({ e0: 1 });
    const view = buildSnapshotView({ ...input, frontendId: 'east' });
    expect(view.pools[0]!.segments).toEqual([]);
  });

  it('lists the engines that the frontend can reach, the nearest first', () => {
    const input = viewInput({ e0: 1 });
    const fleet = { ...input.fleet, networkSeconds: [[0.02, Number.POSITIVE_INFINITY, 0.01]] };
    expect(buildSnapshotView({ ...input, fleet }).nearest).toEqual([2, 0]);
    const networkSeconds = fleet.networkSeconds.map((row) => row.map((seconds) => 1 - seconds));
    expect(buildSnapshotView({ ...input, fleet, networkSeconds }).nearest).toEqual([0, 2]);
  });

  it('has the shed fractions of all priorities: whole classes below one that is shed, if no demand of theirs is known', () => {
    const input = viewInput({ e0: 1 });
    const when = { kind: 'path' as const, prefix: '/b' };
    const fleet = {
      ...input.fleet,
      classes: [
        { id: 'batch', priority: -10, when },
        { id: 'urgent', priority: 5, when },
        { id: 'idle', priority: -20, when },
      ],
    };
    const shedding = (shed: { priority: number; fraction: number }[]) => {
      const plan = { ...input.plan, rows: input.plan.rows.map((row) => ({ ...row, shed })) };
      const view = buildSnapshotView({ ...input, plan, fleet });
      checkSnapshot(view);
      const [pool] = view.pools;
      return [
        pool!.shedFraction,
        ...pool!.otherClasses!.map(({ priority, shedFraction }) => [priority, shedFraction]),
      ];
    };
    expect(shedding([])).toEqual([0, [5, 0], [-10, 0], [-20, 0]]);
    expect(shedding([{ priority: -10, fraction: 0.5 }])).toEqual([0, [5, 0], [-10, 0.5], [-20, 1]]);
    expect(shedding([{ priority: 0, fraction: 0.1 }])).toEqual([0.1, [5, 0], [-10, 1], [-20, 1]]);
    expect(buildSnapshotView({ ...input, fleet }).classRules).toEqual([
      { need: 0, priority: -10 },
      { need: 1, priority: 5 },
      { need: 2, priority: -20 },
    ]);
  });

  it('takes an engine for busy with more in flight than the part of an Envoy in what a full one has, and some', () => {
    const relief = { ...noRelief, full: new Map([['e0', 400]]), envoys: new Map([['west', 2]]) };
    const { plan, ...rest } = viewInput({ e0: 0.5, e1: 0.5 });
    const mine = plan.rows.find(({ frontendId }) => frontendId === 'west')!;
    const theirs = { ...mine, frontendId: 'east', demandRps: 3 * mine.demandRps };
    const busyAt = (rho: number) => {
      const engines = plan.engines.map((engine) => ({ ...engine, rho }));
      const view = buildSnapshotView({ ...rest, plan: { ...plan, rows: [mine, theirs], engines }, relief });
      checkSnapshot(view);
      return view.engines.map(({ busyAbove }) => busyAbove);
    };
    // A quarter of 400 for two Envoys is 50 each; 3 standard deviations of it are more than 30 %.
    expect(busyAt(1)).toEqual([71.2, undefined, undefined]);
    // Of the half that is idle, both frontends may have half: 75 each.
    expect(busyAt(0.5)[0]).toBe(101);
    // What next to nobody uses is theirs in equal parts, however little they ask for now.
    expect(busyAt(0)[0]).toBe(130);
    const alone = buildSnapshotView({ ...rest, plan, relief: { ...relief, envoys: new Map() } });
    expect(alone.engines[0]!.busyAbove).toBe(520);
  });

  it('tells how engines are relieved, and the share of keys that are steered', () => {
    const relief = {
      ...noRelief,
      engines: new Map([['e1', 0.3]]),
      replicas: new Map([['10.0.0.1:8000', 0.2]]),
      limits: new Map([['e0', 4]]),
    };
    const view = buildSnapshotView({ ...viewInput({ e0: 1 }), relief, steered: 0.5 });
    checkSnapshot(view);
    expect(view.steered).toBe(0.5);
    expect(view.engines[0]).toMatchObject({ replicaLimit: 4, replicas: [{ overflow: 0.2 }, {}] });
    expect(view.engines[1]).toMatchObject({ overflow: 0.3 });
    expect(view.engines[2]).toEqual({ id: 'e2', replicas: [expect.anything()] });
  });
});
