import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Findings } from './checks/findings.js';
import { checkNetwork } from './checks/network.js';
import { Faults } from './document/faults.js';
import { withoutUnit } from './document/units.js';
import { YamlSource } from './document/yaml-source.js';
import { loadConfig } from './load.js';
import { type ConfigProblem, formatProblem } from './problem.js';
import { problemsIn, readerOf } from './testing/texts.js';

const good = `
server: {tokenFile: token}
frontends: [{id: f, region: n, listen: 127.0.0.1:9}]
engines: [{id: e, region: n, models: [m], profile: p, endpoints: ["127.0.0.1:1"]}]
profiles:
  p: {work: {secondsPerRequest: 0.1}, ttft: {baseSeconds: 0.1}, tbot: {baseSeconds: 0.01}}
`;

interface Told {
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

function told(text: string, more: Readonly<Record<string, string>> = {}): Told {
  const files = { '/c/fleet.yaml': text, '/c/token': `${'x'.repeat(20)}\r\n`, ...more };
  let warnings: readonly ConfigProblem[] = [];
  const problems = problemsIn(() => {
    ({ warnings } = loadConfig('/c/fleet.yaml', readerOf(files)));
  });
  return { problems: problems.map(formatProblem), warnings: warnings.map(formatProblem) };
}

it('accepts the file that the mistakes are made in, with the line ends of any system', () => {
  expect(told(good)).toEqual({ problems: [], warnings: [] });
  expect(told(good.replaceAll('\n', '\r\n'))).toEqual({ problems: [], warnings: [] });
});

it.each([
  [
    'nothing',
    '',
    '1:1: must be a mapping, not nothing (nothing is written here; begin with frontends and engines)',
  ],
  ['tabs', good.replace('  p:', '\tp:'), '6:1: a tab indents this line (use spaces)'],
  ['a key twice', `${good}profiles: {}\n`, '7:1: key "profiles" is already in line 5'],
  [
    'a unit that the key has',
    good.replace('ttft: {baseSeconds: 0.1}', 'ttft: {baseSeconds: 100ms}'),
    'profiles.p.ttft.baseSeconds: must be a number, not the text "100ms" (write 0.1: it is in seconds)',
  ],
  [
    'percent of one',
    `${good}policy: {targetUtilization: 90%}\n`,
    'policy.targetUtilization: must be a number, not the text "90%" (write 0.9: it is a share of 1)',
  ],
  [
    'a variable for a number',
    `${good}policy: {steerPercent: "$\{PERCENT}"}\n`,
    '(variables of the environment are not filled in; write the value, and secrets into a file)',
  ],
  [
    'a variable for a secret, which it would be itself',
    good.replace('tokenFile: token', `token: "$\{WARDROP_TOKEN}"`),
    '2:17: server.token: this is a variable (variables of the environment are not filled in; write the value, and secrets into a file)',
  ],
  [
    'the same as shells have it',
    good.replace('tokenFile: token', 'token: $WARDROP_TOKEN_OF_US'),
    'server.token: this is a variable',
  ],
  ['a variable for a file', `${good}accessLog: "/var/log/$\{NAME}.log"\n`, 'accessLog: this is a variable'],
  [
    'an address that begins as a URL',
    good.replace('"127.0.0.1:1"', '"http://127.0.0.1:1/v1"'),
    'engines[0].endpoints[0]: "http://127.0.0.1:1/v1" is not an ip:port (without what a URL has more than that: "127.0.0.1:1")',
  ],
  [
    'an IPv6 address without brackets',
    good.replace('"127.0.0.1:1"', '"fd00::1:8000"'),
    '(write IPv6 addresses in brackets, with a port: "[fd00::1]:8000")',
  ],
  [
    'brackets of YAML around one',
    good.replace('"127.0.0.1:1"', '[fd00::1]:8000'),
    'engines[0].endpoints[0]: must be a text, not a mapping (put a text in quotes that holds [ ] { } or a colon and a space)',
  ],
  ['an id that YAML takes for a number', good.replace('{id: e,', '{id: 007,'), '(write "007" in quotes)'],
  [
    'a port to listen on',
    good.replace('127.0.0.1:9}', '9000}'),
    'frontends[0].listen: must be a text, not 9000 (such as "0.0.0.0:8080")',
  ],
  [
    'all addresses, as Go has it',
    good.replace('127.0.0.1:9}', '":9000"}'),
    'frontends[0].listen: "" is not an IP address (use the ip:port of an interface, or 0.0.0.0:port for all)',
  ],
  [
    'a name for an address',
    good.replace('"127.0.0.1:1"', '"engine:1"'),
    '"engine" is not an IP address (use ip:port; for host names, discovery: {dns: "name:port"})',
  ],
  [
    'an alias within what it stands for',
    `${good}policy: {retries: &all {max: *all}}\n`,
    '7:30: the alias *all stands in what it stands for',
  ],
  ['bytes', `${good}aliases: !!binary aGk=\n`, '7:10: Unresolved tag: tag:yaml.org,2002:binary'],
  [
    'a path of Windows',
    good.replace('tokenFile: token', 'tokenFile: secrets\\token'),
    'cannot be read: no such file (write paths with /, not \\)',
  ],
])('says what to write in place of %s, once', (_mistake, text, expected) => {
  const { problems } = told(text);
  expect(problems).toHaveLength(1);
  expect(problems[0]).toContain(expected);
});

it('refuses a file of a secret that holds a variable', () => {
  const { problems } = told(good, { '/c/token': '$' + '{WARDROP_TOKEN_OF_US}\n' });
  expect(problems).toEqual([
    '/c/fleet.yaml:2:21: server.tokenFile: the file holds a variable (variables of the environment are not filled in; write the value, and secrets into a file)',
  ]);
});

it('takes names that look like numbers as they are written where they are keys', () => {
  const named = good
    .replace('{id: f,', '{id: "007",')
    .replace('{id: e,', '{id: "1e3",')
    .replace('profile: p', 'profile: "1.10"')
    .replace('  p:', '  1.10:');
  expect(told(`${named}network: {rttMs: {007: {1e3: 1}}}\ndemand: {007: {requestsPerSecond: 1}}\n`)).toEqual({
    problems: [],
    warnings: [],
  });
});

it.each([
  ['1.1', '1.10', []],
  ['1.10', '1.10', ['/c/fleet.yaml:7:3: key "1.10" is already in line 6']],
  ['"1.1"', '1.1', ['/c/fleet.yaml:7:3: key "1.1" is already in line 6']],
])('takes two keys for one if they name the same, quoted or not: %s and %s', (first, second, problems) => {
  const profile = good.slice(good.indexOf('  p:') + 4);
  const named = good.replace('profile: p', 'profile: "1.1"').replace('  p:', `  ${first}:`);
  expect(told(`${named}  ${second}:${profile}`).problems).toEqual(problems);
});

it.each([
  [
    'semicolons',
    'source;n;s\nn;0;1\n',
    't.csv:1:1: the first row names no region (write source,REGION,…, with commas between)',
  ],
  ['a row twice', 'source,n\nn,0\n\nn,0\n', 't.csv:4:1: row "n" is already in line 2'],
  [
    'units',
    'source,n\nn,2ms\n',
    't.csv:2:1: "2ms" is not a number of milliseconds from 0 to 60000 (write 2: it is in milliseconds)',
  ],
])('says what is wrong with a table of %s', (_mistake, table, expected) => {
  expect(told(`${good}network: {table: t.csv}\n`, { '/c/t.csv': table }).problems).toEqual([expected]);
});

it('says what is wrong with a table that is something else altogether, however long it is', () => {
  const lines = Array.from({ length: 130_000 }, (_, at) => `line ${at},x\n`);
  const { problems } = told(`${good}network: {table: t.csv}\n`, {
    '/c/t.csv': `time,text\n${lines.join('')}`,
  });
  expect(problems.slice(0, 1)).toEqual(['t.csv:2:1: "x" is not a number of milliseconds from 0 to 60000']);
  expect(problems).toHaveLength(130_000);
});

it.each([
  ['missing', undefined, 'no such file'],
  ['empty', '# later\n', 'replicas.txt is empty'],
  ['broken', '10.0.0.1:1\r\nten:1\r\n', 'replicas.txt:2: "ten" is not an IP address'],
])('warns of a file of replicas that is %s, as it may still come', (_what, text, expected) => {
  const config = good.replace('endpoints: ["127.0.0.1:1"]', 'discovery: {file: replicas.txt}');
  expect(told(config, text === undefined ? {} : { '/c/replicas.txt': text })).toEqual({
    problems: [],
    warnings: [
      `/c/fleet.yaml:4:73: engines[0].discovery.file: no replicas are found yet: ${expected} (looked for in /c/replicas.txt)`,
    ],
  });
});

it('warns of times that are milliseconds by their size, and of round trips that are seconds', () => {
  const slow = good.replace('baseSeconds: 0.1', 'baseSeconds: 100').replace('0.01', '10');
  const far = slow.replace('id: e, region: n', 'id: e, region: s');
  expect(
    told(`${far}network: {rttMs: {f: {e: 0.08}}}\n`).warnings.map((text) => text.replace(/^.*?: /, '')),
  ).toEqual([
    'network.rttMs: all round trips are shorter than 1 ms (were they meant in seconds?)',
    'profiles.p.ttft.baseSeconds: 100 seconds on an idle replica (were they meant in milliseconds?)',
    'profiles.p.tbot.baseSeconds: 10 seconds on an idle replica (were they meant in milliseconds?)',
  ]);
});

it('takes round trips of any number of pairs', () => {
  const names = (prefix: string) => Array.from({ length: 400 }, (_, at) => `${prefix}${at}`);
  const rttMs = Object.fromEntries(
    names('f').map((frontend) => [frontend, Object.fromEntries(names('e').map((engine) => [engine, 0.5]))]),
  );
  const frontends = names('f').map((id) => ({ id, region: 'n' }));
  const engines = names('e').map((id) => ({ id, region: 's' }));
  const found = new Findings({ frontends, engines }, new YamlSource('', 'fleet.yaml'), new Faults([]));
  checkNetwork({ frontends, engines, network: { rttMs } }, found, undefined);
  expect([found.problems, found.warnings.map(({ message }) => message)]).toEqual([
    [],
    ['all round trips are shorter than 1 ms'],
  ]);
});

it('names a few engines where a frontend has no round trip to any, however many there are', () => {
  const engines = Array.from({ length: 1_000 }, (_, at) => ({ id: `e${at}`, region: 's' }));
  const config = { frontends: [{ id: 'f', region: 'n' }], engines };
  const found = new Findings(config, new YamlSource('', 'fleet.yaml'), new Faults([]));
  checkNetwork({ ...config, network: { rttMs: { f: {} } } }, found, undefined);
  expect(found.problems.map(({ message }) => message)).toEqual([
    'no round trip from f to e0, e1, e2, e3, e4 and 995 more',
  ]);
});

it('warns of an engine that nobody reaches', () => {
  const two = good.replace(']}]', ']}, {id: d, region: n, models: [m], profile: p, endpoints: []}]');
  expect(told(`${two}network: {rttMs: {f: {e: 1, d: null}}}\n`).warnings[0]).toContain(
    'engine d is reached by no frontend; it gets no requests',
  );
});

it('turns any number of any unit into that of the key', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 1_000_000 }), (milliseconds) => {
      const text = `${milliseconds} ms`;
      expect(Number(/write (\S+):/.exec(withoutUnit(text, ['ttft', 'baseSeconds'])!)![1])).toBeCloseTo(
        milliseconds / 1000,
        9,
      );
      expect(withoutUnit(text, ['rttMs', 'f', 'e'])).toBe(`write ${milliseconds}: it is in milliseconds`);
    }),
  );
  expect(withoutUnit('10%', ['policy', 'steerPercent'])).toBe('write 10: it is in percent');
  expect(withoutUnit('5s', ['policy', 'targetUtilization'])).toBeUndefined();
  expect(withoutUnit('5%', ['profiles', 'p', 'requestsPerSecond'])).toBeUndefined();
});
