import { describe, expect, it } from 'vitest';
import { checkSnapshot } from '../../wire/snapshot-rules.js';
import { evolvePlan } from './evolve.js';
import { HASH_SPACE } from './plan.js';
import { buildSnapshotView, type SnapshotViewInput } from './snapshot-view.js';
import { evolveInput, POOL } from './test-fleet.js';

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
});
