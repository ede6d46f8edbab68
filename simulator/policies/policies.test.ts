import { beforeAll, describe, expect, it, vi } from 'vitest';
import { MODEL_HEADER } from '../../wire/names.js';
import { loadConfig } from '../../xds-server/config/load.js';
import { engineKinds } from '../engine/parameters.js';
import { filterModule } from '../filter-host/build.js';
import { fittedProfile } from '../fitted-profile.js';
import { exampleConversations, exampleSizes } from '../load/conversations.js';
import { DEFAULT_CLIENT, onePool, type Scenario, type ScenarioDemand } from '../scenario.js';
import { World } from '../virtual/world.js';
import { shaped } from '../workloads/conversation-source.js';
import { steady } from '../workloads/rate-curve.js';
import { policies } from './index.js';
import type { PolicyFactory } from './policy.js';

const source = shaped(exampleConversations, exampleSizes);
const engine = (id: string, kind: string, nominalRps: number) => ({
  id,
  engineId: id,
  region: id,
  parameters: engineKinds[kind]!,
  profile: kind,
  work: fittedProfile(kind)!.work,
  nominalRps,
});

const engines = [engine('a', 'sim-100', 100), engine('b', 'sim-100', 100), engine('c', 'sim-80', 80)];

const demand = (id: string, requestsPerSecond: number): ScenarioDemand => ({
  ...{ id, source, rate: steady(requestsPerSecond), expectedRps: requestsPerSecond, classShares: [1] },
});

/** Two regions and three engines at a third of their capacity. */
const calm: Scenario = {
  id: 'calm',
  about: '',
  frontends: [
    { id: 'west', region: 'west', demands: [demand('west', 40)] },
    { id: 'east', region: 'east', demands: [demand('east', 40)] },
  ],
  engines,
  ...onePool(engines),
  rttMs: [
    [4, 40, 80],
    [80, 40, 4],
  ],
  warmupSeconds: 15,
  seconds: 25,
  settledFrom: 15,
  faults: [],
  slo: { ttftSeconds: 0.5, e2eSeconds: 2 },
  client: DEFAULT_CLIENT,
  signals: { periodSeconds: 1, delaySeconds: 1 },
};

const run = (policy: PolicyFactory | undefined, change: Partial<Scenario> = {}) =>
  World.run({ ...calm, ...change }, policy!, 1);

/** Requests that an engine got in samples that end after `from` and by `until`. */
function sentTo(
  record: Awaited<ReturnType<typeof run>>,
  engineIndex: number,
  from: number,
  until: number,
): number {
  return record.samples
    .filter(({ atSeconds }) => atSeconds > from && atSeconds <= until)
    .reduce((sum, { sent }) => sum + sent.reduce((all, row) => all + row[engineIndex]!, 0), 0);
}

// Runs whole worlds, on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 });

beforeAll(() => {
  filterModule();
});

const PLANNED = ['native-maglev', 'wardrop', 'clairvoyant'];

describe.each(Object.entries(policies))('policy %s', (name, policy) => {
  it('serves everybody where there is room, the same in every run', async () => {
    const record = await run(policy);
    expect(record.ends.answered).toBe(record.requests);
    expect(record.requests).toBeGreaterThan(1600);
    expect((await run(policy)).e2eSeconds).toEqual(record.e2eSeconds);
  });

  it('tries an engine and one other, Wardrop another one yet within its budget, each once', async () => {
    const lengths = new Set<number>();
    const counting: PolicyFactory = async (context) => {
      const inner = await policy!(context);
      const decide = inner.decide.bind(inner);
      return Object.assign(inner, {
        decide(...given: Parameters<typeof decide>) {
          const list = decide(...given) as readonly number[];
          lengths.add(list.length);
          expect(new Set(list).size).toBe(list.length);
          return list;
        },
      });
    };
    await run(counting, { seconds: 5 });
    expect(Math.max(...lengths)).toBeLessThanOrEqual(name === 'wardrop' ? 3 : 2);
    // Where a plan gives shares to few, there are no more.
    if (!PLANNED.includes(name)) expect([...lengths]).toEqual([2]);
  });

  it('sends next to nothing to an engine that is known to be dead', async () => {
    const record = await run(policy, {
      rttMs: calm.rttMs.map(() => [4, 4, 4]),
      faults: [{ kind: 'engine-down', engine: 'a', from: 18, until: 30 }],
    });
    expect(sentTo(record, 0, 20, 30)).toBeLessThan(20);
    expect(record.ends.failed / record.requests).toBeLessThan(0.02);
  });
});

describe.each(Object.entries(policies))('several pools under policy %s', (_, policy) => {
  it('are each served by engines that may and that there is a way to, also when those of the pool are dead', async () => {
    const both = { m: { requestsPerSecond: 20 }, n: { requestsPerSecond: 20 } };
    const config = loadConfig('fleet.yaml', () =>
      JSON.stringify({
        frontends: ['west', 'east'].map((id) => ({ id, region: id })),
        engines: engines.map(({ id, profile, region }, at) => ({
          ...{ id, profile, region, models: at === 1 ? ['m', 'n'] : [at === 0 ? 'm' : 'n'] },
          endpoints: [`10.0.0.${at}:8000`],
        })),
        network: { rttMs: { west: { a: 4, b: 40, c: 80 }, east: { a: 80, b: 40, c: null } } },
        profiles: { 'sim-100': fittedProfile('sim-100'), 'sim-80': fittedProfile('sim-80') },
        demand: { west: { models: both }, east: { models: both } },
      }),
    );
    const pools = [
      { id: 'm', eligible: [true, true, false] },
      { id: 'n', eligible: [false, true, true] },
    ];
    const twoModels: Partial<Scenario> = {
      ...{ config, pools },
      engines: engines.map((each, at) => ({ ...each, address: `10.0.0.${at}:8000` })),
      rttMs: [
        [4, 40, 80],
        [80, 40, Number.POSITIVE_INFINITY],
      ],
      classes: pools.map(({ id }, pool) => ({ id, headers: { [MODEL_HEADER]: id }, pool })),
      frontends: calm.frontends.map((frontend) => ({
        ...frontend,
        demands: pools.map(({ id }, pool) => ({
          ...demand(`${frontend.id} ${id}`, 20),
          classShares: [1 - pool, pool],
        })),
      })),
      faults: [{ kind: 'engine-down', engine: 'c', from: 18, until: 30 }],
    };
    const record = await run(policy, twoModels);
    expect(record.ends.failed / record.requests).toBeLessThan(0.02);
    expect(record.flows[1]![2]).toBe(0);
    // By row: west m, west n, east m, east n.
    const sent = record.samples.reduce(
      (sums, sample) => sums.map((row, at) => row.map((sum, engine) => sum + sample.sent[at]![engine]!)),
      [0, 1, 2, 3].map(() => [0, 0, 0]),
    );
    for (const row of [0, 2]) expect(sent[row]![2]).toBe(0);
    for (const row of [1, 3]) expect(sent[row]![0]).toBe(0);
    expect(Math.min(...sent.map((row) => row.reduce((a, b) => a + b, 0)))).toBeGreaterThan(400);
  });

  it('fail only where nobody is left or may be reached', async () => {
    const half = calm.frontends.map((frontend) => ({
      ...frontend,
      demands: [{ ...demand(frontend.id, 20), classShares: [0.5, 0.5] }],
    }));
    const needs: Partial<Scenario> = {
      ...{ frontends: half, seconds: 15 },
      ...needsOf('c'),
      engines: engines.map((each) => ({ ...each, labels: { of: each.id } })),
      rttMs: [
        [4, 40, 80],
        [80, 40, Number.POSITIVE_INFINITY],
      ],
      faults: [{ kind: 'engine-down', engine: 'c', from: 16, until: 1e9 }],
    };
    const [none, onlyC] = (await run(policy, needs)).byClass;
    expect(none!.ends.answered / none!.e2eSeconds.length).toBeGreaterThan(0.95);
    expect(onlyC!.ends.answered / onlyC!.e2eSeconds.length).toBeLessThan(0.2);
  });
});

/** A pool for everything, and one for each of the needs, which only this engine meets. */
function needsOf(engineId: string, names: readonly string[] = ['x']): Pick<Scenario, 'pools' | 'classes'> {
  const needs = names.map((name) => ({ name, headers: { 'x-need': name }, labels: { of: engineId } }));
  return {
    pools: [
      { id: 'none', eligible: engines.map(() => true) },
      ...names.map((id) => ({ id, eligible: engines.map(({ id }) => id === engineId) })),
    ],
    classes: [
      { id: 'none', headers: {}, pool: 0 },
      ...needs.map((need, at) => ({ id: need.name, headers: need.headers, pool: at + 1, need })),
    ],
  };
}

it.each(['native-maglev', 'wardrop', 'clairvoyant'])(
  'needs that the same engines meet are planned for as one: %s',
  async (name) => {
    const withNeeds = (shares: readonly number[], names: readonly string[]) =>
      run(policies[name], {
        seconds: 10,
        ...needsOf('a', names),
        engines: engines.map((each) => ({ ...each, labels: { of: each.id } })),
        frontends: calm.frontends.map((frontend) => ({
          ...frontend,
          demands: [{ ...demand(frontend.id, 90), classShares: shares }],
        })),
      });
    const asOne = await withNeeds([0.5, 0.5], ['x']);
    const asTwo = await withNeeds([0.5, 0.25, 0.25], ['x', 'y']);
    expect(asTwo.e2eSeconds).toEqual(asOne.e2eSeconds);
  },
);

it('waterfall fills the replicas of an engine alike', async () => {
  const replicas = engines.map((each) => ({ ...each, engineId: each.id === 'c' ? 'c' : 'a' }));
  const record = await run(policies.waterfall, {
    engines: replicas,
    rttMs: [
      [4, 4, 80],
      [4, 4, 80],
    ],
  });
  const [a, b] = [0, 1].map((engine) => record.flows.reduce((sum, row) => sum + row[engine]!, 0));
  expect(Math.abs(a! - b!)).toBeLessThan(0.2 * (a! + b!));
});

it('Wardrop refuses the same requests in every run, and clients come back at the same times', async () => {
  const overload = () =>
    run(policies.wardrop, {
      rttMs: calm.rttMs.map(() => [4, 4, Number.POSITIVE_INFINITY]),
      warmupSeconds: 3,
      seconds: 3,
      frontends: calm.frontends.map((frontend) => ({ ...frontend, demands: [demand(frontend.id, 130)] })),
    });
  const record = await overload();
  expect(record.clientRetries).toBeGreaterThan(0);
  expect((await overload()).e2eSeconds).toEqual(record.e2eSeconds);
});

describe('policies that know conversations', () => {
  it.each(['consistent-hash', 'session-pinning', 'endpoint-picker', 'waterfall', 'native-maglev', 'wardrop'])(
    '%s keeps them where they are at steady demand',
    async (name) => {
      const record = await run(policies[name]);
      expect(record.moved / record.followUps).toBeLessThan(0.02);
      expect(record.cachedTokens / record.promptTokens).toBeGreaterThan(0.68);
    },
  );
});

describe('several Envoys in each frontend', () => {
  const frontends = calm.frontends.map((frontend) => ({ ...frontend, envoys: 3 }));

  it.each(['consistent-hash', 'session-cookie', 'endpoint-picker', 'native-maglev', 'wardrop'])(
    'change nothing where the key or the client says where a conversation is: %s',
    async (name) => {
      const record = await run(policies[name], { frontends });
      expect(record.moved / record.followUps).toBeLessThan(0.02);
    },
  );

  it('scatter conversations where each has a table of its own', async () => {
    const record = await run(policies['session-pinning'], { frontends });
    expect(record.moved / record.followUps).toBeGreaterThan(0.3);
  });
});

describe('policies that know the place', () => {
  // Beyond that, engines in the middle answer sooner than a busier one nearby.
  const leastShares = { nearest: 0.99, waterfall: 0.99, wardrop: 0.8, clairvoyant: 0.8 };

  it.each(Object.entries(leastShares))('%s stays near while there is room', async (name, least) => {
    const { samples } = await run(policies[name]);
    const settled = samples.slice(4).map(({ sent }) => sent[0]!);
    const near = settled.reduce((sum, row) => sum + row[0]!, 0);
    const far = settled.reduce((sum, row) => sum + row[2]!, 0);
    const all = settled.flat().reduce((a, b) => a + b, 0);
    expect(near / all).toBeGreaterThan(least);
    expect(far).toBe(0);
  });
});

describe('bounded loads', () => {
  it('never give an engine more than 1.25 times its share of what the Envoy has in flight', async () => {
    const bounded = policies['bounded-load']!;
    let checked = 0;
    await run((context) => {
      const inner = bounded(context) as Awaited<ReturnType<typeof bounded>>;
      const capacities = context.scenario.engines.map(({ nominalRps }) => nominalRps);
      const total = capacities.reduce((a, b) => a + b, 0);
      return {
        ...inner,
        decide(request, now) {
          const [first] = inner.decide(request, now) as number[];
          const flying = context.local.inFlight[request.envoy]!;
          const sum = flying.reduce((a, b) => a + b, 1);
          expect(flying[first!]! + 1).toBeLessThanOrEqual(
            Math.ceil((1.25 * sum * capacities[first!]!) / total),
          );
          checked++;
          return [first!];
        },
      };
    });
    expect(checked).toBeGreaterThan(1600);
  });
});
