import { describe, expect, it } from 'vitest';
import { filterModule } from '../../simulator/filter-host/build.js';
import { Host, type Stream, type Vm } from '../../simulator/filter-host/host.js';
import type { FilterConfig } from '../../wire/filter-config.js';
import type { SnapshotNeed, SnapshotView } from '../../wire/snapshot-view.js';
import { deliver, engineOf, sketch } from './snapshots.js';

const module = filterModule();
const needs: SnapshotNeed[] = [
  { id: 'eu-only', when: { kind: 'header', name: 'x-data-residency', value: 'eu' } },
  { id: 'us-only', when: { kind: 'header', name: 'x-data-residency', value: 'us' } },
  { id: 'batch', when: { kind: 'header', name: 'x-batch' } },
  { id: 'embedding', when: { kind: 'path', prefix: '/v1/embeddings' } },
  { id: 'gold', when: { kind: 'tenant', value: 'acme' } },
  { id: 'vision', when: { kind: 'body', feature: 'images' } },
  { id: 'listening', when: { kind: 'body', feature: 'audio' } },
  { id: 'reading', when: { kind: 'body', feature: 'files' } },
  { id: 'tools', when: { kind: 'body', feature: 'tools' } },
  { id: 'streams', when: { kind: 'body', feature: 'stream' } },
  { id: 'long', when: { kind: 'promptTokens', above: 1000 } },
  { id: 'full', when: { kind: 'totalTokens', above: 1000 } },
];

/** A model `m` whose pool 0 (engine 0) takes requests without needs, and pool 1 (engine 1) those with one. */
function view(...names: string[]): SnapshotView {
  const both = sketch([{ weight: 1 }, { weight: 1 }]);
  const pool = (index: number) => ({
    ...both.pools[0]!,
    id: `m-${index}`,
    cluster: `pool-${index}`,
    engines: [index],
    segments: [{ start: 0, owner: index, backup: -1 }],
  });
  const chosen = names.map((name) => needs.findIndex(({ id }) => id === name)).sort((a, b) => a - b);
  return {
    ...both,
    needs,
    pools: [pool(0), pool(1)],
    models: [
      {
        name: 'm',
        pool: 0,
        needs: chosen,
        pools: Array.from({ length: 2 ** chosen.length }, (_, mask) =>
          mask === 0 ? 0 : (mask & (mask - 1)) === 0 ? 1 : -1,
        ),
      },
    ],
  };
}

function started(snapshot: SnapshotView, options: Partial<FilterConfig> = {}): Vm {
  const vm = new Host(module).startVm({
    frontendId: 'west',
    readBodies: true,
    tenantHeader: 'x-tenant',
    ...options,
  });
  deliver(vm, snapshot);
  return vm;
}

function post(vm: Vm, body: object = {}, headers: Record<string, string> = {}): Stream {
  const stream = vm.request({ 'content-type': 'application/json', 'x-session-id': 'a', ...headers });
  return stream.forwarded || stream.reply
    ? stream
    : stream.send(JSON.stringify({ model: 'm', ...body }), true);
}

const FORM = 'multipart/form-data; boundary=b';

/** A form that names the model and has one part besides. */
function postForm(vm: Vm, path: string, disposition: string, content: string): Stream {
  const model = '--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nm\r\n';
  const part = `--b\r\ncontent-disposition: form-data; ${disposition}\r\n\r\n${content}\r\n`;
  return vm.request({ ':path': path, 'content-type': FORM }).send(`${model}${part}--b--`, true);
}

const image = {
  role: 'user',
  content: [{ type: 'image_url', image_url: { url: `data:${'x'.repeat(9000)}` } }],
};

describe('a need', () => {
  it.each<[string, object, Record<string, string>]>([
    ['eu-only', {}, { 'x-data-residency': 'eu' }],
    ['us-only', {}, { 'x-data-residency': 'us' }],
    ['batch', {}, { 'x-batch': 'anything' }],
    ['embedding', {}, { ':path': '/v1/embeddings?x' }],
    ['gold', {}, { 'x-tenant': 'acme' }],
    ['vision', { messages: [image] }, {}],
    ['tools', { tools: [{}] }, {}],
    ['streams', { stream: true }, {}],
    ['long', { messages: [{ role: 'user', content: 'x'.repeat(4100) }] }, {}],
    ['full', { messages: [{ role: 'user', content: 'x'.repeat(4100) }] }, {}],
    ['full', { prompt: 'x'.repeat(2000), max_tokens: 600 }, {}],
  ])('%s leads to the pool that meets it, and only when it is carried', (name, body, headers) => {
    const vm = started(view(name));
    expect(engineOf(post(vm, body, headers).endpoints[0])).toBe(1);
    expect(post(vm, body, headers).header('x-wardrop-cluster')).toBe('pool-1');
    expect(engineOf(post(vm).endpoints[0])).toBe(0);
  });

  it('is not carried by another value, an empty one, or a shorter prompt', () => {
    const vm = started(view('eu-only', 'batch', 'long'));
    for (const headers of [
      { 'x-data-residency': 'EU' },
      { 'x-data-residency': '' },
      { 'x-batch': '' },
    ] as Record<string, string>[]) {
      expect(engineOf(post(vm, {}, headers).endpoints[0])).toBe(0);
    }
    expect(engineOf(post(vm, { prompt: 'x'.repeat(3900) }).endpoints[0])).toBe(0);
    expect(engineOf(post(vm, { messages: [image] }).endpoints[0])).toBe(0);
  });

  it.each<[object | string, boolean]>([
    [{ max_tokens: 499 }, false],
    [{ max_tokens: 500 }, false],
    [{ max_tokens: 501 }, true],
    [{ max_completion_tokens: 501 }, true],
    [{ max_output_tokens: 501 }, true],
    [{ max_tokens: 100, max_completion_tokens: 501 }, true],
    [{ max_tokens: 501, max_completion_tokens: null }, true],
    ['{"prompt":PROMPT,"max_tokens":501,"max_tokens":5,"model":"m"}', false],
    ['{"max_tokens":5,"prompt":PROMPT,"max_\\u0074okens":501,"model":"m"}', true],
    [{ max_tokens: 2 ** 53 - 1 }, true],
    [{ max_tokens: 2 ** 53 }, true],
    [{ max_completion_tokens: 1e308 }, true],
    ['{"prompt":PROMPT,"max_tokens":501.0,"model":"m"}', true],
    ['{"prompt":PROMPT,"max_tokens":5e2,"model":"m"}', false],
    [{ max_tokens: -501, extra: { max_tokens: 501 } }, false],
    [{ max_tokens: '501' }, true],
    [{ max_tokens: 'many' }, false],
    [{}, false],
  ])('of prompt and answer counts what the body %j says of the answer: %s', (body, carried) => {
    const vm = started(view('full'));
    // 500 tokens, with its quotes.
    const prompt = 'x'.repeat(1998);
    const stream =
      typeof body === 'string'
        ? vm
            .request({ 'content-type': 'application/json' })
            .send(body.replace('PROMPT', JSON.stringify(prompt)), true)
        : post(vm, { prompt, ...body });
    expect(engineOf(stream.endpoints[0])).toBe(carried ? 1 : 0);
  });

  it('is carried by any of several headers of its name', () => {
    const vm = started(view('eu-only'));
    const stream = vm.request([
      ['x-wardrop-model', 'm'],
      ['x-session-id', 'a'],
      ['x-data-residency', 'us'],
      ['x-data-residency', 'eu'],
    ]);
    expect(engineOf(stream.endpoints[0])).toBe(1);
  });

  it('that nobody meets together with another is refused by name, never relaxed', () => {
    const vm = started(view('eu-only', 'vision'));
    const stream = post(vm, { messages: [image] }, { 'x-data-residency': 'eu' });
    expect(stream.reply?.status).toBe(400);
    const { error } = JSON.parse(stream.reply!.body);
    expect(error.code).toBe('need_unmet');
    expect(error.message).toContain('eu-only, vision');
  });

  it('for a longer context than anybody has is refused with the code that clients know', () => {
    const vm = started(view('eu-only', 'long'));
    const stream = post(vm, { prompt: 'x'.repeat(9000) }, { 'x-data-residency': 'eu' });
    expect(JSON.parse(stream.reply!.body).error.code).toBe('context_length_exceeded');
    const other = post(started(view('eu-only', 'full')), { max_tokens: 1001 }, { 'x-data-residency': 'eu' });
    expect(JSON.parse(other.reply!.body).error.code).toBe('context_length_exceeded');
  });

  it('that only the body can tell is found although headers name model and key', () => {
    const vm = started(view('vision'));
    const stream = post(vm, { messages: [image] }, { 'x-wardrop-model': 'm' });
    expect(engineOf(stream.endpoints[0])).toBe(1);
    const unreadable = post(vm, {}, { 'x-wardrop-model': 'm', 'content-encoding': 'gzip' });
    expect(unreadable.reply?.status).toBe(415);
    const broken = vm.request({
      'x-wardrop-model': 'm',
      'x-session-id': 'a',
      'content-type': 'application/json',
    });
    expect(broken.send('{"messages":', true).reply?.status).toBe(400);
  });

  it.each<[string, string, string, string, boolean]>([
    ['vision', '/v1/images/edits', 'name="image"; filename="a"', '', true],
    ['vision', '/v1/audio/transcriptions', 'name="file"; filename="a"', 'image/png', false],
    ['vision', '/v1/other', 'name="file"; filename="a"', 'image/png', true],
    ['vision', '/v1/other', 'name="file"; filename="a"', 'audio/wav', false],
    [
      'listening',
      '/v1/audio/transcriptions?x',
      'name="file"; filename="a"',
      'application/octet-stream',
      true,
    ],
    ['listening', '/v1/images/edits', 'name="image"; filename="a"', 'audio/wav', false],
    ['listening', '/v1/other', 'name="file"; filename="a"', 'audio/wav', true],
    ['reading', '/v1/other', 'name="file"; filename="a"', 'application/pdf', true],
    ['reading', '/v1/other', 'name="file"', 'application/pdf', false],
    ['streams', '/v1/audio/transcriptions', 'name="stream"', '', false],
    ['tools', '/v1/audio/transcriptions', 'name="tools"', '', false],
  ])('%s is carried by a form to %s with %s of type "%s": %s', (need, path, disposition, type, carried) => {
    const vm = started(view(need));
    const stream = postForm(vm, path, `${disposition}${type && `\r\ncontent-type: ${type}`}`, 'x');
    expect(engineOf(stream.endpoints[0])).toBe(carried ? 1 : 0);
  });

  it('of streams and long prompts is carried by a form that says so', () => {
    for (const truth of ['true', 'True', '1']) {
      expect(engineOf(postForm(started(view('streams')), '/', 'name="stream"', truth).endpoints[0])).toBe(1);
    }
    const long = (size: number) => postForm(started(view('long')), '/', 'name="prompt"', 'x'.repeat(size));
    expect([engineOf(long(4_100).endpoints[0]), engineOf(long(3_900).endpoints[0])]).toEqual([1, 0]);
  });

  it('of a body refuses a form that is broken or too long, whatever the headers say', () => {
    const vm = started(view('vision'), { maxBodyBytes: 2_000 });
    const headers = { 'x-wardrop-model': 'm', 'x-session-id': 'a', 'content-type': FORM };
    expect(vm.request(headers).send('--b\r\n', true).reply?.status).toBe(400);
    expect(postForm(vm, '/', 'name="file"; filename="a"', 'x'.repeat(3_000)).reply?.status).toBe(413);
  });

  it('of path and tenant holds however long the headers are, and what is taken of the messages for a key', () => {
    const headers = {
      ':path': '/v1/embeddings',
      'x-tenant': 'acme',
      cookie: 'c'.repeat(40_000),
      'x-session-id': '',
    };
    for (const name of ['gold', 'embedding']) {
      const vm = started(view(name), { prefixKeyBytes: 65_536 });
      const stream = post(vm, { messages: 'x'.repeat(60_000) }, headers);
      expect(engineOf(stream.endpoints[0])).toBe(1);
      expect(stream.respond(200).decision.reason).toBe('planned');
    }
  });

  it.each([
    ['/v1/%65mbeddings', true],
    ['/%76%31/embedding%73?x', true],
    ['/v1%2Fembeddings', true],
    ['/v1%2fembeddings/x', true],
    ['/v1/embedding', false],
    ['/v1/embedding%', false],
    ['/v1/embedding%7', false],
    ['/v1/embedding%7g', false],
    ['/v1/embedding%74', false],
    ['/v1/%2565mbeddings', false],
    ['%', false],
  ])('of a path holds however it is written: %s', (path, carried) => {
    const vm = started(view('embedding'));
    expect(engineOf(post(vm, {}, { ':path': path }).endpoints[0])).toBe(carried ? 1 : 0);
  });

  it('of headers, path and tenant holds for requests without a body, too', () => {
    const vm = started(view('eu-only', 'us-only'));
    const get = (headers: Record<string, string>) =>
      vm.request({ ':method': 'GET', ...headers }, { ended: true });
    expect(engineOf(get({ 'x-data-residency': 'eu' }).endpoints[0])).toBe(1);
    expect(engineOf(get({}).endpoints[0])).toBe(0);
    const both = vm.request(
      [
        [':method', 'GET'],
        ['x-data-residency', 'us'],
        ['x-data-residency', 'eu'],
      ],
      { ended: true },
    );
    expect(both.reply?.status).toBe(400);
  });

  it('changes with the snapshot', () => {
    const vm = started(view('eu-only'));
    deliver(vm, { ...view('batch'), version: 2 });
    expect(engineOf(post(vm, {}, { 'x-data-residency': 'eu' }).endpoints[0])).toBe(0);
    expect(engineOf(post(vm, {}, { 'x-batch': '1' }).endpoints[0])).toBe(1);
  });

  it('of a snapshot that was dropped is forgotten', () => {
    const vm = started(view('eu-only'));
    expect(vm.reconfigure({ frontendId: 'east', readBodies: true })).toBe(true);
    const waiting = vm.request({ 'x-data-residency': 'eu', 'x-wardrop-model': 'm', 'x-session-id': 'a' });
    vm.tick();
    deliver(vm, { ...sketch([{ weight: 1 }]), frontendId: 'east' });
    expect(waiting.forwarded || waiting.send('{}', true).forwarded).toBe(true);
  });
});
