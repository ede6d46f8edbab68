import { describe, expect, it } from 'vitest';
import { CertificateAuthority } from '../../test/conformance/certificates.js';
import { loadConfig } from './load.js';
import { type ConfigError, type ConfigProblem, formatProblem, MOST_TOLD } from './problem.js';
import { fixture, minimal, problemsOf, readerOf } from './testing/texts.js';

describe('loadConfig', () => {
  it('lists all seven mistakes with place and hint', () => {
    let problems: readonly ConfigProblem[] = [];
    try {
      loadConfig(fixture('typos.yaml'));
    } catch (error) {
      problems = (error as ConfigError).problems;
    }
    expect(problems.map((problem) => formatProblem({ ...problem, file: 'typos.yaml' }))).toEqual([
      'typos.yaml:6:5: engines[0].regoin: unknown key (did you mean "region"?)',
      'typos.yaml:9:17: engines[0].endpoints[0]: "127.0.0.1" has no port (such as "127.0.0.1:8000")',
      'typos.yaml:10:9: engines[1].id: id "e1" is already used at engines[0].id, line 5',
      'typos.yaml:11:13: engines[1].region: region "eu-wset" is no column of the latency table (did you mean "eu-west"?)',
      'typos.yaml:16:31: profiles.small.requestsPerSecond: must be a number, not the text "10" (write 10 without quotes)',
      'typos.yaml:17:31: profiles.large.requestsPerSecond: must be at least 0.0001, not -10',
      'typos.yaml:20:19: policy.retries.max: must be at most 1, not 20',
    ]);
  });

  it('says the first problems of a file that is wrong in every line, and how many more there are', () => {
    const wrong = (count: number) => {
      const text = `${minimal}${Array.from({ length: count }, (_, at) => `wrong${at}: 1\n`).join('')}`;
      return () => loadConfig('/fleet.yaml', readerOf({ '/fleet.yaml': text }));
    };
    expect(wrong(MOST_TOLD)).toThrow(/:104:1: wrong99: unknown key[^\n]*$/);
    expect(wrong(MOST_TOLD + 50)).toThrow(/:104:1: wrong99: unknown key[^\n]*\nand 50 more$/);
  });

  it('looks for what was meant by no more names than are told of: a live server reads files, and may know a thousand engines', () => {
    const count = MOST_TOLD + 10;
    const ids = Array.from({ length: count }, (_, at) => at);
    const engine = (at: number) =>
      `{id: engine-${at}, region: n, models: [m], profile: p, endpoints: ["127.0.0.1:${at + 1}"]}`;
    const row = ids.map((at) => `enginx-${at}: 1`).join(', ');
    const problems = problemsOf(`
frontends: [{id: f, region: n}, {id: g, region: n}]
engines: [${ids.map(engine).join(', ')}]
profiles: {p: {requestsPerSecond: 1}}
network: {rttMs: {f: {${row}}, g: {${row}}}}
`);
    for (const frontend of ['f', 'g']) {
      const hints = ids.map(
        (at) => problems.find(({ path }) => path === `network.rttMs.${frontend}.enginx-${at}`)!.hint,
      );
      expect(hints.filter((hint) => hint !== undefined)).toHaveLength(MOST_TOLD);
      expect(hints[MOST_TOLD - 1]).toBe(`did you mean "engine-${MOST_TOLD - 1}"?`);
    }
  });

  it.each<[string, string, string]>([
    ['a misspelt key', 'region: n, models', 'regoin: n, models'],
    ['a number as text', 'requestsPerSecond: 1', 'requestsPerSecond: "1"'],
    ['an address without a port', '127.0.0.1:1', '127.0.0.1'],
    ['an endpoint everywhere', '127.0.0.1:1', '0.0.0.0:1'],
    ['an endpoint that is a group', '127.0.0.1:1', '"[ff02::1]:1"'],
    [
      'an id twice',
      'engines: [',
      'engines: [{id: e, region: n, models: [m], profile: p, endpoints: [127.0.0.1:2]}, ',
    ],
    ['a region that the table does not know', 'id: e, region: n', 'id: e, region: m'],
    ['a negative capacity', 'requestsPerSecond: 1', 'requestsPerSecond: -1'],
    ['a value out of range', 'profiles:', 'policy: {retries: {max: 20}}\nprofiles:'],
  ])('refuses %s also when it is the only mistake, with its place', (_, good, bad) => {
    const text = `${minimal}network: {table: regions.csv}\n`;
    expect(problemsOf(text)).toEqual([]);
    const problems = problemsOf(text.replace(good, bad));
    expect(problems).toEqual([expect.objectContaining({ line: expect.any(Number) })]);
  });

  it.each([
    ['an empty file', '', 'must be a mapping, not nothing'],
    ['a missing list', 'frontends: [{id: f, region: n}]', 'missing key "engines"'],
    ['a host name', minimal.replace('127.0.0.1:1', 'localhost:1'), '"localhost" is not an IP address'],
    ['IPv6 without brackets', minimal.replace('127.0.0.1:1', "'fe80::1:80'"), 'is not an ip:port'],
    ['IPv6 with a scope', minimal.replace('127.0.0.1:1', "'[fe80::1%eth0]:80'"), 'has a scope'],
    ['no engines', 'frontends: [{id: f, region: n}]\nengines: []', 'must have at least 1'],
    [
      'a number without end',
      minimal.replace('requestsPerSecond: 1', 'requestsPerSecond: .inf'),
      'not Infinity',
    ],
    ['two documents', `${minimal}---\n${minimal}`, 'keep one'],
    ['a port out of range', minimal.replace('127.0.0.1:1', '127.0.0.1:70000'), 'port 70000 is not between'],
    ['an unknown profile', minimal.replace('profile: p', 'profile: q'), 'unknown profile "q"'],
    ['an endpoint twice', minimal.replace('127.0.0.1:1', '127.0.0.1:1, 127.0.0.1:1'), 'is already used at'],
    [
      'a model that shadows a cluster',
      minimal.replace('[m]', '[wardrop-sync]'),
      'a cluster that Envoys need',
    ],
    ['equal listening addresses', `${minimal}server: {xds: {listen: 127.0.0.1:18001}}`, 'is already used at'],
    [
      'token and tokenFile',
      `${minimal}server: {token: 0123456789abcdef, tokenFile: short-token}`,
      'give either token',
    ],
    ['a short token in a file', `${minimal}server: {tokenFile: short-token}`, 'at least 16 printable'],
    [
      'a peer without a port',
      `${minimal}server: {peers: [{xds: "two:1", sync: two}]}`,
      '"two" is no name:port or ip:port',
    ],
    [
      'a peer on two hosts',
      `${minimal}server: {peers: [{xds: "two:1", sync: "three:2"}]}`,
      'must be on the same host',
    ],
    [
      'a peer twice',
      `${minimal}server: {peers: [{xds: "two:1", sync: "two:2"}, {xds: "two:3", sync: "two:2"}]}`,
      'is already used at',
    ],
    ['a missing file', `${minimal}server: {tls: {cert: no.pem, key: no.pem}}`, 'cannot be read'],
    [
      'two regions without network',
      minimal.replace('region: n, models', 'region: s, models'),
      'network is missing',
    ],
    [
      'two forms of network',
      `${minimal}network: {table: regions.csv, rttMs: {f: {e: 1}}}`,
      'either rttMs or table',
    ],
    ['a broken table', `${minimal}network: {table: bad.csv}`, 'has 1 values'],
    ['a missing pair', `${minimal}network: {rttMs: {f: {}}}`, 'no round trip from f to e'],
    ['a pair that is not there', `${minimal}network: {rttMs: {f: {e: 1, g: 1}}}`, 'unknown engine "g"'],
    [
      'egress to an engine that is not there',
      `${minimal}network: {egressDollarsPerRequest: {f: {g: 1}}}`,
      'unknown engine "g"',
    ],
    ['a negative round trip', `${minimal}network: {rttMs: {f: {e: -1}}}`, 'must be at least 0, not -1'],
    [
      'a profile without work',
      `${minimal}  q: {}\n`.replace('{p: {requestsPerSecond: 1}}', '\n  p: {requestsPerSecond: 1}'),
      'says nothing about work',
    ],
    [
      'a profile with two kinds of work',
      minimal.replace('{requestsPerSecond: 1}', '{requestsPerSecond: 1, work: {secondsPerRequest: 1}}'),
      'either work or requestsPerSecond',
    ],
    [
      'a profile of no work',
      minimal.replace('{requestsPerSecond: 1}', '{work: {}, ttft: {}, tbot: {}}'),
      'must cost some work',
    ],
    [
      'a profile without curves',
      minimal.replace('{requestsPerSecond: 1}', '{work: {secondsPerRequest: 1}, tbot: {}}'),
      'missing key "ttft"',
    ],
    [
      'demand of an unknown frontend',
      `${minimal}demand: {g: {requestsPerSecond: 1}}`,
      'unknown frontend "g"',
    ],
    [
      'demand for an unknown model',
      `${minimal}demand: {f: {models: {x: {requestsPerSecond: 1}}}}`,
      'unknown model "x"',
    ],
    [
      'demand for no single model',
      `${minimal.replace('[m]', '[m, n]')}demand: {f: {requestsPerSecond: 1}}`,
      'for which model',
    ],
    [
      'more uncached than prompt tokens',
      `${minimal}demand: {f: {promptTokens: 1, uncachedPromptTokens: 2}}`,
      'at most promptTokens',
    ],
    [
      'a target above the limit',
      `${minimal}policy: {targetUtilization: 0.9, maxUtilization: 0.8}`,
      'at most maxUtilization',
    ],
    [
      'fewer retries at most than at least',
      `${minimal}policy: {retries: {max: 0.1, min: 0.2}}`,
      'must be at most max',
    ],
    [
      'a bound on an unknown engine',
      `${minimal}policy: {bounds: [{frontend: f, pool: m, engine: x}]}`,
      'unknown engine "x"',
    ],
    [
      'least weights above 1',
      `${minimal.replace('}]\nprofiles', '}, {id: g, region: n, models: [m], profile: p, endpoints: []}]\nprofiles')}policy: {bounds: [{frontend: f, pool: m, engine: e, min: 0.6}, {frontend: f, pool: m, engine: g, min: 0.6}]}`,
      'add up to more than 1',
    ],
    [
      'largest weights below 1',
      `${minimal}policy: {bounds: [{frontend: f, pool: m, engine: e, max: 0.5}]}`,
      'add up to less than 1',
    ],
    [
      'a pin beside a bound',
      `${minimal}policy: {bounds: [{frontend: f, pool: m, engine: e, pin: 1, max: 1}]}`,
      'give either pin or min and max',
    ],
    [
      'a pin that leaves a part to nobody',
      `${minimal}policy: {bounds: [{frontend: f, pool: m, engine: e, pin: 0.5}]}`,
      'add up to less than 1',
    ],
    [
      'a bound twice',
      `${minimal}policy: {bounds: [{frontend: f, pool: m, engine: e}, {frontend: f, pool: m, engine: e}]}`,
      'is already used at',
    ],
    ['an id with a space', minimal.replace('id: f', 'id: "f 1"'), 'has a wrong form'],
    ['a duplicate key', `${minimal}profiles: {}`, 'key "profiles" is already in line 4'],
  ])('refuses %s', (_name, text, message) => {
    const problems = problemsOf(text);
    expect(problems.map((problem) => problem.message).join('\n')).toContain(message);
    expect(problems.every((problem) => problem.line >= 1 && problem.column >= 1)).toBe(true);
  });

  it.each([
    ['profiles: {p: {requestPerSecond: 1}}', 'profiles.p.requestPerSecond'],
    ['profiles: {p: {rps: 1}}', 'profiles.p.rps'],
    ['profiles: {p: }', 'profiles.p'],
    ['profils: {p: {requestsPerSecond: 1}}', 'profils'],
    ['engnes: [{id: e, region: n, models: [m], endpoints: []}]\nnetwork: {rttMs: {f: {e: 1}}}', 'engnes'],
    [
      'engines: [{id: e e, region: n, models: [m], endpoints: []}]\nnetwork: {rttMs: {f: {e: 1}}}',
      'engines[0].id',
    ],
    ['engines: [{id: e, region: n, models: [m], endpoints: 127.0.0.1:1}]', 'engines[0].endpoints'],
    ['engines: [{id: e, region: n, models: [m], endponts: []}]', 'engines[0].endponts'],
    ['engines: [{id: e, region: n, models: [m], discovery: {dsn: e:1}}]', 'engines[0].discovery.dsn'],
    ['engines: [{id: e, region: n, models: m, endpoints: []}]\naliases: {x: m}', 'engines[0].models'],
    ['network: {rttMs: {g: {e: 1}}}', 'network.rttMs.g'],
    ['network: {rttMs: {f: {d: 1}}}', 'network.rttMs.f.d'],
    ['needs: {x: {when: {hedaer: {x-need: a}}, refuse: true}}', 'needs.x.when.hedaer'],
    ['needs: {x: {when: {hasHeader: x-need}, refus: true}}', 'needs.x.refus'],
    ['classes: {x: {when: {tenat: a}, priority: 1}}', 'classes.x.when.tenat'],
  ])('names the mistake in %s and nothing that only follows from it', (section, path) => {
    const [key = ''] = section.split(':');
    const replaced = { profils: 'profiles', engnes: 'engines' }[key] ?? key;
    const rest = minimal.split('\n').filter((line) => !line.startsWith(replaced));
    expect(problemsOf(`${rest.join('\n')}\n${section}\n`).map((problem) => problem.path)).toEqual([path]);
  });

  it('tells an id that two have, and not that others use the name that one should have', () => {
    const [frontends, , profiles] = minimal.trim().split('\n');
    const engine = 'region: n, models: [m], profile: p, endpoints: []';
    const text = `${frontends}\n${profiles}\nengines: [{id: d, ${engine}}, {id: d, ${engine}}]\nnetwork: {rttMs: {f: {d: 1, e: 2}}}\n`;
    expect(problemsOf(text).map(({ path }) => path)).toEqual(['engines[1].id']);
  });

  it('reports a value that is wrong once, not also as missing', () => {
    expect(problemsOf(`${minimal}network: {rttMs: {f: {e: -1}}}`)).toHaveLength(1);
  });

  it('accepts frontends that listen on every interface of their own machines', () => {
    expect(
      problemsOf(minimal.replace('[{id: f, region: n}]', '[{id: f, region: n}, {id: g, region: n}]')),
    ).toEqual([]);
    const same = '[{id: f, region: n, listen: 127.0.0.1:9}, {id: g, region: n, listen: 127.0.0.1:9}]';
    expect(problemsOf(minimal.replace('[{id: f, region: n}]', same))).toHaveLength(1);
  });

  it('takes for an access log the whole path of a file and nothing else', () => {
    const problemsOfLog = (path: string) => problemsOf(`${minimal}accessLog: ${JSON.stringify(path)}\n`);
    for (const path of ['/dev/stdout', '/var/log/requests of today.json', '/größe'])
      expect(problemsOfLog(path)).toEqual([]);
    for (const path of ['stdout', 'logs/a', '%REQ(:PATH)%', '/', '/var/log/', '/a\nb', '/a\u0000', ''])
      expect(problemsOfLog(path)).toMatchObject([{ line: 5, hint: expect.stringContaining('whole path') }]);
  });

  it('takes for the path of a page what can stand in a request', () => {
    const problemsOfPage = (path: string) =>
      problemsOf(minimal.replace('models:', `healthPath: ${JSON.stringify(path)}, models:`));
    for (const path of ['/', '/health?deep=1', '/a%20b']) expect(problemsOfPage(path)).toEqual([]);
    for (const path of ['', 'health', 'http://x/health', '/a b', '/ü', '/a\r\nx: y', `/${'a'.repeat(1_024)}`])
      expect(problemsOfPage(path)).toMatchObject([
        { path: 'engines[0].healthPath', hint: expect.stringContaining('start the path with /') },
      ]);
  });

  it('refuses files for TLS that hold something else, each at its key', () => {
    const authority = new CertificateAuthority();
    const [own, other] = [authority.issue('one'), authority.issue('other')];
    const pathsOf = (files: Readonly<Record<'cert' | 'key' | 'clientCa' | 'peerCa', Buffer | string>>) => {
      const names = Object.keys(files).map((name) => `${name}: ${name}.pem`);
      const texts = Object.entries(files).map(([name, text]) => [fixture(`${name}.pem`), `${text}`]);
      const text = `${minimal}server: {tls: {${names.join(', ')}}}\n`;
      return problemsOf(text, Object.fromEntries(texts)).map(({ path }) => path);
    };
    const cert = own.certificate;
    const ca = authority.certificate;
    expect(pathsOf({ cert, key: own.key, clientCa: ca, peerCa: ca })).toEqual([]);
    expect(pathsOf({ cert, key: other.key, clientCa: ca, peerCa: ca })).toEqual(['server.tls']);
    expect(pathsOf({ cert: own.key, key: cert, clientCa: own.key, peerCa: '' })).toEqual([
      'server.tls.cert',
      'server.tls.key',
      'server.tls.clientCa',
      'server.tls.peerCa',
    ]);
  });
});
