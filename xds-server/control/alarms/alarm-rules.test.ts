import { expect, it } from 'vitest';
import type { Fleet } from '../../fleet/fleet.js';
import type { PeerView } from '../../peers/peers.js';
import type { Plan, PlanRow } from '../../plan/plan.js';
import { ReplicaReading } from '../../signals/pages/replica-reading.js';
import { unknownHealth } from '../../signals/readiness/replica-health.js';
import type { SignalsView } from '../../signals/signals.js';
import { EXTENSION_TYPE, type NodeView } from '../../xds/index.js';
import {
  correctedEngines,
  differingPeers,
  doubtfulRoundTrips,
  downReplicas,
  driftingProfiles,
  endingCertificates,
  failingEngines,
  lostPools,
  missingSignals,
  penalisedEngines,
  rejectingEngines,
  shedding,
  silentFilters,
  silentPeers,
  unreadEnvoys,
} from './alarm-rules.js';

it('tells what is refused of each class, as the share of one is not that of all', () => {
  const row = { frontendId: 'west', poolId: 'm', demandRps: 19, weights: [], segments: [], retryRatio: 0 };
  const shed = [
    { priority: 0, fraction: 0.125 },
    { priority: -10, fraction: 1 },
  ];
  const planOf = (entries: PlanRow['shed']) => ({ rows: [{ ...row, shed: entries }] }) as unknown as Plan;
  const classes = [{ priority: -10 }] as unknown as NonNullable<Fleet['classes']>;
  expect([...shedding(planOf(shed), { classes })]).toEqual([
    [
      'west/m',
      'demand above capacity: of 19.0 requests/s from west to m, 12.5 % of priority 0 and 100.0 % of priority -10 are refused',
    ],
  ]);
  expect([...shedding(planOf(shed.slice(0, 1)), {}).values()]).toEqual([
    'demand above capacity: 12.5 % of 19.0 requests/s from west to m are refused',
  ]);
  expect(shedding(planOf([]), {}).size).toBe(0);
});

it('names the engine, the signal, the replica and the reason of what has been missing for a while', () => {
  const endpoints = ['10.0.0.1:80', '10.0.0.2:80'];
  const metrics = { kind: 'vllm', path: '/metrics', port: 9000 };
  const fleet = { engines: [{ id: 'a', endpoints, metrics }] } as unknown as Fleet;
  const read = { value: 1, source: 'x' };
  const good = new ReplicaReading(['running', 'kvUse', 'prefixHits']);
  const bad = new ReplicaReading(['running', 'kvUse', 'prefixHits']);
  const readings = new Map([
    ['10.0.0.1:80', good],
    ['10.0.0.2:80', bad],
  ]);
  for (const [reading, kvUse] of [
    [good, read],
    [bad, { problem: 'missing' as const }],
  ] as const) {
    reading.accept(
      new Map([
        ['running', read] as const,
        ['kvUse', kvUse],
        ['prefixHits', { problem: 'missing' as const }],
      ]),
      1_000,
    );
  }
  const up = () => unknownHealth(0);
  const unasked = () => expect.unreachable('asked for the health of a replica of which nothing is missing');
  expect(missingSignals(fleet, readings, unasked, 10_000)).toEqual(new Map());
  const [[name, message]] = [...missingSignals(fleet, readings, up, 11_000)] as [[string, string]];
  expect(name).toBe('a');
  expect(message).toMatch(/on :9000\/metrics .*kvUse of 10\.0\.0\.2:80: not on the page$/);
  good.fail('status 500', 12_000);
  expect(missingSignals(fleet, readings, up, 22_000).get('a')).toMatch(
    /: running, kvUse of 10\.0\.0\.1:80: status 500; kvUse of/,
  );
  const down = () => ({ ...unknownHealth(0), state: 'down' as const });
  expect(missingSignals(fleet, readings, down, 11_000)).toEqual(new Map());
});

it('tells an engine that does not answer from one that begins answers and ends none', () => {
  const veto = { sinceMs: 0, untilMs: 10_000, failed: 5 };
  const vetoes = new Map([
    ['a', { ...veto, cutsShort: false }],
    ['b', { ...veto, cutsShort: true }],
  ]);
  const messages = failingEngines({ vetoes } as unknown as SignalsView);
  expect(messages.get('a')).toMatch(/^frontends saw 5 failures and no answer of engine a; it is left out/);
  expect(messages.get('b')).toMatch(/^engine b begins answers and ends none: .* 5; it is left out/);
});

it('names an engine that answers 4xx to most of what others of a pool serve, or serves nothing at all, and none where all do or few answers came', () => {
  const ids = ['a', 'b', 'c'];
  const pools = [
    { id: 'm', engineIds: ['a', 'b'] },
    { id: 'n', engineIds: ['c'] },
  ];
  const fleet = { pools, engines: ids.map((id) => ({ id })) } as unknown as Fleet;
  type Answered = readonly [answers: number, rejectedShare: number | null, failuresPerSecond?: number];
  const named = (answered: Record<string, Answered>) =>
    rejectingEngines(fleet, (id) => {
      const [answers, rejectedShare, failuresPerSecond = 0] = answered[id]!;
      return {
        ...{ endedPerSecond: 1, failuresPerSecond, answers, rejectedShare },
        ...{ firstTokenSeconds: null, wholeSeconds: null },
      };
    });
  const alarms = named({ a: [30, 0.9], b: [30, 0.05], c: [30, 1] });
  expect([...alarms.keys()]).toEqual(['a']);
  expect(alarms.get('a')).toMatch(
    /^engine a answers 4xx to 90 % of requests, others of pool m serve theirs; /,
  );
  for (const others of [
    { a: [30, 0.9], b: [30, 0.9] },
    { a: [30, 0.9], b: [0, null] },
    { a: [19, 0.9], b: [30, 0] },
    { a: [30, 0.5], b: [30, 0] },
  ] as const) {
    expect(named({ ...others, c: [0, null] })).toEqual(new Map());
  }

  // What filters try at an engine that refuses everything is little, and served elsewhere.
  const c = [0, null] as const;
  for (const a of [[0, null, 0.04] as const, [2, 1, 0.04] as const])
    expect(named({ a, b: [30, 0], c }).get('a')).toMatch(
      /^engine a has served nothing for about a minute, others of pool m serve theirs: what was tried at it failed or was refused\. /,
    );
  expect(named({ a: [0, null, 0.02], b: [30, 0], c })).toEqual(new Map());
  expect(named({ a: [3, 0.5, 5], b: [30, 0], c })).toEqual(new Map());
  expect(named({ a: [0, null, 5], b: [30, 0.2], c })).toEqual(new Map());
});

it('names the replica that is down, what its health page answers, and which page that is', () => {
  const fleet = {
    engines: [{ id: 'a', endpoints: ['10.0.0.1:80', '10.0.0.2:80'], healthPath: '/ping' }],
  } as unknown as Fleet;
  const health = (address: string) =>
    address.startsWith('10.0.0.1')
      ? { ...unknownHealth(0), state: 'down' as const, detail: 'status 404' }
      : unknownHealth(0);
  expect([...downReplicas(fleet, health)]).toEqual([
    ['10.0.0.1:80', 'replica 10.0.0.1:80 of engine a: status 404 (GET /ping)'],
  ]);
});

it('tells a pool of lost replicas from one that has none', () => {
  const fleet = {
    pools: [
      { id: 'm', engineIds: ['a'] },
      { id: 'n', engineIds: ['b'] },
    ],
    engines: [
      { id: 'a', endpoints: ['10.0.0.1:80'] },
      { id: 'b', endpoints: [] },
    ],
  } as unknown as Fleet;
  const view = { heldPools: ['m', 'n'] } as unknown as SignalsView;
  expect([...lostPools(view, fleet).values()]).toEqual([
    'all replicas of pool m seem lost; the last ones are kept in use',
    'pool n has no replicas; its requests are refused',
  ]);
});

it('names the round trips that are measured too far from what is configured to be believed', () => {
  const measured = { seconds: 0.5, samples: 9, atMs: 0 };
  const view = {
    configuredFleet: { frontends: [{ id: 'west' }], engines: [{ id: 'a' }, { id: 'b' }] },
    roundTrips: [
      [
        { seconds: 0.16, isMeasured: true, configuredSeconds: 0.04, measured, isLimited: true },
        { seconds: 0.5, isMeasured: true, configuredSeconds: 0.3, measured, isLimited: false },
      ],
    ],
  } as unknown as SignalsView;
  expect([...doubtfulRoundTrips(view)]).toEqual([
    [
      'west/a',
      'the round trip from west to a is measured as 500 ms and configured as 40 ms; plans take 160 ms, the nearest to the measurement that is believed. Correct the configuration',
    ],
  ]);
});

it('says what an engine was measured to get done, and what to refit when that has lasted', () => {
  const view = {
    capacities: [
      { engineId: 'a', state: 'usual', share: 1 },
      { engineId: 'b', state: 'corrected', share: 0.7 },
    ],
    drifts: [
      { profileId: 'p', kind: 'work', factor: 1 / 0.7, sinceMs: 0 },
      { profileId: 'p', kind: 'pace', factor: 1.6, sinceMs: 0 },
    ],
  } as unknown as SignalsView;
  expect([...correctedEngines(view)]).toEqual([
    ['b', 'engine b gets done 70 % of what its profile says; it is planned with that'],
  ]);
  expect(driftingProfiles(view, 59_999).size).toBe(0);
  const messages = [...driftingProfiles(view, 60_000).values()];
  expect(messages).toHaveLength(2);
  expect(messages[0]).toMatch(/multiply all its times by 1\.43 \(and requestsPerSecond, .* by 0\.70\)$/);
  expect(messages[1]).toMatch(/multiply its tbot by 1\.6$/);
});

it('names the Envoy whose filter is of another version, why, and what to do about it', () => {
  expect(unreadEnvoys(new Map())).toEqual(new Map());
  const [[name, message]] = [...unreadEnvoys(new Map([['west-1', 'layout 7 is not known']]))] as [
    [string, string],
  ];
  expect(name).toBe('west-1');
  expect(message).toMatch(
    /^the filter of Envoy west-1 goes on with the snapshot that it has: layout 7 is not known\. Give it the filter/,
  );
});

it('an Envoy that took the filter over xDS has an alarm from 10 s without a call on', () => {
  const acknowledged = { version: 'x', atMs: 0 };
  const resumed = { [EXTENSION_TYPE]: { status: 'synced', acknowledged: null } };
  const filter = { [EXTENSION_TYPE]: { acknowledged } };
  const rejecting = {
    'type.googleapis.com/envoy.config.listener.v3.Listener': { acknowledged },
    [EXTENSION_TYPE]: { acknowledged: null },
  };
  const node = (nodeId: string, types: object, frontendId = 'west') =>
    ({ nodeId, frontendId, connectedAtMs: 0, types }) as NodeView;
  const nodes = [
    node('never', filter),
    node('no-longer', filter),
    node('calling', filter),
    node('unread', filter),
    node('without-filter', {}),
    node('rejecting', rejecting),
    node('back-with-the-same', resumed),
    node('left-over', filter, 'gone'),
  ];
  const frontends = [{ id: 'west' }];
  const holder = (nodeId: string, atMs: number) => ({ nodeId, frontendId: 'west', version: 1, atMs });
  const holders = [holder('calling', 1), holder('no-longer', 0)];
  const unread = new Map([['unread', 'layout 7 is not known']]);
  expect(silentFilters(nodes, holders, unread, frontends, 9_999).size).toBe(0);
  const messages = silentFilters(nodes, holders, unread, frontends, 10_000);
  expect([...messages.keys()]).toEqual(['never', 'no-longer', 'back-with-the-same', 'left-over']);
  expect(messages.get('never')).toMatch(/^the filter of Envoy never fetches no snapshots: .*wardrop-sync/);
  expect(messages.get('left-over')).toMatch(/^Envoy left-over is of frontend gone, .*Stop it, or put/);
});

const peer: PeerView = {
  ...{ address: 'two:1', instance: 'i', leads: true, term: 1, ageSeconds: 9, problem: null, planSequence: 1 },
  ...{ isSilent: false, hasSameConfig: true, envoys: [] },
};

it('a silent control server is told of with the reason and the Envoys that are not heard of for that', () => {
  expect(silentPeers([peer]).size).toBe(0);
  const silent = { ...peer, isSilent: true, problem: 'nobody listens there' };
  expect(silentPeers([silent]).get('two:1')).toMatch(/\(nobody listens there\); no Envoy is missing/);
  const envoys = ['a', 'b', 'c', 'd', 'e', 'f'];
  expect(silentPeers([{ ...silent, envoys }]).get('two:1')).toMatch(/a, b, c, d, e and 1 more/);
});

it('a control server differs when its configuration is another, or its plan does not fit, and it is heard', () => {
  expect(differingPeers([peer], null).size).toBe(0);
  const other = { ...peer, hasSameConfig: false };
  expect(differingPeers([other], null).get('two:1')).toMatch(/another configuration than this one/);
  expect(differingPeers([other], 'no east').get('two:1')).toMatch(
    /under server; and it has a plan that does not fit here: no east$/,
  );
  expect(differingPeers([peer], 'no east').get('two:1')).toMatch(/does not fit here: no east$/);
  expect(differingPeers([{ ...other, isSilent: true, leads: false }], null).size).toBe(0);
});

it('tells of a certificate a week before its end, or a sixth of its time, after its end and before its beginning', () => {
  const day = 86_400_000;
  const year = { key: 'server.tls.cert', fromMs: 0, toMs: 365 * day };
  const daily = { key: 'tls.certFile of engine a', fromMs: 357 * day, toMs: 358 * day };
  const at = (days: number) =>
    [...endingCertificates([year, daily], days * day)].map(([, message]) => message);
  expect(at(357.8)).toEqual([]);
  expect(at(357.85)).toEqual([
    'tls.certFile of engine a ends at 1970-12-25T00:00:00.000Z; without a valid one, connections by TLS that need it fail. Renew the file',
  ]);
  expect(at(358.5)).toEqual([
    expect.stringMatching(/^server\.tls\.cert ends at 1971-01-01T/),
    expect.stringMatching(/^tls\.certFile of engine a has ended at 1970-12-25T/),
  ]);
  expect(at(-1)).toEqual([
    expect.stringMatching(/^server\.tls\.cert is valid only from 1970-01-01T/),
    expect.stringMatching(/valid only from/),
  ]);
});

it('of a slow engine, names the replica where its requests pile up, if one stands out', () => {
  const view = { outliers: [{ engineId: 'a', state: 'penalised' }] } as unknown as SignalsView;
  const endpoints = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80'];
  const messageOf = (counts: readonly number[]) => {
    const fleet = {
      engines: [{ id: 'a', endpoints: endpoints.slice(0, counts.length) }],
    } as unknown as Fleet;
    const inFlight = new Map(counts.map((count, at) => [endpoints[at]!, count]));
    return penalisedEngines(view, fleet, () => inFlight).get('a');
  };
  const slow = 'engine a answers much slower than its profile says; it gets less';
  expect(messageOf([5, 31, 8])).toBe(
    `${slow}. Look at replica 10.0.0.2:80 first: it has 31 of its 44 requests under way`,
  );
  for (const even of [[5, 21, 5], [12, 13, 14], [6, 0, 0], [40], []]) expect(messageOf(even)).toBe(slow);
  expect(penalisedEngines(view, { engines: [] } as unknown as Fleet, () => undefined).get('a')).toBe(slow);
});
