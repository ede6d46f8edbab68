import { describe, expect, it } from 'vitest';
import { workSeconds } from '../../xds-server/profiles/profile.js';
import { openLoop } from '../benchmark/benchmark.js';
import { engineKinds } from '../engine/parameters.js';
import { fittedProfile } from '../fitted-profile.js';
import { exampleConversations, exampleSizes } from '../load/conversations.js';
import { measure } from '../measures/from-run.js';
import type { Policy, PolicyFactory, Telemetry } from '../policies/policy.js';
import {
  DEFAULT_CLIENT,
  type Fault,
  onePool,
  type Scenario,
  type ScenarioDemand,
  type ScenarioFrontend,
} from '../scenario.js';
import { shaped } from '../workloads/conversation-source.js';
import { withHotKeys } from '../workloads/hot-keys.js';
import { steady } from '../workloads/rate-curve.js';
import type { Recorder } from './recorder.js';
import { World } from './world.js';

const parameters = engineKinds['sim-100']!;
const source = shaped(exampleConversations, exampleSizes);
const engine = (id: string) => ({
  id,
  engineId: id,
  region: id,
  parameters,
  profile: 'sim-100',
  work: fittedProfile('sim-100')!.work,
  nominalRps: 100,
});

const engines = [engine('a'), engine('b')];

const frontendOf = (requestsPerSecond: number, change: Partial<ScenarioDemand> = {}): ScenarioFrontend => {
  const rate = steady(requestsPerSecond);
  const demand = { id: 'f', source, rate, expectedRps: requestsPerSecond, classShares: [1], ...change };
  return { id: 'f', region: 'f', demands: [demand] };
};

const small: Scenario = {
  id: 'small',
  about: '',
  frontends: [frontendOf(40)],
  engines,
  ...onePool(engines),
  rttMs: [[20, 100]],
  warmupSeconds: 15,
  seconds: 30,
  settledFrom: 15,
  faults: [],
  slo: { ttftSeconds: 0.5, e2eSeconds: 2 },
  client: DEFAULT_CLIENT,
  signals: { periodSeconds: 1, delaySeconds: 2 },
};

const always =
  (list: readonly number[], more: Partial<Policy> = {}): PolicyFactory =>
  () => ({ id: 'always', decide: () => list, ...more });

const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;

describe('a world', () => {
  it('gives every policy the same requests, and the same run again for the same seed', async () => {
    const a = await World.run(small, always([0]), 3);
    const again = await World.run(small, always([0]), 3);
    const b = await World.run(small, always([1]), 3);
    const other = await World.run(small, always([0]), 4);
    expect(again.e2eSeconds).toEqual(a.e2eSeconds);
    expect(b.requests).toBe(a.requests);
    expect(b.promptTokens).toBe(a.promptTokens);
    expect(other.promptTokens).not.toBe(a.promptTokens);
  });

  it('adds exactly the round trip to what the engine takes', async () => {
    const near = await World.run({ ...small, rttMs: [[0, 0]] }, always([0]), 1);
    const far = await World.run({ ...small, rttMs: [[80, 0]] }, always([0]), 1);
    expect(mean(far.e2eSeconds) - mean(near.e2eSeconds)).toBeCloseTo(0.08, 6);
    expect(mean(far.ttftSeconds) - mean(near.ttftSeconds)).toBeCloseTo(0.08, 6);
  });

  it('agrees with the benchmark of one replica on latency and cache hits', async () => {
    const rate = {
      ...small,
      frontends: [frontendOf(70)],
      rttMs: [[0, 0]],
      seconds: 120,
    };
    const world = await World.run(rate, always([0]), 1);
    const alone = openLoop(parameters, exampleConversations, 70, { warmupSeconds: 15, seconds: 120 }, 1);
    expect(Math.abs(mean(world.e2eSeconds) / alone.e2eSeconds - 1)).toBeLessThan(0.05);
    const hits = 1 - alone.uncachedPromptTokens / alone.promptTokens;
    expect(Math.abs(world.cachedTokens / world.promptTokens - hits)).toBeLessThan(0.01);
  });

  it('accounts for every request, also while engines die, are full or are too slow', async () => {
    const scenario: Scenario = {
      ...small,
      client: { timeoutSeconds: 3, retries: 2 },
      frontends: [frontendOf(160)],
      faults: [
        { kind: 'engine-down', engine: 'a', from: 20, until: 25 },
        { kind: 'slow-engine', engine: 'b', slowness: 2, from: 22, until: 28 },
      ],
    };
    let decided = 0;
    const outcomes: string[] = [];
    const record = await World.run(
      scenario,
      () => ({
        id: 'count',
        decide: () => {
          decided++;
          return [0, 1];
        },
        ended: (_request, _engine, _now, outcome) => {
          outcomes.push(outcome);
        },
      }),
      1,
    );
    expect(outcomes).toHaveLength(decided);
    expect(record.requests).toBe(record.e2eSeconds.length);
    expect(record.failovers).toBeGreaterThan(0);
    for (const outcome of ['answered', 'failed', 'timeout']) expect(outcomes).toContain(outcome);
  });

  it('has an engine back when all that took it away is over, and as slow as it is to be', async () => {
    const down = { kind: 'engine-down', engine: 'a' } as const;
    const faults: Fault[] = [
      { ...down, from: 20, until: 40 },
      { ...down, from: 22, until: 25 },
      { kind: 'slow-engine', engine: 'a', slowness: 2, from: 16, until: 1e9 },
    ];
    const tried = (acting: readonly Fault[]) =>
      World.run({ ...small, seconds: 40, faults: acting }, always([0]), 1);
    const both = await tried(faults);
    const longer = await tried([faults[0]!, faults[2]!]);
    expect(both.e2eSeconds).toEqual(longer.e2eSeconds);
    const usual = await tried([faults[0]!]);
    const last = (record: Recorder) => mean(record.e2eSeconds.slice(-200));
    expect(last(both) / last(usual)).toBeGreaterThan(1.7);
  });

  it('tries the next engine of the list when the first one is dead, and counts the move', async () => {
    const faults = [{ kind: 'engine-down', engine: 'a', from: 0, until: 1e9 } as const];
    const record = await World.run({ ...small, faults }, always([0, 1]), 1);
    expect(record.ends).toEqual({ answered: record.requests, shed: 0, timeout: 0, failed: 0 });
    // Connecting in vain costs a round trip.
    expect(Math.min(...record.e2eSeconds)).toBeGreaterThan(0.12);
  });

  it('lets clients try three times, with the pauses of the SDK, and then counts the failure', async () => {
    const faults = [{ kind: 'engine-down', engine: 'a', from: 0, until: 1e9 } as const];
    const record = await World.run({ ...small, faults }, always([0]), 1);
    expect(record.ends.failed).toBe(record.requests);
    expect(record.clientRetries).toBe(2 * record.requests);
    const pauses = record.e2eSeconds.map((seconds) => seconds - 3 * 0.02);
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(0.75 * 1.5);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(1.5 + 1e-9);
  });

  it('tells what a period showed once per period, late by the delay, and nothing while control is down', async () => {
    const seen: { readonly at: number; readonly telemetry: Telemetry }[] = [];
    const update = (telemetry: Telemetry, at: number) => {
      seen.push({ at, telemetry });
    };
    const faults = [{ kind: 'control-down', from: 20.5, until: 30.5 } as const];
    await World.run({ ...small, faults }, always([0], { update }), 1);
    for (const { at, telemetry } of seen) expect(at - telemetry.atSeconds).toBeCloseTo(2);
    const times = seen.map(({ telemetry }) => telemetry.atSeconds);
    expect(times.filter((at) => at > 18.5 && at < 30.5)).toEqual([]);
    expect(times.slice(0, 3)).toEqual([1, 2, 3]);
    const late = seen.filter(({ telemetry }) => telemetry.atSeconds > 12 && telemetry.atSeconds <= 18);
    expect(Math.abs(mean(late.map(({ telemetry }) => telemetry.demandRps[0]![0]!)) / 40 - 1)).toBeLessThan(
      0.25,
    );
  });

  it('lets nothing cross the border of a region that is cut off: connections time out, the control server is blind', async () => {
    const regions = { ...small, engines: [{ ...engine('a'), region: 'far' }, engine('b')] };
    const faults = [{ kind: 'region-cut', region: 'far', from: 20, until: 1e9 } as const];
    const seen: boolean[] = [];
    const record = await World.run(
      { ...regions, faults },
      ({ control, local }) => ({
        ...{ id: 'look', decide: () => [0, 1] },
        update: () => {
          seen.push(control.ready[0]!, local.ready[0]![0]!);
        },
      }),
      1,
    );
    expect(record.ends.answered).toBe(record.requests);
    expect(seen.slice(0, 4)).toEqual([true, true, true, true]);
    expect(seen.slice(-2)).toEqual([false, false]);
    // A second in vain, then the other engine.
    const late = record.ttftSeconds.filter((seconds) => seconds > 1).length;
    expect(late / record.requests).toBeGreaterThan(0.6);
  });

  it('shows old signals while they are frozen, and all of them later while they are stale', async () => {
    const seen: { readonly at: number; readonly of: number }[] = [];
    const update = (telemetry: Telemetry, at: number) => {
      seen.push({ at, of: telemetry.atSeconds });
    };
    const faults = [
      { kind: 'frozen-signals', from: 10.5, until: 20.5 } as const,
      { kind: 'stale-signals', extraDelaySeconds: 5, from: 30.5, until: 1e9 } as const,
    ];
    await World.run({ ...small, faults }, always([0], { update }), 1);
    expect(new Set(seen.filter(({ at }) => at > 13 && at < 22).map(({ of }) => of))).toEqual(new Set([10]));
    for (const { at, of } of seen.filter((item) => item.of > 31)) expect(at - of).toBeCloseTo(7);
  });

  it('lets frontends read pages of engines that they get through to, where a policy asks', async () => {
    const regions = { ...small, engines: [{ ...engine('a'), region: 'far' }, engine('b')] };
    const faults = [
      { kind: 'frozen-signals', from: 20, until: 25 } as const,
      { kind: 'region-cut', region: 'far', from: 30, until: 35 } as const,
    ];
    const read = async (readsPages: boolean) => {
      const seen: { readonly at: number; readonly kvUse: number }[] = [];
      const watching: PolicyFactory = ({ local }) => ({
        ...{ id: 'watching', readsPages },
        decide(_, at) {
          seen.push({ at, kvUse: local.pages[0]![0]!.kvUse });
          return [0];
        },
      });
      await World.run({ ...regions, faults }, watching, 1);
      return (from: number, until: number) =>
        new Set(seen.filter(({ at }) => at > from && at < until).map(({ kvUse }) => kvUse)).size;
    };
    const changes = await read(true);
    expect(changes(15, 20)).toBeGreaterThan(20);
    expect(changes(20.1, 25)).toBeGreaterThan(20);
    expect(changes(30.1, 35)).toBe(1);
    expect((await read(false))(15, 45)).toBe(1);
  });

  it('brings the requests of a conversation to all Envoys of its frontend alike, and tells each what it has in flight', async () => {
    const frontends = ['f', 'g'].map((id) => ({ ...frontendOf(40, { id }), id, envoys: 2 }));
    const counts = [0, 0, 0, 0];
    const flying = [0, 0, 0, 0];
    const last = new Map<string, number>();
    let changes = 0;
    let followUps = 0;
    const record = await World.run(
      { ...small, frontends, rttMs: [small.rttMs[0]!, small.rttMs[0]!] },
      ({ local }) => ({
        id: 'envoys',
        decide: ({ frontend, envoy, conversation: { id } }) => {
          expect(envoy >> 1).toBe(frontend);
          counts[envoy]!++;
          flying[envoy]!++;
          const before = last.get(id);
          if (before !== undefined) followUps++;
          if (before !== undefined && before !== envoy) changes++;
          last.set(id, envoy);
          return [0];
        },
        ended: ({ envoy }) => {
          flying[envoy]!--;
          expect(local.inFlight[envoy]![0]).toBe(flying[envoy]);
        },
      }),
      1,
    );
    const all = counts.reduce((a, b) => a + b, 0);
    expect(record.requests).toBeLessThanOrEqual(all);
    for (const count of counts) expect(Math.abs(count / all - 0.25)).toBeLessThan(0.05);
    expect(Math.abs(changes / followUps - 0.5)).toBeLessThan(0.1);
  });

  it('takes no engine from a policy that may not serve a request', async () => {
    const pools = [{ id: 'b-only', eligible: [false, true] }];
    const record = await World.run({ ...small, pools }, always([1]), 1);
    expect(record.flows).toEqual([[0, record.requests]]);
    await expect(World.run({ ...small, pools }, always([1, 0]), 1)).rejects.toThrow(
      'always chose engines 1,0, one of which may not serve pool b-only',
    );
  });

  it('keeps conversations of several pools apart, also under one key, and counts each by the SLO of its pool', async () => {
    const pools = [
      { id: 'a', eligible: [true, false] },
      { id: 'b', eligible: [false, true], slo: { ttftSeconds: 1e-6, e2eSeconds: 2 } },
    ];
    const classes = pools.map(({ id }, pool) => ({ id, headers: {}, pool }));
    const hot = withHotKeys(source, { share: 1, keys: 1 });
    const demands = [40, 20].map((requestsPerSecond, index) => ({
      ...{ id: `f ${index}`, source: hot, rate: steady(requestsPerSecond), expectedRps: requestsPerSecond },
      classShares: [1 - index, index],
    }));
    const rates: number[] = [];
    const record = await World.run(
      { ...small, pools, classes, frontends: [{ id: 'f', region: 'f', demands }] },
      () => ({
        id: 'own',
        decide: ({ pool }) => [pool],
        update: ({ demandRps: [byPool] }) => {
          rates.push(byPool![1]! / (byPool![0]! + byPool![1]!));
        },
      }),
      1,
    );
    expect(record.moved).toBe(0);
    expect(Math.abs(mean(rates.slice(15)) - 1 / 3)).toBeLessThan(0.05);
    expect(record.byClass.map(({ good, ends }) => good / ends.answered)).toEqual([1, 0]);
    const sent = record.samples.at(-2)!.sent;
    expect(sent.map(([a, b]) => [a! > 0, b! > 0])).toEqual([
      [true, false],
      [false, true],
    ]);
  });

  it('counts as load the work of what an engine was sent, whatever requests of other pools take', async () => {
    const long = shaped(
      { ...exampleConversations, outputTokens: { min: 160, max: 200 } },
      { ...exampleSizes, outputTokens: 180 },
    );
    const pools = [
      { id: 'a', eligible: [true, false] },
      { id: 'b', eligible: [false, true] },
    ];
    const classes = pools.map(({ id }, pool) => ({ id, headers: {}, pool }));
    const demands = [source, long].map((each, index) => ({
      ...{ id: `f ${index}`, source: each, rate: steady(20), expectedRps: 20 },
      classShares: [1 - index, index],
    }));
    const scenario = { ...small, pools, classes, frontends: [{ id: 'f', region: 'f', demands }] };
    const record = await World.run(scenario, () => ({ id: 'own', decide: ({ pool }) => [pool] }), 1);
    const { loadByEngine, peakLoad } = measure(scenario, record);
    const each = [source, long].map(({ expected }) => workSeconds(engines[0]!, expected));
    const sent = record.flows[0]!.map((count) => count / small.seconds);
    expect(loadByEngine.a).toBeCloseTo(sent[0]! * each[0]!);
    expect(peakLoad).toBeCloseTo(sent[1]! * each[1]!);
    expect(each[1]! / each[0]!).toBeGreaterThan(2);
  });

  it('sends hot keys under one name from many conversations', async () => {
    const hot = withHotKeys(source, { share: 0.5, keys: 1 });
    const frontends = [frontendOf(40, { source: hot })];
    const keys = new Map<string, number>();
    await World.run(
      { ...small, frontends },
      () => ({
        id: 'keys',
        decide: ({ conversation: { id } }) => {
          keys.set(id, (keys.get(id) ?? 0) + 1);
          return [0];
        },
      }),
      1,
    );
    const all = [...keys.values()].reduce((a, b) => a + b, 0);
    expect(Math.abs(keys.get('hot-0')! / all - 0.5)).toBeLessThan(0.1);
  });
});
