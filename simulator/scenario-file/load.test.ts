import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { ConfigError } from '../../xds-server/config/problem.js';
import { expectedRpsOf } from '../scenario.js';
import { namedScenario, scenarioNames } from './library.js';
import { loadScenario } from './load.js';

const POLICIES = [
  'nearest',
  'wardrop',
  'local-best',
  'waterfall',
  'proportional',
  'session-pinning',
  'session-cookie',
  'clairvoyant',
];

const small = {
  about: 'two regions',
  frontends: [
    { id: 'west', requestsPerSecond: 40, steps: [{ at: 20, requestsPerSecond: 60 }] },
    { id: 'east', requestsPerSecond: 20, needs: { eu: 0.25 } },
  ],
  engines: [
    { id: 'a', kind: 'sim-100', replicas: 2, labels: { place: 'eu' } },
    { id: 'b', kind: 'sim-80' },
  ],
  needs: { eu: { place: 'eu' } },
  network: { rttMs: { west: { a: 5, b: 50 }, east: { a: 50, b: 5 } } },
  seconds: 60,
  faults: [{ kind: 'engine-down', engine: 'a', from: 40, until: 50 }],
  assertions: [{ policy: 'wardrop', measure: 'goodput', atLeast: 0.9 }],
};

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'wardrop-scenario-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

const load = (content: object | string) => {
  const file = join(folder, 'small.yaml');
  writeFileSync(file, typeof content === 'string' ? content : stringify(content));
  return loadScenario(file, POLICIES);
};

function problems(content: object | string): string {
  try {
    load(content);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message.replaceAll(`${folder}/`, '');
  }
  throw new Error('no problem was found');
}

describe('a scenario file', () => {
  it('becomes a scenario: replicas are engines of their own, needs are classes, what is left out has its default', () => {
    const { scenario, assertions } = load(small);
    expect(scenario).toMatchObject({
      id: 'small',
      warmupSeconds: 30,
      settledFrom: 30,
      lastChangeAt: 50,
      client: { timeoutSeconds: 10, retries: 2 },
      signals: { periodSeconds: 1, delaySeconds: 1 },
      rttMs: [
        [5, 5, 50],
        [50, 50, 5],
      ],
    });
    expect(scenario.engines.map(({ id, engineId }) => [id, engineId])).toEqual([
      ['a/0', 'a'],
      ['a/1', 'a'],
      ['b', 'b'],
    ]);
    expect(scenario.frontends[0]!.demands[0]!.rate.at(10)).toBe(40);
    expect(scenario.frontends[0]!.demands[0]!.rate.at(20)).toBe(60);
    expect(scenario.frontends[1]!.demands[0]!.classShares).toEqual([0.75, 0.25]);
    expect(scenario.frontends.map(({ demands }) => demands[0]!.expectedRps)).toEqual([40, 20]);
    expect(scenario.classes.map(({ id, pool }) => [id, scenario.pools[pool]!.eligible])).toEqual([
      ['none', [true, true, true]],
      ['eu', [true, true, false]],
    ]);
    // An operator takes an engine for what its fitted profile says of the requests' mean sizes.
    expect(Math.abs(scenario.engines[0]!.nominalRps / 100 - 1)).toBeLessThan(0.05);
    expect(assertions).toHaveLength(1);
  });

  it('names no replica like an engine, so that a fault is of what it names', () => {
    const { scenario } = load({
      ...small,
      engines: [small.engines[0], { id: 'a-0', kind: 'sim-80', labels: { place: 'us' } }],
      network: { rttMs: { west: { a: 5, 'a-0': 50 }, east: { a: 50, 'a-0': 5 } } },
      faults: ['a-0', 'a/0'].map((engine) => ({ kind: 'engine-down', engine, from: 40 })),
    });
    const ids = scenario.engines.map(({ id }) => id);
    expect(ids).toEqual(['a/0', 'a/1', 'a-0']);
    expect(scenario.faults.map((fault) => 'engine' in fault && ids.indexOf(fault.engine))).toEqual([2, 0]);
  });

  it('misleads all policies alike about an engine that operators are wrong about', () => {
    const [, b] = small.engines;
    const rates = [1, 1.25].map(
      (believedSlowness) =>
        load({ ...small, engines: [small.engines[0], { ...b, believedSlowness }] }).scenario.engines[2]!,
    );
    expect(rates[0]!.nominalRps / rates[1]!.nominalRps).toBeCloseTo(1.25);
    expect(rates[1]!.work).toEqual(rates[0]!.work);
  });

  it('divides conversations by need and by priority, independently of each other', () => {
    const { scenario } = load({
      ...small,
      priorities: { urgent: 10, batch: -10 },
      frontends: [
        small.frontends[0],
        { ...small.frontends[1], envoys: 3, priorities: { urgent: 0.2, batch: 0.4 } },
      ],
      assertions: [{ policy: 'wardrop', measure: 'shedShare', class: 'eu urgent', atMost: 0 }],
    });
    const shares = scenario.frontends[1]!.demands[0]!.classShares;
    expect(scenario.frontends.map(({ envoys }) => envoys)).toEqual([1, 3]);
    expect(
      scenario.classes.map(({ id, headers, pool, priority }, index) => ({
        ...{ id, headers, priority: priority?.value, share: shares[index] },
        onB: scenario.pools[pool]!.eligible[2],
      })),
    ).toEqual([
      { id: 'none', headers: {}, onB: true, share: expect.closeTo(0.3) },
      {
        id: 'urgent',
        headers: { 'x-priority': 'urgent' },
        priority: 10,
        onB: true,
        share: expect.closeTo(0.15),
      },
      {
        id: 'batch',
        headers: { 'x-priority': 'batch' },
        priority: -10,
        onB: true,
        share: expect.closeTo(0.3),
      },
      { id: 'eu', headers: { 'x-need': 'eu' }, onB: false, share: expect.closeTo(0.1) },
      ...[
        { name: 'urgent', priority: 10, share: 0.05 },
        { name: 'batch', priority: -10, share: 0.1 },
      ].map(({ name, priority, share }) => ({
        ...{ id: `eu ${name}`, headers: { 'x-need': 'eu', 'x-priority': name }, priority, onB: false },
        share: expect.closeTo(share),
      })),
    ]);
  });

  it('may take the fleet of a Wardrop configuration, with engines that behave as their profiles say', () => {
    const profile = {
      work: { secondsPerUncachedPromptToken: 5e-5, secondsPerOutputToken: 2e-4 },
      ttft: { baseSeconds: 0.02 },
      tbot: { baseSeconds: 0.01, kappa: 0.5 },
    };
    writeFileSync(
      join(folder, 'fleet.yaml'),
      stringify({
        frontends: [{ id: 'west', region: 'w' }],
        engines: [
          { id: 'a', region: 'w', models: ['m'], profile: 'p', endpoints: ['10.0.0.1:80', '10.0.0.2:80'] },
        ],
        profiles: { p: profile },
        demand: { west: { requestsPerSecond: 30 } },
      }),
    );
    const { scenario } = load({ about: 'mine', config: 'fleet.yaml', seconds: 30 });
    expect(scenario.pools).toMatchObject([{ id: 'm', eligible: [true, true] }]);
    expect(scenario.engines.map(({ id, address }) => [id, address])).toEqual([
      ['a/0', '10.0.0.1:80'],
      ['a/1', '10.0.0.2:80'],
    ]);
    expect(scenario.engines[0]!.parameters.stepBaseSeconds).toBe(0.01);
    const taken = load({
      about: 'mine',
      config: 'fleet.yaml',
      seconds: 30,
      engines: [{ id: 'a', believedSlowness: 2 }],
    });
    expect(taken.scenario.engines[1]!.nominalRps / scenario.engines[1]!.nominalRps).toBeCloseTo(0.5);
    expect(scenario.frontends[0]!.demands[0]!.expectedRps).toBe(30);
  });

  it('is not a configuration, which is told with what to do', () => {
    const fleet = {
      frontends: [{ id: 'f' }],
      engines: [{ id: 'a', models: ['m'], endpoints: [] }],
      demand: {},
    };
    expect(problems(fleet).split('\n')[0]).toBe(
      'small.yaml:1:1: is a configuration of Wardrop and no scenario (write one with about, seconds and config: small.yaml)',
    );
  });

  describe('over a configuration of several pools', () => {
    const fleet = {
      frontends: [
        { id: 'west', region: 'w' },
        { id: 'east', region: 'e' },
      ],
      engines: [
        { id: 'a', region: 'w', models: ['big'], profile: 'p', endpoints: ['10.0.0.1:80'] },
        { id: 'b', region: 'w', models: ['big', 'small'], profile: 'p', endpoints: ['10.0.0.2:80'] },
        { id: 'c', region: 'e', models: ['small'], profile: 'p', endpoints: ['10.0.0.3:80'] },
      ],
      network: { rttMs: { west: { a: 2, b: 2, c: 50 }, east: { a: 50, b: 50, c: null } } },
      profiles: { p: { requestsPerSecond: 40, ttft: { baseSeconds: 0.02 }, tbot: { baseSeconds: 0.01 } } },
      demand: {
        west: { models: { big: { requestsPerSecond: 10, promptTokens: 900, outputTokens: 200 } } },
        east: { models: { small: { requestsPerSecond: 5 } } },
      },
    };
    const mine = { about: 'mine', config: 'fleet.yaml', seconds: 30 };
    const west = {
      id: 'west',
      pools: { small: { requestsPerSecond: 20, steps: [{ at: 40, requestsPerSecond: 30 }] } },
    };
    beforeEach(() => {
      writeFileSync(join(folder, 'fleet.yaml'), stringify(fleet));
    });

    it('each pool has what the file says comes for it, else what the configuration expects, and an SLO of its own', () => {
      const { scenario } = load({
        ...{ ...mine, frontends: [west] },
        slo: { e2eSeconds: 4, pools: { big: { e2eSeconds: 9 } } },
      });
      const demands = scenario.frontends.flatMap((frontend) => frontend.demands);
      expect(demands.map(({ id, rate, classShares }) => [id, rate.at(0), rate.at(50), classShares])).toEqual([
        ['east small', 5, 5, [0, 1]],
        ['west big', 10, 10, [1, 0]],
        ['west small', 20, 30, [0, 1]],
      ]);
      expect(scenario.lastChangeAt).toBe(40);
      expect(Math.abs(demands[1]!.source.expected.outputTokens / 200 - 1)).toBeLessThan(0.05);
      // What the scenario says of a pool goes before what it says of all, and that before what idle engines take.
      expect(scenario.pools).toEqual([
        { id: 'big', eligible: [true, true, false], slo: { ttftSeconds: 0.1, e2eSeconds: 9 } },
        { id: 'small', eligible: [false, true, true], slo: { ttftSeconds: 0.1, e2eSeconds: 4 } },
      ]);
      const idle = load(mine).scenario;
      expect(idle.pools[0]!.slo!.e2eSeconds).toBeGreaterThan(3 * 200 * 0.01);
      expect(idle.client.timeoutSeconds).toBe(120);
      expect(load({ ...mine, client: { timeoutSeconds: 7 } }).scenario.client.timeoutSeconds).toBe(7);
      // Prompts of only big, of both, and of only small ones.
      const [a, b, c] = scenario.engines.map(({ parameters }) => parameters.kvBlocks);
      expect([a! > b!, b! > c!]).toEqual([true, true]);
    });

    it('all policies begin with what the file says comes for a pool, else with what the configuration expects', () => {
      const { scenario } = load({
        ...mine,
        frontends: [{ ...west, pools: { small: { requestsPerSecond: 20 } } }],
      });
      const { expectedDemand } = scenario.config!;
      expect(expectedDemand.map((row) => [row.frontendId, row.poolId, row.requestsPerSecond])).toEqual([
        ['east', 'big', 0],
        ['east', 'small', 5],
        ['west', 'big', 10],
        ['west', 'small', 20],
      ]);
      expect(expectedRpsOf(scenario)).toEqual([
        [0, 5],
        [10, 20],
      ]);
      const small = scenario.frontends[1]!.demands.find(({ id }) => id === 'west small')!;
      expect(expectedDemand[3]).toMatchObject(small.source.expected);
      expect(expectedDemand[2]).toMatchObject({ promptTokens: 900, outputTokens: 200 });
    });

    it('priorities are left out, which is told', () => {
      const classes = { urgent: { priority: 5, when: { path: '/v1/' } } };
      writeFileSync(join(folder, 'fleet.yaml'), stringify({ ...fleet, classes }));
      const { scenario } = load(mine);
      expect(scenario.config!.fleet.classes).toBeUndefined();
      expect(scenario.leftOut).toBe('Priorities are left out: all requests have 0.');
    });

    it.each([
      [
        { frontends: [{ id: 'west', requestsPerSecond: 10 }] },
        /requestsPerSecond: must not be there: the configuration has the pools big, small \(say under "pools"/,
      ],
      [
        { frontends: [{ id: 'west', pools: { bg: { requestsPerSecond: 1 } } }] },
        /frontends\[0\].pools.bg: there is no pool "bg" \(did you mean "big"\?\)/,
      ],
      [
        { frontends: [{ id: 'west', pools: { big: { requestsPerSecond: 1, workload: 'chit' } } }] },
        /frontends\[0\].pools.big.workload: there is no workload "chit"/,
      ],
      [{ frontends: [{ id: 'west', workload: 'chat' }] }, /frontends\[0\]: missing key "requestsPerSecond"/],
      [{ frontends: [{ id: 'west', needs: { eu: 1 } }] }, /frontends\[0\].needs: must not be there/],
      [
        { frontends: [west, { id: 'west', pools: { big: { requestsPerSecond: 1 } } }] },
        /frontends\[1\].id: "west" is there twice/,
      ],
      [{ engines: [{ id: 'a' }, { id: 'a' }] }, /engines\[1\].id: "a" is there twice/],
      [
        { frontends: [{ id: 'west', region: 'w' }] },
        /frontends\[0\].region: must not be there: the configuration/,
      ],
      [
        { engines: [{ id: 'a', replicas: 3, region: 'w', labels: { gpu: 'x' }, profile: 'sim-100' }] },
        /engines\[0\].replicas: must not.*engines\[0\].region.*engines\[0\].labels.*engines\[0\].profile/s,
      ],
      [
        { engines: [{ id: 'a', hostCache: true }] },
        /engines\[0\].hostCache: is of a kind .*give one as "kind"/,
      ],
      [
        {
          frontends: [
            { ...west, pools: { small: { ...west.pools.small, steps: [{ at: 60, requestsPerSecond: 9 }] } } },
          ],
        },
        /frontends\[0\].pools.small.steps\[0\].at: must be before the end of the run, 60 s/,
      ],
      [{ slo: { pools: { medium: { e2eSeconds: 1 } } } }, /slo.pools.medium: there is no pool "medium"/],
      [
        {
          frontends: ['west', 'east'].map((id) => ({
            ...{ id, pools: { big: { requestsPerSecond: 0 }, small: { requestsPerSecond: 0 } } },
          })),
        },
        /config: expects no requests/,
      ],
    ])('a mistake is told: %#', (change, message) => {
      expect(problems({ ...mine, ...change })).toMatch(message);
    });
  });

  it.each([
    [{ ...small, secnds: 3 }, /small.yaml:\d+:1: secnds: unknown key \(did you mean "seconds"\?\)/],
    [{ about: 'x', seconds: 10 }, /missing key "frontends"/],
    [
      { ...small, frontends: [{ id: 'west', requestsPerSecond: 0 }] },
      /frontends: send no requests \(give one a requestsPerSecond or a step above 0\)/,
    ],
    ...['turns', 'firstMessageTokens', 'outputTokens'].map((key): [object, RegExp] => {
      const ranges = { turns: [1, 2], firstMessageTokens: [9, 9], outputTokens: [9, 9], [key]: [0, 4] };
      const message = new RegExp(`workloads.mine.conversations.${key}\\[0\\]: must be .*1`);
      return [{ ...small, workloads: { mine: { conversations: ranges } } }, message];
    }),
    [{ ...small, frontends: [{ id: 'west' }, small.frontends[1]] }, /missing key "requestsPerSecond"/],
    [
      { ...small, frontends: [{ ...small.frontends[0], pools: { m: { requestsPerSecond: 1 } } }] },
      /frontends\[0\].pools: are those of a configuration/,
    ],
    [
      { ...small, engines: [{ id: 'a', kind: 'sim-10' }, small.engines[1]] },
      /engines\[0\].kind: there is no kind of engine "sim-10" \(did you mean "sim-100"\?\)/,
    ],
    [
      { ...small, frontends: [{ id: 'west', requestsPerSecond: 4, workload: 'chit' }] },
      /frontends\[0\].workload: there is no workload "chit" \(did you mean "chat"\?\)/,
    ],
    [
      { ...small, network: { rttMs: { west: { a: 5, b: 50 }, east: { a: 50 } } } },
      /network.rttMs.east: lacks the way from east to b/,
    ],
    [
      { ...small, faults: [{ kind: 'engine-down', engine: 'z', from: 4 }] },
      /faults\[0\].engine: there is no engine "z"/,
    ],
    [
      { ...small, faults: [{ kind: 'engine-down', engine: 'a', from: 90, until: 95 }] },
      /small.yaml:\d+:\d+: faults\[0\].from: must be before the end of the run, 90 s/,
    ],
    [
      {
        ...small,
        frontends: [{ ...small.frontends[0], steps: [{ at: 95, requestsPerSecond: 1 }] }, small.frontends[1]],
      },
      /frontends\[0\].steps\[0\].at: must be before the end of the run, 90 s/,
    ],
    [
      {
        ...small,
        frontends: [
          { ...small.frontends[0], bursts: { times: 2, everySeconds: 9, forSeconds: 1, from: 100 } },
          small.frontends[1],
        ],
      },
      /frontends\[0\].bursts.from: must be before the end of the run, 90 s/,
    ],
    [{ ...small, faults: [{ kind: 'region-cut', from: 4 }] }, /faults\[0\]: missing key "region"/],
    [
      { ...small, assertions: [{ policy: 'wardrob', measure: 'goodput', atLeast: 1 }] },
      /there is no policy "wardrob" \(did you mean "wardrop"\?\)/,
    ],
    [
      { ...small, assertions: [{ policy: 'wardrop', measure: 'godput', atLeast: 1 }] },
      /must be one of .* \(did you mean "goodput"\?\)/,
    ],
    [
      {
        ...small,
        workloads: { w: { trace: 'azure-code', mix: {} } },
        frontends: [{ id: 'west', requestsPerSecond: 1, workload: 'w' }],
      },
      /workloads.w: must have exactly one of conversations, trace and mix/,
    ],
    [
      {
        ...small,
        workloads: { w: { trace: 'azure-code', tokenScale: 0.1 } },
        frontends: [{ id: 'west', requestsPerSecond: 1, workload: 'w' }, small.frontends[1]],
      },
      /frontends\[0\].workload: has requests of \d+ tokens, and an engine takes 8192 at most/,
    ],
    [
      {
        ...small,
        workloads: { w: { mix: { chit: 1 } } },
        frontends: [{ ...small.frontends[0], workload: 'w' }],
      },
      /workloads.w.mix.chit: there is no workload "chit" \(did you mean "chat"\?\)/,
    ],
    [
      {
        ...small,
        workloads: { w: { mix: { w: 1 } } },
        frontends: [{ ...small.frontends[0], workload: 'w' }],
      },
      /workloads.w.mix.w: is wrong itself, or has this one in it/,
    ],
    [
      {
        ...small,
        priorities: { urgent: 1 },
        frontends: [{ ...small.frontends[0], priorities: { urgnt: 1 } }],
      },
      /frontends\[0\].priorities.urgnt: there is no priority "urgnt" \(did you mean "urgent"\?\)/,
    ],
    [
      { ...small, assertions: [{ policy: 'wardrop', measure: 'shedShare', class: 'us', atMost: 0 }] },
      /assertions\[0\].class: there is no class "us"/,
    ],
    [
      { ...small, assertions: [{ policy: 'wardrop', measure: 'reversals', class: 'eu', atMost: 0 }] },
      /assertions\[0\].measure: is not told of classes \(use one of meanE2eMs/,
    ],
    ['about: [', /small.yaml:1/],
  ])('with a mistake says where it is and what to do: %#', (content, message) => {
    expect(problems(content)).toMatch(message);
  });
});

describe('the scenarios that come with Wardrop', () => {
  it.each(scenarioNames())('%s is valid', (name) => {
    expect(namedScenario(name, POLICIES).scenario.id).toBe(name);
  });
});
