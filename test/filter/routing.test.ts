import { describe, expect, it } from 'vitest';
import { Host, type LocalReply, type Vm } from '../../simulator/filter-host/host.js';
import { CLIENT_STEERING_HEADERS, KEY_HEADERS } from '../../wire/names.js';
import { reportOf } from './reported.js';
import { deliver, sketch } from './snapshots.js';

const one = [{ weight: 1 }];
const twoModels = {
  models: [
    { name: 'm', pool: 0 },
    { name: 'n', pool: 1 },
  ],
  pools: [
    { ...sketch(one).pools[0]!, segments: [{ start: 0, owner: 0, backup: -1 }] },
    {
      ...sketch(one).pools[0]!,
      id: 'n',
      cluster: 'pool-n',
      engines: [1],
      segments: [{ start: 0, owner: 1, backup: -1 }],
    },
  ],
};

function started(view = sketch([{ weight: 1 }, { weight: 1 }]), host = new Host()): Vm {
  const vm = host.startVm();
  deliver(vm, view);
  return vm;
}

function errorOf(reply: LocalReply | undefined) {
  return (JSON.parse(reply!.body) as { error: { code: string; message: string; type: string } }).error;
}

describe('the pool of a request', () => {
  it('is that of the only model when the request names none', () => {
    expect(started().request().header('x-wardrop-cluster')).toBe('pool-m');
  });

  it('is that of the model that the header names, exactly', () => {
    const vm = started(sketch([{ weight: 1 }, { weight: 1 }], twoModels));
    expect(vm.request({ 'x-wardrop-model': 'm' }).header('x-wardrop-cluster')).toBe('pool-m');
    expect(vm.request({ 'x-wardrop-model': 'n' }).header('x-wardrop-cluster')).toBe('pool-n');
    for (const name of ['N', 'n ', 'nn', 'x'.repeat(300)]) {
      const { reply } = vm.request({ 'x-wardrop-model': name });
      expect(reply?.status).toBe(404);
      expect(errorOf(reply)).toMatchObject({ code: 'model_not_found', type: 'invalid_request_error' });
    }
  });

  it('cannot be told without a model when there are several', () => {
    const { reply } = started(sketch([{ weight: 1 }, { weight: 1 }], twoModels)).request();
    expect(reply?.status).toBe(400);
    expect(reply?.headers).toContainEqual(['content-type', 'application/json']);
    expect(errorOf(reply).code).toBe('model_missing');
  });

  it.each(['/v1/chat/completions', '/v1/messages'])(
    'is asked for at %s in a shape that clients of OpenAI and of Anthropic read',
    (path) => {
      const { reply } = started(sketch([{ weight: 1 }, { weight: 1 }], twoModels)).request({ ':path': path });
      expect(JSON.parse(reply!.body)).toEqual({
        type: 'error',
        error: {
          message: expect.stringContaining('Several models'),
          type: 'invalid_request_error',
          param: null,
          code: 'model_missing',
        },
      });
    },
  );

  it('does not matter to a request without a body: the nearest usable engine gets it', () => {
    const view = sketch([{ weight: 1 }, { weight: 1 }, { weight: 1, ready: false }], {
      ...twoModels,
      nearest: [2, 1, 0],
    });
    const vm = started(view);
    for (const [method, path] of [
      ['GET', '/v1/models'],
      ['GET', '/health'],
      ['HEAD', '/'],
      ['OPTIONS', '/v1/chat/completions'],
      ['POST', '/v1/chat/completions'],
    ]) {
      const stream = vm.request({ ':method': method!, ':path': path! }, { ended: true });
      expect(stream.endpoints[0]).toBe('10.0.1.0:8000');
      expect(stream.header('x-wardrop-cluster')).toBe('pool-n');
      expect(stream.respond(200).decision.reason).toBe('passed');
    }
    expect(vm.request({ 'x-wardrop-model': 'm' }, { ended: true }).endpoints[0]).toBe('10.0.0.0:8000');
    expect(vm.request({ 'x-wardrop-model': 'gone' }, { ended: true }).forwarded).toBe(true);
  });

  it.each([
    ['/v1/models/m', '10.0.0.0:8000'],
    ['/v1/models/m?a=/v1/models/n', '10.0.0.0:8000'],
    ['/v1/models/n', '10.0.1.0:8000'],
    ['/v1/models/%6D', '10.0.0.0:8000'],
    ['/v1/realtime?model=m', '10.0.0.0:8000'],
    ['/v1/realtime?intent=x&model=%6d&model=n', '10.0.0.0:8000'],
    ['/?&model=m&', '10.0.0.0:8000'],
    // No model that is served: as anything else without a model.
    ['/v1/models/', '10.0.1.0:8000'],
    ['/v1/models/gone', '10.0.1.0:8000'],
    ['/v1/models/m/', '10.0.1.0:8000'],
    ['/v2/models/m', '10.0.1.0:8000'],
    ['/v1/models/%6', '10.0.1.0:8000'],
    ['/v1/models/%6G', '10.0.1.0:8000'],
    [`/v1/models/${'m'.repeat(300)}`, '10.0.1.0:8000'],
    ['/v1/realtime?model', '10.0.1.0:8000'],
    ['/v1/realtime?model=', '10.0.1.0:8000'],
    ['/v1/realtime?models=m', '10.0.1.0:8000'],
    ['/v1/realtime?a=model=m', '10.0.1.0:8000'],
    ['/v1/realtime&model=m', '10.0.1.0:8000'],
  ])('of a request without a body is the one that its path names, if it is served: %s', (path, endpoint) => {
    const vm = started(sketch([{ weight: 1 }, { weight: 1 }], { ...twoModels, nearest: [1, 0] }));
    expect(vm.request({ ':method': 'GET', ':path': path }, { ended: true }).endpoints[0]).toBe(endpoint);
    const named = { ':method': 'GET', ':path': path, 'x-wardrop-model': 'n' };
    expect(vm.request(named, { ended: true }).endpoints[0]).toBe('10.0.1.0:8000');
  });

  it('of a request without a body that has a key and one model to think of is where the conversation is', () => {
    const vm = started();
    for (let i = 0; i < 50; i++) {
      const headers = { 'x-session-id': `k${i}` };
      const home = vm.request(headers).endpoints[0];
      const stream = vm.request({ ':method': 'GET', ':path': '/v1/responses/r', ...headers });
      expect(stream.endpoints[0]).toBe(home);
      expect(stream.respond(200).decision.reason).toBe('planned');
    }
  });

  it('is not that of the only model for a body that cannot be read', () => {
    const vm = new Host().startVm({ frontendId: 'west', readBodies: true });
    deliver(vm, sketch([{ weight: 1 }, { weight: 1 }]));
    expect(vm.request({ 'content-type': 'text/plain' }).reply).toMatchObject({
      status: 415,
      details: 'wardrop_unsupported_type',
    });
  });

  it('echoes a hostile model name as valid JSON without control characters', () => {
    for (const name of ['a"b\\c', '"},{"x":"', '\u0001\u007fé', '\\', 'x'.repeat(4000)]) {
      const { reply } = started().request({ 'x-wardrop-model': name });
      expect(errorOf(reply).message).toMatch(/^[\x20-\x7e]{1,200}$/);
    }
  });
});

describe('the affinity key', () => {
  const engines = Array.from({ length: 64 }, () => ({ weight: 1 }));

  it('is the first of the known headers that is present and not empty', () => {
    const vm = started(sketch(engines));
    const home = (headers: Record<string, string>) => vm.request(headers).endpoints[0];
    for (const [index, name] of KEY_HEADERS.entries()) {
      const expected = home({ [KEY_HEADERS[0]!]: 'conversation' });
      expect(home({ [name]: 'conversation' })).toBe(expected);
      const lower = Object.fromEntries(KEY_HEADERS.slice(index + 1).map((other) => [other, 'decoy']));
      expect(home({ ...lower, [name]: 'conversation' })).toBe(expected);
      const empty = Object.fromEntries(KEY_HEADERS.slice(0, index).map((other) => [other, '']));
      expect(home({ ...empty, [name]: 'conversation' })).toBe(expected);
    }
  });

  it('is looked for where the configuration says, in that order', () => {
    const vm = new Host().startVm({
      frontendId: 'west',
      readBodies: true,
      keyHeaders: ['x-mine', 'x-session-id'],
      keyFields: ['user', 'prompt_cache_key'],
    });
    deliver(vm, sketch(engines));
    const home = (headers: Record<string, string>, body: object = {}) => {
      const stream = vm.request({ 'x-wardrop-model': 'm', ...headers });
      if (stream.action === 1) stream.send(JSON.stringify(body), true);
      stream.vanish();
      return stream.endpoints[0];
    };
    for (const key of ['a', 'b', 'c', 'd']) {
      const expected = home({ 'x-mine': key });
      expect(home({ 'x-session-id': 'other', 'x-mine': key })).toBe(expected);
      expect(home({ 'x-session-id': key })).toBe(expected);
      expect(home({}, { prompt_cache_key: 'other', user: key })).toBe(expected);
      expect(home({}, { prompt_cache_key: key, safety_identifier: 'other' })).toBe(expected);
    }
    const homes = (headers: Record<string, string>, body: object) =>
      new Set(Array.from({ length: 12 }, () => home(headers, body))).size;
    expect(homes({ 'x-wardrop-key': 'a' }, { session_id: 'a' })).toBeGreaterThan(3);
  });

  it('is the beginning of the messages where nothing else carries one, if configured', () => {
    const start = (prefixKeyBytes: number) => {
      const vm = new Host().startVm({ frontendId: 'west', readBodies: true, prefixKeyBytes });
      deliver(vm, sketch(engines));
      return vm;
    };
    const ask = (vm: Vm, body: object, size = 7) => {
      const text = JSON.stringify(body);
      const stream = vm.request({ 'x-wardrop-model': 'm' });
      for (let at = 0; at < text.length; at += size)
        stream.send(text.slice(at, at + size), at + size >= text.length);
      stream.respond(200);
      const [endpoint] = stream.endpoints;
      const reason = stream.decision.reason;
      stream.vanish();
      return `${reason} ${endpoint}`;
    };
    const conversation = (first: string, ...more: string[]) => ({
      temperature: more.length,
      messages: [first, ...more].map((content) => ({ role: 'user', content })),
    });
    const vm = start(64);
    const homes = new Set<string>();
    for (let i = 0; i < 20; i++) {
      const first = `${i} is a long enough beginning of a conversation, longer than its key`;
      const home = ask(vm, conversation(first));
      expect(home).toMatch(/^planned /);
      expect(ask(vm, conversation(first, 'and', 'more'), 1_000)).toBe(home);
      homes.add(home);
    }
    expect(homes.size).toBeGreaterThan(10);
    expect(ask(vm, { input: 'text' })).toMatch(/^planned /);
    expect(ask(vm, { instructions: 'no messages' })).toMatch(/^no-key /);
    expect(ask(start(0), conversation('hello'))).toMatch(/^no-key /);
    const keyed = ask(vm, { ...conversation('one'), user: 'u' });
    expect(ask(vm, { ...conversation('two'), user: 'u' })).toBe(keyed);
  });

  it('is not taken from request or trace ids', () => {
    const vm = started(sketch(engines));
    const homes = new Set(
      Array.from({ length: 20 }, () => vm.request({ 'x-request-id': 'a', traceparent: 'a' }).endpoints[0]),
    );
    expect(homes.size).toBeGreaterThan(5);
  });

  it('belongs to its tenant when a tenant header is configured', () => {
    const host = new Host();
    const vm = host.startVm({ frontendId: 'west', tenantHeader: 'x-tenant' });
    deliver(vm, sketch(engines));
    const home = (tenant: string, key: string) =>
      vm.request({ 'x-tenant': tenant, 'x-session-id': key }).endpoints[0];
    const pairs = Array.from({ length: 200 }, (_, index) => `k${index}`);
    const same = pairs.filter((key) => home('a', key) === home('b', key)).length;
    // By chance 200/64 agree; 12 is five standard deviations above.
    expect(same).toBeLessThan(12);
    const joined = pairs.filter((key) => home('org_1', `2${key}`) === home('org_12', key)).length;
    expect(joined).toBeLessThan(12);
  });
});

describe('steering headers', () => {
  it('are written over whatever the client sent', () => {
    const vm = started();
    const clean = vm.request({ 'x-session-id': 'a' });
    const spoofed = vm.request([
      ['x-session-id', 'a'],
      ...CLIENT_STEERING_HEADERS.flatMap((name): [string, string][] => [
        [name, '127.0.0.1:9901'],
        [name, ''],
      ]),
    ]);
    expect(spoofed.endpoints).toEqual(clean.endpoints);
    const expected = Object.fromEntries(clean.requestHeaders);
    expect(Object.fromEntries(spoofed.requestHeaders)).toEqual(expected);
    expect(spoofed.requestHeaders).toHaveLength(clean.requestHeaders.length);
  });

  it('never reach Envoy from a client, whatever the request is and becomes of it', () => {
    const hosts: [string, string][] = [
      ['x-gateway-destination-endpoint', '127.0.0.1:9901'],
      ['x-gateway-destination-endpoint', ''],
      ['x-gateway-destination-endpoint-subset', '127.0.0.1:9901'],
      ['x-prefiller-host-port', '169.254.169.254:80'],
      ['x-llm-d-prefiller-host-port', '169.254.169.254:80'],
      ['x-encoder-hosts-ports', '169.254.169.254:80,127.0.0.1:9901'],
      ['x-llm-d-encoder-hosts-ports', '127.0.0.1:9901'],
      ['x-data-parallel-host-port', '127.0.0.1:9901'],
      ['x-kv-cache-source-host-port', '127.0.0.1:9901'],
      ['x-llm-d-kv-cache-source-host-port', '127.0.0.1:9901'],
      ['target-pod', '127.0.0.1:9901'],
      ['x-envoy-original-dst-host', '127.0.0.1:9901'],
      ['x-wardrop-cluster', 'wardrop-sync'],
    ];
    const views = [
      sketch([{ weight: 1 }, { weight: 1 }]),
      sketch([{ weight: 1 }, { weight: 1 }], { steered: 0 }),
      sketch([{ weight: 1 }, { weight: 1 }], { steered: 0, pool: { shedFraction: 1 } }),
      sketch(
        [
          { weight: 1, ready: false },
          { weight: 1, ready: false },
        ],
        { steered: 0 },
      ),
    ];
    for (const view of views) {
      const vm = started(view);
      for (const [method, path] of [
        ['POST', '/v1/chat/completions'],
        ['GET', '/v1/models'],
        ['POST', '/anything/else'],
      ]) {
        const stream = vm.request([[':method', method!], [':path', path!], ...hosts], {
          ended: method === 'GET',
        });
        expect(stream.forwarded).toBe(true);
        expect(stream.header('x-wardrop-cluster')).toBe('pool-m');
        const left = stream.requestHeaders.filter(([, value]) => /9901|169\.254|wardrop-sync/.test(value));
        expect(left).toEqual([]);
        for (const endpoint of stream.endpoints) expect(endpoint).toMatch(/^10\.0\.[01]\.0:8000$/);
      }
    }
  });

  it('leave the rest of the request alone', () => {
    const headers: [string, string][] = [
      ['x-custom', 'kept'],
      ['x-custom', 'twice'],
      ['authorization', 'Bearer x'],
    ];
    const stream = started().request(headers);
    for (const header of headers) expect(stream.requestHeaders).toContainEqual(header);
  });
});

describe('the ready check', () => {
  it('answers 503 before the first snapshot and 200 after, whatever the query', () => {
    const vm = new Host().startVm();
    expect(vm.request({ ':path': '/wardrop/ready' }).reply?.status).toBe(503);
    deliver(vm, sketch(one));
    expect(vm.request({ ':path': '/wardrop/ready' }).reply?.status).toBe(200);
    expect(vm.request({ ':path': '/wardrop/ready?x=1' }).reply?.status).toBe(200);
    expect(vm.request({ ':path': '/wardrop/readying' }).reply).toBeUndefined();
  });
});

describe('a shed fraction', () => {
  const keys = Array.from({ length: 2000 }, (_, index) => `k${index}`);
  const shedding = (shedFraction: number) =>
    started(sketch([{ weight: 1 }, { weight: 3 }], { pool: { shedFraction } }));

  it('refuses that share of keys, the same in every VM, evenly over engines', () => {
    const vm = shedding(0.3);
    const other = shedding(0.3);
    const refused = keys.filter((key) => vm.request({ 'x-session-id': key }).reply);
    expect(keys.filter((key) => other.request({ 'x-session-id': key }).reply)).toEqual(refused);
    // Three standard deviations of 2000 draws are 0.031.
    expect(Math.abs(refused.length / keys.length - 0.3)).toBeLessThan(0.031);

    const calm = started(sketch([{ weight: 1 }, { weight: 3 }]));
    const refusedOfFirst = refused.filter((key) =>
      calm.request({ 'x-session-id': key }).endpoints[0]!.startsWith('10.0.0.'),
    );
    expect(Math.abs(refusedOfFirst.length / refused.length - 0.25)).toBeLessThan(0.06);
  });

  it('refuses the keys of a smaller fraction also at a larger one', () => {
    const few = shedding(0.1);
    const many = shedding(0.2);
    for (const key of keys.slice(0, 500)) {
      if (few.request({ 'x-session-id': key }).reply)
        expect(many.request({ 'x-session-id': key }).reply).toBeDefined();
    }
  });

  it('answers 429 in the shape of OpenAI, with advice that agrees and differs between clients', () => {
    const vm = shedding(1);
    const waits = Array.from({ length: 50 }, () => {
      const { reply, decision } = vm.request({ 'x-session-id': 'a' });
      const header = (name: string) => reply!.headers.find(([other]) => other === name)![1];
      expect(reply!.status).toBe(429);
      expect(reply!.details).toBe('wardrop_shed');
      expect(errorOf(reply)).toMatchObject({ type: 'rate_limit_error', code: 'shed' });
      expect(header('x-should-retry')).toBe('true');
      expect(decision).toEqual({ reason: 'shed' });
      const ms = Number(header('retry-after-ms'));
      expect(Number(header('retry-after'))).toBe(Math.ceil(ms / 1000));
      return ms;
    });
    expect(Math.max(...waits) / Math.min(...waits)).toBeGreaterThan(1.2);
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(1000);
  });

  it('does not touch requests without a body', () => {
    expect(shedding(1).request({ ':method': 'GET' }, { ended: true }).forwarded).toBe(true);
  });
});

describe('a request for the tokens of a text alone', () => {
  const tokensOf = (vm: Vm, key: string, path = '/v1/messages/count_tokens?beta=true') =>
    vm.request({ 'x-session-id': key, ':path': path });

  it('goes where its conversation is, is not shed and is no demand', () => {
    const weights = [{ weight: 1 }, { weight: 3 }];
    const shedding = started(sketch(weights, { pool: { shedFraction: 1 } }));
    const calm = started(sketch(weights));
    for (let i = 0; i < 50; i++) {
      const { endpoints } = calm.request({ 'x-session-id': `k${i}`, ':path': '/v1/messages' });
      expect(tokensOf(shedding, `k${i}`).endpoints).toEqual(endpoints);
      tokensOf(calm, `k${i}`).respond(200).end();
    }
    expect(reportOf(shedding).pools).toEqual([]);
    expect(reportOf(calm).pools[0]).toMatchObject({ offered: 50 });
  });

  it.each(['/tokenize', '/detokenize', '/v1/tokenize', '/v1/detokenize', '/v1/responses/input_tokens'])(
    'is one for %s, too',
    (path) => {
      const vm = started();
      expect(tokensOf(vm, 'a', path).respond(200).decision.reason).toBe('planned');
      expect(reportOf(vm).pools).toEqual([]);
    },
  );

  it.each([
    '/tokenize/../v1/chat/completions',
    '/tokenizer/v1/chat/completions',
    '/v1/messages/count_tokens%2f..',
    '/v1/messages/count_tokens;a=b',
  ])('is none for %s, where a server behind may find more than that', (path) => {
    const vm = started(sketch(one, { pool: { shedFraction: 1 } }));
    expect(errorOf(tokensOf(vm, 'a', path).reply).code).toBe('shed');
    expect(reportOf(vm).pools[0]).toMatchObject({ offered: 1, shed: 1 });
  });

  it('needs a model that is served, and one of its engines', () => {
    const ask = (vm: Vm, model: string) => vm.request({ 'x-wardrop-model': model, ':path': '/tokenize' });
    expect(errorOf(ask(started(), 'other').reply).code).toBe('model_not_found');
    const none = started(sketch([{ weight: 1, ready: false }]));
    expect(errorOf(ask(none, 'm').reply).code).toBe('unavailable');
    expect(reportOf(none).pools).toEqual([]);
  });
});
