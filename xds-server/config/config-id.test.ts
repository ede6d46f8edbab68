import { expect, it } from 'vitest';
import { configId } from './config-id.js';
import { loadConfig } from './load.js';

const west = { id: 'west', region: 'west' };
const engine = { id: 'a', region: 'west', models: ['m'], endpoints: ['10.0.0.1:80'] };

function configOf(rest: object = {}, files: Readonly<Record<string, string>> = {}) {
  const text = JSON.stringify({ frontends: [west], engines: [engine], ...rest });
  return loadConfig('/none/fleet.yaml', (path) => (path.endsWith('fleet.yaml') ? text : files[path]!));
}

const idOf = (...args: Parameters<typeof configOf>) => configId(configOf(...args));

it('a configuration is the same whatever is said of the server itself', () => {
  expect(idOf({ server: { stateFile: 'other.json' } })).toBe(idOf());
  expect(idOf({ policy: { targetUtilization: 0.8 } })).not.toBe(idOf());
});

it('a configuration is the same in whatever order it is written', () => {
  const [p, q] = [{ requestsPerSecond: 10 }, { requestsPerSecond: 20 }];
  const [b, c] = [
    { ...engine, id: 'b', endpoints: ['10.0.0.2:80'], profile: 'p' },
    { ...engine, profile: 'q' },
  ];
  const turned = Object.fromEntries(Object.entries(b).reverse());
  const id = idOf({
    profiles: { p, q },
    engines: [b, c],
    policy: { mode: 'observe', targetUtilization: 0.8 },
  });
  expect(
    idOf({ policy: { targetUtilization: 0.8, mode: 'observe' }, engines: [c, turned], profiles: { q, p } }),
  ).toBe(id);
  expect(
    idOf({ profiles: { p: q, q: p }, engines: [b, c], policy: { mode: 'observe', targetUtilization: 0.8 } }),
  ).not.toBe(id);
});

it('a configuration is another one when a file that it names says something else', () => {
  const secured = { engines: [{ ...engine, auth: { valueFile: 'key.txt' } }] };
  const withKey = (key: string) => idOf(secured, { '/none/key.txt': key });
  expect(withKey('Bearer one')).toBe(withKey('Bearer one'));
  expect(withKey('Bearer one')).not.toBe(withKey('Bearer other'));
  const far = { engines: [{ ...engine, region: 'east' }], network: { table: 'regions.csv' } };
  const withTrip = (ms: number) =>
    idOf(far, { '/none/regions.csv': `source,west,east\nwest,0,${ms}\neast,${ms},0\n` });
  expect(withTrip(10)).toBe(withTrip(10));
  expect(withTrip(10)).not.toBe(withTrip(20));
});

it('a configuration is the same whoever has been found, and wherever they are looked up', () => {
  const { endpoints: _endpoints, ...sought } = engine;
  const found = (path: string) => {
    const config = configOf(
      { engines: [{ ...sought, discovery: { file: path } }] },
      { [`/none/${path}`]: '' },
    );
    const engines = config.fleet.engines.map((one) => ({ ...one, endpoints: [`10.0.0.${path.length}:80`] }));
    return configId({ ...config, fleet: { ...config.fleet, engines } });
  };
  expect(found('one.txt')).toBe(found('another.txt'));
  const byName = idOf({ engines: [{ ...sought, discovery: { dns: 'engines.example:80' } }] });
  expect(byName).not.toBe(found('one.txt'));
});
