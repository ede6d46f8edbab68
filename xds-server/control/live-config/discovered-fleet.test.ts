import { expect, it } from 'vitest';
import { loadConfig } from '../../config/load.js';
import type { Discovered } from '../../signals/discovery/discovery.js';
import { isUndiscovered, withDiscovered } from './discovered-fleet.js';

const config = loadConfig('/none/fleet.yaml', () =>
  [
    'frontends: [{id: f, region: r}]',
    'engines:',
    '- {id: a, region: r, models: [m], profile: p, endpoints: ["10.0.0.1:80"]}',
    '- {id: b, region: r, models: [m], profile: p, discovery: {dns: "b.example:80"}}',
    '- {id: c, region: r, models: [n], profile: p, discovery: {file: c.txt}}',
    'profiles: {p: {requestsPerSecond: 10}}',
  ].join('\n'),
);

it('an address belongs to the first engine that has it, and the other one is told', () => {
  const found = { addresses: ['10.0.0.1:80', '10.0.0.2:80'], problem: null };
  const { config: filled, problems } = withDiscovered(
    config,
    new Map<string, Discovered>([
      ['b', found],
      ['c', { addresses: ['10.0.0.3:80'], problem: 'server failed' }],
    ]),
  );
  expect(filled.fleet.engines.map(({ endpoints }) => endpoints)).toEqual([
    ['10.0.0.1:80'],
    ['10.0.0.2:80'],
    ['10.0.0.3:80'],
  ]);
  expect([...problems]).toEqual([
    ['b', '10.0.0.1:80 already belongs to engine a'],
    ['c', 'server failed'],
  ]);
});

it('only a pool of which nobody is known yet waits', () => {
  const answered = new Map([['c', { addresses: [], problem: null }]]);
  expect(isUndiscovered(config.fleet, config.discovery, new Map())).toBe(true);
  expect(isUndiscovered(config.fleet, config.discovery, answered)).toBe(false);
});

it('nothing is looked for in fleets that list all replicas, nor an engine among all others in those that do not', () => {
  let looks = 0;
  const counted = <T>(items: readonly T[]): readonly T[] =>
    new Proxy(items, {
      get: (of, name) => {
        if (typeof name === 'string' && /^\d+$/.test(name)) looks++;
        return Reflect.get(of, name);
      },
    });
  const ids = Array.from({ length: 1_000 }, (_, at) => `e${at}`);
  const engines = ids.map((id) => ({ ...config.fleet.engines[0]!, id, endpoints: [] }));
  const pools = ids.slice(0, 10).map((id) => ({ ...config.fleet.pools[0]!, id, engineIds: counted(ids) }));
  const fleet = { ...config.fleet, pools, engines: counted(engines) };
  expect(isUndiscovered(fleet, new Map(), new Map())).toBe(false);
  expect(looks).toBe(0);
  const sources = new Map(ids.map((id) => [id, { kind: 'file', path: id } as const]));
  const answered = new Map(ids.map((id) => [id, { addresses: [], problem: null }]));
  expect(isUndiscovered(fleet, sources, answered)).toBe(false);
  expect(looks).toBe(1_000 + 10 * 2 * 1_000);
});

it('sources are read from the configuration, exactly one for an engine', () => {
  expect([...config.discovery]).toEqual([
    ['b', { kind: 'dns', host: 'b.example', port: 80 }],
    ['c', { kind: 'file', path: '/none/c.txt' }],
  ]);
  const engine = (text: string) => () =>
    loadConfig(
      'f.yaml',
      () => `frontends: [{id: f, region: r}]\nengines: [{id: e, region: r, models: [m], ${text}}]`,
    );
  expect(engine('labels: {}')).toThrowError(/missing key "endpoints"/);
  expect(engine('endpoints: [], discovery: {srv: x}')).toThrowError(/either endpoints or discovery/);
  expect(engine('discovery: {}')).toThrowError(/exactly one of dns, srv and file/);
  expect(engine('discovery: {dns: engines}')).toThrowError(/"engines" is not a name:port/);
});
