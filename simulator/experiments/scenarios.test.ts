import { beforeAll, describe, expect, it, vi } from 'vitest';
import { filterModule } from '../filter-host/build.js';
import { measure } from '../measures/from-run.js';
import { policies } from '../policies/index.js';
import { proportional } from '../policies/proportional.js';
import type { Scenario } from '../scenario.js';
import { namedScenario } from '../scenario-file/library.js';
import { World } from '../virtual/world.js';
import { variants } from './variants.js';

const known = Object.keys({ ...policies, ...variants });

const scenario = (id: string, change: Partial<Scenario> = {}): Scenario => ({
  ...namedScenario(id, known).scenario,
  ...change,
});

const tried = async (where: Scenario, policy: string, seed = 1) =>
  measure(where, await World.run(where, policies[policy]!, seed));

// Minutes of virtual time.
vi.setConfig({ testTimeout: 60_000 });

beforeAll(() => {
  filterModule();
});

describe('three regions', () => {
  it('melt down where everybody goes to the nearest engine; under Wardrop they keep still and keep their caches', async () => {
    const short = scenario('three-regions', { warmupSeconds: 45, seconds: 25, settledFrom: 45 });
    const near = await tried(short, 'nearest');
    const pinned = await tried(short, 'session-pinning');
    const ours = await tried(short, 'wardrop');
    expect(near.goodput).toBeLessThan(0.6);
    expect(ours.goodput).toBeGreaterThan(0.95);
    expect(ours.meanE2eMs).toBeLessThan(near.meanE2eMs / 2);
    expect(ours.shedShare).toBe(0);
    expect(ours.reversals).toBe(0);
    expect(pinned.cacheHitShare - ours.cacheHitShare).toBeLessThan(0.02);
  });
});

describe('the failure story', () => {
  it('has the old controller oscillate from a saturated start, whatever the end of the day', async () => {
    const steady = scenario('three-regions', { warmupSeconds: 20, seconds: 30, settledFrom: 20 });
    const old = measure(steady, await World.run(steady, proportional({ gain: 0.5, smoothing: 0.2 }), 1));
    expect(old.amplitude).toBeGreaterThan(0.3);
    expect(old.reversals).toBeGreaterThan(60);
    expect(old.movedShare).toBeGreaterThan(0.1);
  });

  it('ends well under Wardrop: nothing fails, and what moves is what the change of weights asks for', async () => {
    const short = scenario('failure-story', { seconds: 90, settledFrom: 100 });
    const ours = await tried(short, 'wardrop');
    expect(ours.failedShare).toBe(0);
    expect(ours.reversals).toBe(0);
    expect(ours.movesPerTv ?? 1).toBeLessThan(1.35);
  });
});

describe('several frontends', () => {
  it('join the same engine where each decides by reports alone, and share them out under Wardrop', async () => {
    const short = scenario('herd', { warmupSeconds: 60, seconds: 25, settledFrom: 60 });
    const alone = await tried(short, 'local-best');
    const ours = await tried(short, 'wardrop');
    expect(alone.amplitude).toBeGreaterThan(0.3);
    expect(ours.reversals).toBe(0);
    expect(ours.p99E2eMs).toBeLessThan(alone.p99E2eMs);
  });
});

describe('needs', () => {
  it('are met where what may go elsewhere leaves room, and are not where everybody goes to the nearest', async () => {
    const short = scenario('eu-only', { warmupSeconds: 45, seconds: 25, settledFrom: 45 });
    const near = await tried(short, 'nearest');
    const ours = await tried(short, 'wardrop');
    expect(near.goodput).toBeLessThan(0.6);
    expect(ours.goodput).toBeGreaterThan(0.95);
    expect(ours.peakLoad).toBeLessThan(0.99);
  });
});

describe('priorities', () => {
  it('decide who is refused when there is more than all engines can give', async () => {
    const short = scenario('priorities', { seconds: 60 });
    const ours = await tried(short, 'wardrop');
    expect(ours.byClass.urgent!.shedShare).toBe(0);
    expect(ours.byClass.batch!.shedShare).toBeGreaterThan(0.3);
    expect(ours.byClass.none!.shedShare).toBeLessThan(0.1);
    expect(ours.byClass.urgent!.failedShare).toBeLessThan(0.02);
  });
});

describe('a replica that hangs', () => {
  it('has few requests left: it is found, and none of its clients tries in vain', async () => {
    const short = scenario('replica-hangs', { warmupSeconds: 20, seconds: 60 });
    const ours = await tried(short, 'wardrop');
    expect(ours.failedShare).toBe(0);
    expect(ours.goodput).toBeGreaterThan(0.96);
  });
});

describe('a dead control server', () => {
  it('costs nothing while demand stays, even when an engine dies', async () => {
    const calm = scenario('engine-loss', { seconds: 45, settledFrom: 30 });
    const dead: Scenario = {
      ...calm,
      faults: [...calm.faults, { kind: 'control-down', from: 25, until: 1e9 }],
    };
    const ours = await tried(dead, 'wardrop');
    // What was being answered when the engine died comes back by the clients' own retries.
    expect(ours.failedShare).toBe(0);
    expect(ours.goodput).toBeGreaterThan(0.8);
  });
});
