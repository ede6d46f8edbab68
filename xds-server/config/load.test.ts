import { describe, expect, it } from 'vitest';
import { loadConfig } from './load.js';
import { fixture, minimal, problemsOf } from './testing/texts.js';

const withTimes = minimal.replace('requestsPerSecond: 1', 'requestsPerSecond: 1, ttft: {baseSeconds: 0.1}');

describe('loadConfig', () => {
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

  it('warns of a profile that knows a rate only, as slow engines are not found by it', () => {
    const warningsOf = (text: string) =>
      loadConfig('/none/fleet.yaml', () => text).warnings.map(({ path, message }) => [path, message]);
    expect(warningsOf(minimal)).toEqual([['profiles.p', expect.stringContaining('knows a rate only')]]);
    expect(warningsOf(withTimes)).toEqual([]);
  });

  it('warns of a least share for a priority that no class has', () => {
    const warnings = (priority: number) =>
      loadConfig(
        '/none/fleet.yaml',
        () =>
          `${withTimes}classes: {bulk: {priority: -5, when: {path: /batch}}}\n` +
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
      () => `${withTimes}server: {sync: {listen: 0.0.0.0:1}, admin: {listen: 0.0.0.0:2}}`,
    );
    expect(config.warnings.map((warning) => warning.path)).toEqual([
      'server.sync.listen',
      'server.admin.listen',
    ]);
  });
});

it('models whose pools Envoy would count under one name are told once', () => {
  const engines = ['a', 'b'].map((id, index) => ({
    id,
    region: 'r',
    models: ['x.1', 'x_1', 'x-1'],
    profile: 'p',
    endpoints: [`10.0.0.${index + 1}:80`],
  }));
  const profiles = { p: { ttft: { baseSeconds: 1 }, requestsPerSecond: 1 } };
  const text = JSON.stringify({ frontends: [{ id: 'w', region: 'r' }], engines, profiles });
  const { warnings } = loadConfig('/none/fleet.yaml', () => text);
  expect(
    warnings.filter(({ path }) => path.startsWith('engines')).map(({ path, message }) => [path, message]),
  ).toEqual([
    ['engines[0].models[1]', 'models "x.1" and "x_1" have the same name, "x_1", in Envoy\'s own statistics'],
  ]);
});
