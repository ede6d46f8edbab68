import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CertificateAuthority } from '../../test/conformance/certificates.js';
import { loadConfig } from './load.js';
import { ConfigError, type ConfigProblem, formatProblem } from './problem.js';

const fixture = (name: string) => resolve(import.meta.dirname, 'testdata', name);

/** Problems of a text, as a file that lies beside the fixtures and `more` files. */
function problemsOf(text: string, more: Readonly<Record<string, string>> = {}): readonly ConfigProblem[] {
  const file = fixture('inline.yaml');
  const files: Record<string, string> = {
    [file]: text,
    [fixture('regions.csv')]: 'source,n,s\nn,0,1\ns,1,0\n',
    [fixture('bad.csv')]: 'source,n,s\nn,0\ns,1,x\n',
    [fixture('short-token')]: 'abc\n',
    ...more,
  };
  try {
    loadConfig(file, (path) => {
      const content = files[path];
      if (content === undefined) throw new Error('no such file');
      return content;
    });
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

const minimal = `
frontends: [{id: f, region: n}]
engines: [{id: e, region: n, models: [m], profile: p, endpoints: [127.0.0.1:1]}]
profiles: {p: {requestsPerSecond: 1}}
`;

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

  it('refuses aliases without an anchor, each at its place', () => {
    const text = `${minimal}policy: *none\ntimeouts: {answerSeconds: *nothing}\n`;
    expect(problemsOf(text).map(({ line, column, message }) => ({ line, column, message }))).toEqual([
      { line: 5, column: 9, message: 'there is no anchor &none before the alias *none' },
      { line: 6, column: 27, message: 'there is no anchor &nothing before the alias *nothing' },
    ]);
  });

  it('refuses what would exhaust memory or stack', () => {
    const doubled = Array.from({ length: 20 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}, *a${i}]`).join('\n');
    expect(problemsOf(`a0: &a0 [x]\n${doubled}\n`).map(({ message }) => message)).toEqual([
      'aliases of aliases multiply beyond measure',
    ]);
    expect(problemsOf(`a: ${'['.repeat(20_000)}`).map(({ message }) => message)).toContain(
      'values are nested too deeply',
    );
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

  it('reads metrics of every kind, at the path of the kind, with names of its own', () => {
    const metricsOf = (text: string) =>
      loadConfig('f.yaml', () => minimal.replace('profile: p', `profile: p, metrics: {${text}}`)).fleet
        .engines[0]!.metrics;
    expect(metricsOf('kind: trtllm')).toEqual({ kind: 'trtllm', path: '/prometheus/metrics' });
    expect(metricsOf(`kind: triton, port: 8002, names: {running: 'a{b="c"}'}`)).toEqual({
      kind: 'triton',
      path: '/metrics',
      port: 8002,
      names: { running: 'a{b="c"}' },
    });
    expect(() => metricsOf('kind: custom')).toThrowError(
      /engines\[0\]\.metrics: kind is custom, but names is empty/,
    );
    expect(() => metricsOf('names: {running: a}')).toThrowError(/nothing is read, because kind is none/);
    expect(() => metricsOf('kind: vllm, names: {kvUse: a b}')).toThrowError(
      /names\.kvUse: "a b" is neither a metric's name/,
    );
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

  it('says where YAML is broken', () => {
    expect(() => loadConfig(fixture('reload-2-broken.txt'))).toThrowError(/reload-2-broken\.txt:6:\d+: /);
  });

  it.each([
    ['a bracket', 'a: {b: [1, 2\nc: 1\n', '2:1', 'Flow sequence', 'line 1, column 8'],
    ['a quote', 'a: {b: [1, "2]}\nc: 1\n', '3:1', 'Missing closing "quote', 'line 1, column 12'],
    ['the end of a half-written file', '[{"a": {"b": 1', '1:15', 'Flow map', 'line 1, column 8'],
  ])('tells once that %s is missing, and what it would close', (_, text, place, what, begin) => {
    const problems = problemsOf(text);
    expect(problems.map(({ line, column }) => `${line}:${column}`)).toEqual([place]);
    expect(problems[0]!.message).toContain(what);
    expect(problems[0]!.hint).toBe(`it begins in ${begin}`);
  });

  it('knows what other YAML calls true, and merging of mappings', () => {
    const problems = problemsOf(`${minimal}filter: {readBodies: off}\nneeds: {<<: {}}\nserver: {<<: {}}\n`);
    expect(problems.map(({ hint }) => hint)).toEqual(
      expect.arrayContaining(['write false', 'mappings are not merged; write the keys out']),
    );
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

  it('turns a file into a fleet that does not depend on the order of its lists', () => {
    const config = loadConfig(fixture('three-regions.yaml'));
    expect(config.fleet.engines.map((engine) => engine.id)).toEqual(['a', 'b']);
    expect(config.fleet.engines[0]!.endpoints).toEqual(['127.0.0.1:9001', '[::1]:9001']);
    expect(config.fleet.frontends.map((frontend) => frontend.id)).toEqual(['east', 'west']);
    expect(config.fleet.pools).toEqual([
      { id: 'demo-8b', model: 'demo-8b', needs: [], engineIds: ['a', 'b'] },
    ]);
    expect(config.fleet.networkSeconds).toEqual([
      [0.04, Number.POSITIVE_INFINITY],
      [0.004, 0.04],
    ]);
    expect(config.profiles.get('sim')).toMatchObject({
      id: 'sim',
      tbot: { baseSeconds: 0.01, kappa: 0.6 },
      maxFittedRho: 0.98,
    });
    expect(config.policy.bounds).toEqual([
      { frontendId: 'west', poolId: 'demo-8b', engineId: 'a', min: 0, max: 0.8 },
    ]);
    expect(config.expectedDemand).toEqual([
      {
        frontendId: 'east',
        poolId: 'demo-8b',
        requestsPerSecond: 0,
        promptTokens: 512,
        uncachedPromptTokens: 512,
        outputTokens: 128,
        followUpShare: 0.5,
        turnGapSeconds: 30,
      },
      {
        frontendId: 'west',
        poolId: 'demo-8b',
        requestsPerSecond: 90,
        promptTokens: 200,
        uncachedPromptTokens: 200,
        outputTokens: 32,
        followUpShare: 0.5,
        turnGapSeconds: 30,
      },
    ]);
    expect(config.server.stateFile).toBe(fixture('state.json'));
  });

  it('reads round trips from a table of regions', () => {
    const { fleet, profiles } = loadConfig(fixture('over-demand.yaml'));
    expect(fleet.networkSeconds).toEqual([[0, 0.02]]);
    expect(profiles.get('ten')).toEqual({
      id: 'ten',
      work: { secondsPerRequest: 0.1, secondsPerUncachedPromptToken: 0, secondsPerOutputToken: 0 },
      ttft: { baseSeconds: 0, secondsPerUncachedPromptToken: 0, queueSeconds: 0.1 },
      tbot: { baseSeconds: 0, kappa: 0 },
      maxFittedRho: 0.98,
    });
  });

  it('warns of a least share for a priority that no class has', () => {
    const warnings = (priority: number) =>
      loadConfig(
        '/none/fleet.yaml',
        () =>
          `${minimal}classes: {bulk: {priority: -5, when: {path: /batch}}}\n` +
          `policy: {minShares: [{pool: m, priority: ${priority}, share: 0.1}]}`,
      ).warnings.map(({ path, message, hint }) => [path, message, hint]);
    expect(warnings(-5)).toEqual([]);
    expect(warnings(0)).toEqual([]);
    expect(warnings(5)).toEqual([
      ['policy.minShares[0].priority', 'no class has priority 5, so nothing is kept', 'known: 0, -5'],
    ]);
  });

  it('takes a pin for equal bounds', () => {
    const pin = '{frontend: f, pool: m, engine: e, pin: 1}';
    const { policy } = loadConfig('/none/fleet.yaml', () => `${minimal}policy: {bounds: [${pin}]}`);
    expect(policy.bounds).toEqual([{ frontendId: 'f', poolId: 'm', engineId: 'e', min: 1, max: 1 }]);
  });

  it('reads what the network charges', () => {
    const text = minimal.replace('frontends: [', 'frontends: [{id: a, region: n}, ');
    const { fleet } = loadConfig(
      fixture('inline.yaml'),
      () => `${text}network: {rttMs: {a: {e: 1}, f: {e: 2}}, egressDollarsPerRequest: {f: {e: 0.001}}}`,
    );
    expect(fleet.egressDollarsPerRequest).toEqual([[0], [0.001]]);
  });

  it('gives an engine without a profile a stated default and a warning', () => {
    const config = loadConfig(fixture('reload-1-good.yaml'));
    expect(config.fleet.engines[0]!.profile).toBe('assumed');
    expect(config.profiles.get('assumed')!.work.secondsPerRequest).toBe(1);
    expect(config.warnings.map((warning) => warning.message)).toEqual([
      'engine "e1" has no profile',
      'engine "e2" has no profile',
    ]);
  });

  it('never shows the token', () => {
    const token = 'do-not-show-this-1';
    const file = fixture('inline.yaml');
    const config = loadConfig(file, () => `${minimal}server: {token: ${token}}`);
    expect(config.server.token).toBe(token);
    expect(JSON.stringify(config.shown)).not.toContain(token);
    const short = problemsOf(`${minimal}server: {token: sh0rt}`);
    expect(short).toHaveLength(1);
    expect(JSON.stringify(short)).not.toContain('sh0rt');
    expect(JSON.stringify(problemsOf(`${minimal}server: {token: 123456789}`))).not.toContain('123456789');
  });

  it('warns of addresses that others reach without a secret', () => {
    const file = fixture('inline.yaml');
    const config = loadConfig(
      file,
      () => `${minimal}server: {sync: {listen: 0.0.0.0:1}, admin: {listen: 0.0.0.0:2}}`,
    );
    expect(config.warnings.map((warning) => warning.path)).toEqual([
      'server.sync.listen',
      'server.admin.listen',
    ]);
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

  it('follows YAML aliases', () => {
    const text = minimal.replace('[{id: f, region: n}]', '[{id: f, region: n}, {id: g, region: n}]');
    expect(problemsOf(`${text}network: {rttMs: {f: &row {e: 1}, g: *row}}`)).toEqual([]);
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

  it('refuses tags, which mean something to other programs only', () => {
    const [problem] = problemsOf(minimal.replace('id: e', 'id: !env ENGINE'));
    expect(problem).toMatchObject({ line: 3, column: 16, message: 'Unresolved tag: !env' });
  });

  it('reads UTF-8, with a byte order mark or without, and refuses what is none', () => {
    const file = join(mkdtempSync(join(tmpdir(), 'wardrop-')), 'fleet.yaml');
    writeFileSync(file, `\ufeff${minimal}`);
    expect(loadConfig(file).fleet.frontends).toHaveLength(1);
    for (const encoding of ['latin1', 'utf16le'] as const) {
      writeFileSync(file, Buffer.from(minimal.replace('region: n', 'region: é'), encoding));
      expect(() => loadConfig(file)).toThrow('cannot be read: it is not UTF-8 text');
    }
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
});
