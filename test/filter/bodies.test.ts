import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { filterModule } from '../../simulator/filter-host/build.js';
import { Host, type Stream, type Vm } from '../../simulator/filter-host/host.js';
import { hostileBodies } from '../hostile-bodies.js';
import { deliver, sketch } from './snapshots.js';

const module = filterModule();
const engines = Array.from({ length: 32 }, () => ({ weight: 1 }));
const view = sketch(engines, {
  models: [
    { name: 'm', pool: 0 },
    { name: 'modèle', pool: 1 },
  ],
  pools: [sketch(engines).pools[0]!, { ...sketch(engines).pools[0]!, id: 'n', cluster: 'pool-n' }],
});

function started(options: { maxBodyBytes?: number } = {}): Vm {
  const vm = new Host(module).startVm({ frontendId: 'west', readBodies: true, ...options });
  deliver(vm, view);
  return vm;
}

function post(vm: Vm, body: string | Uint8Array, headers: Record<string, string> = {}, pieces = 1): Stream {
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const stream = vm.request({ 'content-type': 'application/json', ...headers });
  const size = Math.ceil(bytes.length / pieces);
  for (let piece = 0; piece < pieces && !stream.forwarded && !stream.reply; piece++) {
    stream.send(bytes.subarray(piece * size, (piece + 1) * size), piece === pieces - 1);
  }
  return stream;
}

function code(stream: Stream): string {
  return JSON.parse(stream.reply!.body).error.code;
}

describe('a body that is read', () => {
  it('names the model, in any spelling and any pieces', () => {
    const vm = started();
    for (const pieces of [1, 2, 7, 100]) {
      const plain = post(vm, '{"messages":[],"model":"modèle"}', {}, pieces);
      expect(plain.header('x-wardrop-cluster')).toBe('pool-n');
      const spelled = post(vm, '{"m\\u006fdel":"mod\\u00e8le"}', {}, pieces);
      expect(spelled.header('x-wardrop-cluster')).toBe('pool-n');
    }
  });

  it('may begin with a byte order mark, as engines in Python have it', () => {
    for (const pieces of [1, 2, 7, 100])
      expect(post(started(), '\ufeff{"model":"modèle"}', {}, pieces).header('x-wardrop-cluster')).toBe(
        'pool-n',
      );
  });

  it('names a model with all of its text, however long', () => {
    const longest = 'é'.repeat(128);
    const vm = new Host(module).startVm({ frontendId: 'west', readBodies: true });
    deliver(vm, sketch(engines, { models: [{ name: longest, pool: 0 }] }));
    expect(post(vm, JSON.stringify({ model: longest, user: 'u' })).forwarded).toBe(true);
    for (const longer of [`${longest}é`, `${longest}x`, longest + longest])
      expect(code(post(vm, JSON.stringify({ model: longer, user: 'u' })))).toBe('model_not_found');
  });

  it('holds the request back until its end, then lets it go or answers it', () => {
    const vm = started();
    const stream = vm.request({ 'content-type': 'application/json' });
    stream.send('{"model":"m"');
    expect(stream.forwarded).toBe(false);
    stream.send(',"model":"modèle"}', true);
    expect(stream.header('x-wardrop-cluster')).toBe('pool-n');
    expect(stream.forwarded).toBe(true);

    const trailing = vm.request({ 'content-type': 'application/json' });
    trailing.send('{"model":"m"}');
    expect(trailing.forwarded).toBe(false);
    expect(trailing.sendTrailers().forwarded).toBe(true);

    const unknown = post(vm, '{"model":"M"}');
    expect(unknown.reply?.status).toBe(404);
    expect(code(unknown)).toBe('model_not_found');
  });

  it('is fetched once for each 128 KiB, in however many pieces it arrives', () => {
    const vm = started();
    for (const [kilobytes, fetches] of [
      [1, 1],
      [100, 1],
      [300, 3],
    ] as const) {
      vm.host.calls.clear();
      const body = `{"messages":"${'m'.repeat(kilobytes * 1024)}","model":"m"}`;
      expect(post(vm, body, {}, 50).header('x-wardrop-cluster')).toBe('pool-m');
      expect(vm.host.calls.get('proxy_get_buffer_bytes')).toBe(fetches);
    }
  });

  it('does not make its request forget its headers, however long they are', () => {
    const vm = started();
    for (const length of [0, 10, 2_000, 20_000]) {
      const headers = { cookie: 'c'.repeat(length), 'x-session-id': 'a', 'x-wardrop-cluster': 'other' };
      const stream = post(vm, '{"model":"m"}', headers, 3);
      expect(stream.requestHeaders.filter(([name]) => name === 'x-wardrop-cluster')).toEqual([
        ['x-wardrop-cluster', 'pool-m'],
      ]);
      expect(stream.endpoints).toEqual(post(vm, '{"model":"m"}', { 'x-session-id': 'a' }).endpoints);
      expect(stream.respond(200).decision.reason).toBe('planned');
    }
  });

  it('gives the key that its fields have in their order, the same as a header would', () => {
    const vm = started();
    const home = (body: object, headers: Record<string, string> = {}) =>
      post(vm, JSON.stringify({ model: 'm', ...body }), headers).endpoints[0];
    const expected = home({}, { 'x-session-id': 'conversation é' });
    const fields = [
      { prompt_cache_key: 'conversation é' },
      { conversation: 'conversation é' },
      { metadata: { user_id: 'conversation é' } },
      { session_id: 'conversation é' },
      { safety_identifier: 'conversation é' },
      { user: 'conversation é' },
    ];
    const decoys = [
      { prompt_cache_key: 'd' },
      { conversation: { id: 'd' } },
      { metadata: { user_id: 'd' } },
      { session_id: 'd' },
      { safety_identifier: 'd' },
      { user: 'd' },
    ];
    for (const [index, field] of fields.entries()) {
      expect(home(field)).toBe(expected);
      expect(home(Object.assign({}, ...decoys.slice(index + 1), field))).toBe(expected);
    }
    expect(home({ conversation: { id: 'conversation é' } })).toBe(expected);
    expect(home({ prompt_cache_key: 'd' }, { 'x-session-id': 'conversation é' })).toBe(expected);
    expect(home({ prompt_cache_key: '', user: 'conversation é' })).toBe(expected);
    expect(home({ prompt_cache_key: null, user: 'conversation é' })).toBe(expected);
  });

  it('does not take the id of an earlier response for a key', () => {
    const vm = started();
    const streams = Array.from({ length: 20 }, () =>
      post(vm, '{"model":"m","previous_response_id":"resp_1"}'),
    );
    expect(new Set(streams.map((stream) => stream.endpoints[0])).size).toBeGreaterThan(5);
    expect(streams[0]!.respond(200).decision.reason).toBe('no-key');
  });

  it('yields to a model in a header', () => {
    const stream = post(started(), '{"model":"m","user":"u"}', { 'x-wardrop-model': 'modèle' });
    expect(stream.header('x-wardrop-cluster')).toBe('pool-n');
  });

  it.each([
    ['{"model":"m"', 'invalid_json', 400],
    ['{"model":"m",}', 'invalid_json', 400],
    [' ', 'invalid_json', 400],
    ['\ufeff', 'invalid_json', 400],
    [' \ufeff{"model":"m"}', 'invalid_json', 400],
    ['['.repeat(200_000), 'invalid_json', 400],
    [`{"model":"m","x":${'['.repeat(5000)}${']'.repeat(5000)}}`, 'invalid_json', 400],
    ['[{"model":"m"}]', 'model_missing', 400],
    ['{"messages":[]}', 'model_missing', 400],
    ['{"model":5}', 'model_missing', 400],
    ['{"model":null}', 'model_missing', 400],
    ['{"model":"m\\u0000"}', 'model_not_found', 404],
    [`{"model":"${'m'.repeat(300)}"}`, 'model_not_found', 404],
  ])('that cannot be used is answered with a reason, case %#', (body, expected, status) => {
    for (const pieces of [1, 3]) {
      const stream = post(started(), body, {}, pieces);
      expect([stream.reply?.status, code(stream)]).toEqual([status, expected]);
    }
  });

  it('that is not JSON does no harm when headers name the model', () => {
    const vm = started();
    const home = post(vm, 'not json', { 'x-wardrop-model': 'm' });
    expect(home.forwarded).toBe(true);
    expect(home.respond(200).decision.reason).toBe('no-key');
  });
});

describe('a body that is not read', () => {
  it('is one of another type or encoding: 415 that names it, unless a header names the model', () => {
    const vm = started();
    const cases: [Record<string, string>, string, string][] = [
      [{ 'content-encoding': 'gzip' }, 'unsupported_encoding', 'gzip'],
      [{ 'content-encoding': 'zstd' }, 'unsupported_encoding', 'zstd'],
      [{ 'content-type': 'multipart/mixed; boundary=x' }, 'unsupported_type', 'multipart/mixed'],
      [{ 'content-type': 'text/plain' }, 'unsupported_type', 'text/plain'],
    ];
    for (const [headers, expected, named] of cases) {
      const stream = vm.request({ 'content-type': 'application/json', ...headers });
      expect([stream.reply?.status, code(stream)]).toEqual([415, expected]);
      expect(stream.reply?.body).toContain(named);
      expect(stream.reply?.body).toContain('x-wardrop-model');
      const { forwarded } = vm.request({
        'content-type': 'application/json',
        ...headers,
        'x-wardrop-model': 'm',
      });
      expect(forwarded).toBe(true);
    }
    for (const type of [
      'application/json',
      'Application/JSON ; charset=utf-8',
      'application/vnd.api+json',
      '',
    ]) {
      expect(post(vm, '{"model":"m"}', { 'content-type': type }).forwarded).toBe(true);
    }
    expect(post(vm, '{"model":"m"}', { 'content-encoding': 'Identity' }).forwarded).toBe(true);
  });

  it('is one that is too large, announced or not: 413, or no key when a header names the model', () => {
    const vm = started({ maxBodyBytes: 1024 });
    const large = JSON.stringify({ prompt: 'x'.repeat(2000), user: 'u', model: 'm' });
    for (const headers of [{}, { 'content-length': `${large.length}` }] as Record<string, string>[]) {
      const stream = post(vm, large, headers, 4);
      expect([stream.reply?.status, code(stream)]).toEqual([413, 'body_too_large']);
      const named = post(vm, large, { ...headers, 'x-wardrop-model': 'm' }, 4);
      expect(named.forwarded).toBe(true);
      expect(named.respond(200).decision.reason).toBe('no-key');
    }
  });

  it('is one that nobody needs: the request goes on at its headers', () => {
    const vm = started();
    expect(vm.request({ 'x-wardrop-model': 'm', 'x-session-id': 'a' }).forwarded).toBe(true);
    for (const method of ['GET', 'HEAD', 'OPTIONS', 'CONNECT'])
      expect(vm.request({ ':method': method }).forwarded).toBe(true);
    // Envoy opens a WebSocket whatever the method; of other upgrades it takes no notice.
    expect(vm.request({ upgrade: 'WebSocket' }).forwarded).toBe(true);
    expect(vm.request({ upgrade: 'h2c' }).forwarded).toBe(false);
    // A body without a byte, in chunks or over HTTP/2, where only its end tells.
    for (const headers of [
      { ':method': 'DELETE' },
      { 'x-session-id': 'a' },
      { 'content-type': '' },
    ] as Record<string, string>[]) {
      const stream = post(vm, '', headers);
      expect([stream.forwarded, stream.respond(200).decision.reason]).toEqual([true, 'passed']);
      const trailing = vm.request({ 'content-type': 'application/json', ...headers }).sendTrailers();
      expect([trailing.forwarded, trailing.respond(200).decision.reason]).toEqual([true, 'passed']);
    }
    const headersOnly = new Host(module).startVm();
    deliver(headersOnly, sketch(engines));
    expect(headersOnly.request({ 'content-type': 'application/json' }).forwarded).toBe(true);
  });
});

describe('a form', () => {
  const TYPE = 'multipart/form-data; boundary="b"';
  const ended = '--b--\r\n';
  const field = (name: string, value: string) =>
    `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  const file = (size: number) =>
    `--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n${'\r\n--'.repeat(size / 4)}\r\n`;
  const postForm = (vm: Vm, body: string, headers: Record<string, string> = {}, pieces = 1) =>
    post(vm, body, { ':path': '/v1/audio/transcriptions', 'content-type': TYPE, ...headers }, pieces);

  it('names the model and the key, before its file or behind it, in any pieces', () => {
    const vm = started();
    const home = post(vm, '{"model":"modèle","user":"u"}').endpoints[0];
    for (const pieces of [1, 2, 7, 100]) {
      for (const body of [
        file(20_000) + field('user', 'u') + field('model', 'modèle') + ended,
        field('model', 'modèle') + file(20_000) + field('user', 'u') + ended,
        field('model', 'x') + file(20_000) + field('user', 'u') + field('model', 'modèle') + ended,
      ]) {
        const stream = postForm(vm, body, {}, pieces);
        expect([stream.header('x-wardrop-cluster'), stream.endpoints[0]]).toEqual(['pool-n', home]);
      }
    }
  });

  it('yields to a model in a header, and is not held when the headers tell all', () => {
    const vm = started();
    const form = field('model', 'm') + ended;
    expect(postForm(vm, form, { 'x-wardrop-model': 'modèle' }).header('x-wardrop-cluster')).toBe('pool-n');
    const told = vm.request({ 'content-type': TYPE, 'x-wardrop-model': 'm', 'x-session-id': 'a' });
    expect(told.forwarded).toBe(true);
  });

  it.each([
    [field('model', 'm'), TYPE, 'invalid_form', 400],
    ['--', TYPE, 'invalid_form', 400],
    [field('model', 'm') + ended, 'multipart/form-data', 'invalid_form', 400],
    [field('model', 'm') + ended, 'multipart/form-data; boundary=c', 'invalid_form', 400],
    [field('models', 'm') + ended, TYPE, 'model_missing', 400],
    [field('model', '') + ended, TYPE, 'model_missing', 400],
    [field('model', 'm') + file(4).replace('"file"', '"model"') + ended, TYPE, 'model_missing', 400],
    [field('model', 'M') + ended, TYPE, 'model_not_found', 404],
  ])('that cannot be used is answered with a reason, case %#', (body, type, expected, status) => {
    for (const pieces of [1, 3]) {
      const stream = postForm(started(), body, { 'content-type': type }, pieces);
      expect([stream.reply?.status, code(stream)]).toEqual([status, expected]);
      const named = postForm(started(), body, { 'content-type': type, 'x-wardrop-model': 'm' }, pieces);
      expect(named.forwarded).toBe(true);
    }
  });

  it('goes to the only model when it names none, or cannot be read', () => {
    const vm = new Host(module).startVm({ frontendId: 'west', readBodies: true, maxBodyBytes: 1024 });
    deliver(vm, sketch(engines));
    expect(postForm(vm, field('purpose', 'batch') + ended).forwarded).toBe(true);
    expect(postForm(vm, file(2_000) + ended).forwarded).toBe(true);
    expect(postForm(vm, 'no form').forwarded).toBe(true);
    expect(vm.request({ 'content-type': TYPE, 'content-encoding': 'gzip' }).forwarded).toBe(true);
    expect(code(postForm(vm, field('model', 'x') + ended))).toBe('model_not_found');
  });

  it('that is too long is decided by what stands before its first file, announced or not', () => {
    const vm = started({ maxBodyBytes: 1024 });
    const head = field('model', 'modèle') + field('user', 'u');
    const long = head + file(4_000) + field('model', 'm') + field('user', 'v') + ended;
    const home = post(vm, '{"model":"modèle","user":"u"}').endpoints[0];
    for (const pieces of [1, 4, 60]) {
      for (const headers of [{}, { 'content-length': `${long.length}` }] as Record<string, string>[]) {
        const stream = postForm(vm, long, headers, pieces);
        expect([stream.header('x-wardrop-cluster'), stream.endpoints[0]]).toEqual(['pool-n', home]);
        for (const without of [file(4_000) + head + ended, field('model', 'm'.repeat(2_000)) + ended]) {
          const length = headers['content-length'] && `${without.length}`;
          const refused = postForm(vm, without, length ? { 'content-length': length } : {}, pieces);
          expect([refused.reply?.status, code(refused)]).toEqual([413, 'body_too_large']);
        }
      }
    }
    // It goes on as soon as its first file begins.
    const early = vm.request({ 'content-type': TYPE, 'content-length': '99999' }).send(head);
    expect(early.forwarded).toBe(false);
    expect(early.send(file(40)).forwarded).toBe(true);
    // Nor is the rest of a broken one waited for.
    const broken = vm.request({ 'content-type': TYPE, 'content-length': '99999' }).send('--b\n');
    expect([broken.reply?.status, code(broken)]).toEqual([400, 'invalid_form']);
  });
});

describe('before the first snapshot', () => {
  it('a body is read all the same, and its request waits for the snapshot', () => {
    const vm = new Host(module).startVm({ frontendId: 'west', readBodies: true });
    const early = vm.request({ 'content-type': 'application/json' }).send('{"model":');
    const waiting = post(vm, '{"model":"m","user":"u"}');
    expect(waiting.forwarded).toBe(false);
    deliver(vm, view);
    expect(waiting.resumed).toBe(true);
    expect(waiting.endpoints[0]).toBe(post(vm, '{"model":"m","user":"u"}').endpoints[0]);
    expect(early.forwarded).toBe(false);
    expect(early.send('"m"}', true).forwarded).toBe(true);
  });

  it('a request whose body ends after the hold is refused', () => {
    const vm = new Host(module).startVm({ frontendId: 'west', readBodies: true, startupHoldMs: 100 });
    const stream = vm.request({ 'content-type': 'application/json' });
    vm.host.nowMs += 200;
    vm.tick();
    expect(stream.send('{"model":"m"}', true).reply?.status).toBe(503);
  });
});

it('bodies that tend to break small parsers are answered, or sent on, the same every time, and good ones between them', () => {
  const vm = started({ maxBodyBytes: 2 ** 21 });
  for (let round = 0; round < 3; round++) {
    for (const { body, outcome } of hostileBodies('m')) {
      const stream = vm.request({ 'content-type': 'application/json' }).send(body, true);
      expect([String(body).slice(0, 40), stream.reply?.status ?? 200]).toEqual([
        String(body).slice(0, 40),
        outcome,
      ]);
      if (stream.reply) JSON.parse(stream.reply.body);
      stream.end();
      const good = vm.request().send('{"model":"m","user":"u"}', true);
      expect(good.forwarded).toBe(true);
      good.respond(200).end();
    }
  }
});

it('hostile header values and bodies neither trap nor reach an engine that does not serve the model', () => {
  const vm = started({ maxBodyBytes: 4096 });
  const value = fc
    .string({ unit: 'binary-ascii', maxLength: 40 })
    .map((text) => text.replace(/[\r\n\0]/g, ' '));
  const name = fc.constantFrom(
    ...[
      'x-wardrop-model',
      'x-session-id',
      'x-wardrop-key',
      'content-type',
      'content-encoding',
      'content-length',
    ],
    ...['x-stainless-retry-count', 'x-gateway-destination-endpoint', 'x', 'abcd', 'abcde', ''],
  );
  const body = fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    fc.json({ maxDepth: 3 }).map((text) => new TextEncoder().encode(text)),
    fc
      .record({ model: fc.constantFrom('m', 'modèle', 'x'), user: value })
      .map((object) => new TextEncoder().encode(JSON.stringify(object))),
  );
  fc.assert(
    fc.property(
      fc.array(fc.tuple(name, value), { maxLength: 12 }),
      body,
      fc.integer({ min: 1, max: 5 }),
      (headers, bytes, pieces) => {
        const stream = vm.request(headers);
        const size = Math.ceil(bytes.length / pieces);
        for (let piece = 0; piece < pieces && !stream.forwarded && !stream.reply; piece++) {
          stream.send(bytes.subarray(piece * size, (piece + 1) * size), piece === pieces - 1);
        }
        if (stream.forwarded) {
          expect(['pool-m', 'pool-n']).toContain(stream.header('x-wardrop-cluster'));
          expect(stream.endpoints).toHaveLength(stream.retries + 1);
          stream.respond(200);
        } else {
          expect(() => JSON.parse(stream.reply!.body)).not.toThrow();
        }
        stream.end();
      },
    ),
    { numRuns: 2000 },
  );
});
