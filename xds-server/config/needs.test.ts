import { describe, expect, it } from 'vitest';
import { loadConfig } from './load.js';
import { problemsIn } from './testing/texts.js';

const base = `
frontends: [{id: f, region: n}]
engines:
- {id: e1, region: n, models: [m, small], labels: {residency: eu, context: 16k}, profile: p, endpoints: [127.0.0.1:1]}
- {id: e2, region: n, models: [m], labels: {residency: us, context: 128k}, profile: p, endpoints: [127.0.0.1:2]}
- {id: e3, region: n, models: [m], labels: {residency: us, context: 64k}, profile: p, endpoints: [127.0.0.1:3]}
profiles: {p: {requestsPerSecond: 1}}
`;
const load = (text: string) => loadConfig('f.yaml', () => `${base}${text}`);

/** Problems as `path: message (hint)`. */
function problemsOf(text: string): readonly string[] {
  return problemsIn(() => load(text)).map(
    ({ path, message, hint }) => `${path}: ${message}${hint ? ` (${hint})` : ''}`,
  );
}

describe('needs in a configuration', () => {
  it('become conditions, and pools of the engines whose labels meet them', () => {
    const { fleet } = load(`
needs:
  long: {when: {totalTokens: 16000}, engines: {context: [64k, 128k]}}
  eu-only: {when: {header: {X-Data-Residency: eu}}, engines: {residency: eu}}
`);
    expect(fleet.needs?.map(({ id, when }) => [id, when])).toEqual([
      ['eu-only', { kind: 'header', name: 'x-data-residency', value: 'eu' }],
      ['long', { kind: 'totalTokens', above: 16000 }],
    ]);
    expect(fleet.pools.map(({ id, engineIds }) => [id, engineIds])).toEqual([
      ['m', ['e1', 'e2', 'e3']],
      ['m~eu-only', ['e1']],
      ['m~long', ['e2', 'e3']],
      ['small', ['e1']],
    ]);
    expect(fleet.modelNeeds).toEqual([
      { model: 'm', needs: ['eu-only', 'long'], poolIds: ['m', 'm~eu-only', 'm~long', null] },
      { model: 'small', needs: ['long'], poolIds: ['small', null] },
    ]);
  });

  it('expect all demand of a model from requests without needs, unless told otherwise', () => {
    const needs = 'needs: {eu-only: {when: {hasHeader: x-eu-only}, engines: {residency: eu}}}\n';
    const rates = (text: string) =>
      load(`${needs}${text}`).expectedDemand.map(({ poolId, requestsPerSecond, promptTokens }) => [
        poolId,
        requestsPerSecond,
        promptTokens,
      ]);
    const models = 'models: {m: {requestsPerSecond: 9, promptTokens: 7}}';
    expect(rates(`demand: {f: {${models}}}`)).toEqual([
      ['m', 9, 7],
      ['m~eu-only', 0, 7],
      ['small', 0, 512],
    ]);
    expect(rates(`demand: {f: {${models}, pools: {m~eu-only: {requestsPerSecond: 2}}}}`)[1]).toEqual([
      'm~eu-only',
      2,
      7,
    ]);
    expect(problemsOf(`${needs}demand: {f: {pools: {m~eu: {requestsPerSecond: 2}}}}`)).toEqual([
      'demand.f.pools["m~eu"]: unknown pool "m~eu" (known: m, m~eu-only, small)',
    ]);
    expect(problemsOf(`${needs}demand: {f: {pools: {m: {requestsPerSecond: 2}}}}`)).toEqual([
      'demand.f.pools.m: is the pool of requests without needs (give it under models)',
    ]);
  });

  it('name pools that bounds may be set on', () => {
    const needs = 'needs: {us: {when: {path: /us/}, engines: {residency: us}}}\n';
    const bound = (engine: string) =>
      `${needs}policy: {bounds: [{frontend: f, pool: m~us, engine: ${engine}, max: 0.5}]}`;
    expect(load(bound('e2')).policy.bounds[0]!.poolId).toBe('m~us');
    expect(problemsOf(bound('e1'))).toEqual(['policy.bounds[0].engine: engine e1 does not serve m~us']);
  });

  it.each([
    ['say nothing', '{when: {}, engines: {residency: eu}}', 'x.when: says nothing'],
    [
      'have two conditions',
      '{when: {path: /a, body: tools}, engines: {residency: eu}}',
      'x.when: gives path and body (give exactly one',
    ],
    ['ask for nothing', '{when: {path: /a}}', 'x: does not say which engines meet it'],
    [
      'ask for an empty list',
      '{when: {path: /a}, engines: {residency: []}}',
      'x.engines.residency: is empty',
    ],
    [
      'misspell a label',
      '{when: {path: /a}, engines: {residenzy: eu}}',
      'x.engines.residenzy: no engine has a label "residenzy" (did you mean "residency"?)',
    ],
    [
      'misspell a value',
      '{when: {path: /a}, engines: {residency: [eu, uss]}}',
      'x.engines.residency: no engine has residency: uss (did you mean "us"?)',
    ],
    [
      'nobody meets',
      '{when: {path: /a}, engines: {residency: eu, context: 128k}}',
      'x.engines: no engine has all of these labels (to refuse requests that carry the need, write refuse: true',
    ],
    [
      'both refuse and name engines',
      '{when: {path: /a}, engines: {residency: eu}, refuse: true}',
      'x.refuse: give either engines or refuse',
    ],
    [
      'write a label as a number',
      '{when: {path: /a}, engines: {context: 16}}',
      'x.engines.context: must be a text or a list, not 16 (write "16" in quotes)',
    ],
    ['name a short header', '{when: {hasHeader: x-eu}, engines: {residency: eu}}', 'has a wrong form'],
    [
      'name a header that the filter never sees',
      '{when: {hasHeader: target-pod}, engines: {residency: eu}}',
      'target-pod is removed from requests',
    ],
    [
      'name no header',
      '{when: {header: {}}, engines: {residency: eu}}',
      'x.when.header: must have at least 1',
    ],
    [
      'name two headers',
      '{when: {header: {x-aaa: a, x-bbb: b}}, engines: {residency: eu}}',
      'names 2 headers',
    ],
    [
      'ask for a tenant that nobody tells',
      '{when: {tenant: acme}, engines: {residency: eu}}',
      'x.when.tenant: nothing says what the tenant is (set filter.tenantHeader)',
    ],
    [
      'know no such feature',
      '{when: {body: video}, engines: {residency: eu}}',
      'x.when.body: must be one of images',
    ],
  ])('are refused when they %s', (_name, need, problem) => {
    const problems = problemsOf(`needs: {x: ${need}}`);
    expect(problems.at(-1)).toContain(problem);
    expect(problems.slice(0, -1).every((one) => one.startsWith('needs.x: does not say'))).toBe(true);
  });

  it('of bodies are refused when bodies are not read', () => {
    const needs = 'needs: {x: {when: {body: images}, engines: {residency: eu}}}\n';
    expect(problemsOf(`${needs}filter: {readBodies: false}`)).toEqual([
      'needs.x.when.body: bodies are not read (set filter.readBodies: true)',
    ]);
    expect(problemsOf(needs)).toEqual([]);
  });

  it('may be up to six that make a difference to a model, 64 pools', () => {
    const needs = (count: number) =>
      Array.from({ length: count }, (_, at) => `  n${at}: {when: {path: /${at}}, engines: {residency: eu}}`);
    expect(problemsOf(`needs:\n${needs(6).join('\n')}\n`)).toEqual([]);
    expect(problemsOf(`needs:\n${needs(7).join('\n')}\n`)).toEqual([
      expect.stringContaining('needs: 7 needs make a difference to m: up to 128 pools, more than 64'),
    ]);
  });

  it('tell a header whose name has a wrong form once', () => {
    expect(problemsOf('needs: {x: {when: {header: {x: eu}}, engines: {residency: eu}}}')).toEqual([
      expect.stringContaining('needs.x.when.header.x: the text "x" has a wrong form'),
    ]);
  });

  it('can refuse what carries them', () => {
    const { fleet } = load('needs: {too-long: {when: {promptTokens: 128000}, refuse: true}}');
    expect(fleet.modelNeeds?.map(({ poolIds }) => poolIds)).toEqual([
      ['m', null],
      ['small', null],
    ]);
  });
});

describe('aliases in a configuration', () => {
  it('are other names of models that exist', () => {
    expect(load('aliases: {gpt: m}').fleet.aliases).toEqual([{ name: 'gpt', model: 'm' }]);
    expect(problemsOf('aliases: {gpt: n}')).toEqual([expect.stringContaining('unknown model "n"')]);
    expect(problemsOf('aliases: {small: m}')).toEqual(['aliases.small: is the name of a model itself']);
  });
});

describe('classes in a configuration', () => {
  it('become priorities and conditions, in their order', () => {
    const { fleet } = load(`
classes:
  urgent: {priority: 10, when: {header: {X-Team: oncall}}}
  batch: {priority: -10, when: {serviceTier: flex}}
  background: {priority: -20, when: {priorityAbove: 3}}
`);
    expect(fleet.classes).toEqual([
      { id: 'urgent', priority: 10, when: { kind: 'header', name: 'x-team', value: 'oncall' } },
      { id: 'batch', priority: -10, when: { kind: 'serviceTier', value: 'flex' } },
      { id: 'background', priority: -20, when: { kind: 'priority', above: 3 } },
    ]);
    expect(fleet.pools.map(({ id }) => id)).toEqual(['m', 'small']);
  });

  it('are refused when they say nothing, or what nobody can see', () => {
    expect(problemsOf('classes: {a: {priority: 1, when: {}}}')).toEqual([
      expect.stringContaining('classes.a.when: says nothing'),
    ]);
    expect(problemsOf('classes: {a: {priority: 1, when: {tenant: t}}}')).toEqual([
      'classes.a.when.tenant: nothing says what the tenant is (set filter.tenantHeader)',
    ]);
    expect(
      problemsOf('classes: {a: {priority: 1, when: {serviceTier: flex}}}\nfilter: {readBodies: false}'),
    ).toEqual(['classes.a.when.serviceTier: bodies are not read (set filter.readBodies: true)']);
    expect(problemsOf('classes: {a: {priority: 101, when: {path: /a}}}')).toHaveLength(1);
    const many = Array.from({ length: 8 }, (_, at) => `c${at}: {priority: ${at + 1}, when: {path: /${at}}}`);
    expect(problemsOf(`classes: {${many.join(', ')}}`)).toEqual([
      'classes: there are 8 priorities besides 0; 7 are the most',
    ]);
  });
});

describe('the mode in a configuration', () => {
  it('is a share of steered keys', () => {
    expect(load('').steered).toBe(1);
    expect(load('policy: {steerPercent: 25}').steered).toBe(0.25);
    expect(load('policy: {mode: observe}').steered).toBe(0);
    expect(problemsOf('policy: {mode: watch}')).toHaveLength(1);
    expect(problemsOf('policy: {steerPercent: 101}')).toHaveLength(1);
  });
});

describe('the filter in a configuration', () => {
  it('takes lists of where keys may be', () => {
    expect(
      load('filter: {keyHeaders: [X-Mine], keyFields: [user], prefixKeyBytes: 512}').filter,
    ).toMatchObject({ keyHeaders: ['x-mine'], keyFields: ['user'], prefixKeyBytes: 512 });
    expect(problemsOf('filter: {keyFields: [usr]}')).toHaveLength(1);
  });

  it('reads bodies and places conversations unless told not to, and takes no tenant from anybody', () => {
    expect(load('').filter).toEqual({ readBodies: true, maxBodyBytes: 8_388_608, placement: true });
    const text = 'filter: {readBodies: false, placement: false, tenantHeader: X-Tenant}';
    expect(load(text).filter).toEqual({
      readBodies: false,
      maxBodyBytes: 8_388_608,
      placement: false,
      tenantHeader: 'x-tenant',
    });
    expect(problemsOf('filter: {readBodies: "yes"}')).toEqual([
      'filter.readBodies: must be true or false, not the text "yes" (write true)',
    ]);
  });
});
