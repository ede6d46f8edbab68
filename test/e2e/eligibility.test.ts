import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { decisionOf } from '../../wire/decision.js';
import { hostileBodies } from '../hostile-bodies.js';
import { keysOf } from './harness/load.js';
import { type EnvoyHandle, Mesh, suspiciousLines } from './harness/mesh.js';
import { type Posted, type PostOptions, post, postHttp2 } from './harness/post.js';
import { sleep } from './harness/process.js';
import { loopback6, StubEngine } from './harness/stub-engine.js';

const BASE = 'acme-chat-8b';
const ADAPTER = 'acme-legal';
/** Longest prompt of the small context, in tokens of 4 bytes. */
const SMALL_CONTEXT = 16_000;
const MAX_BODY_BYTES = 3_000_000;

describe('eligibility through a real Envoy', () => {
  const stubs = {
    e1: new StubEngine('e1'),
    e2: new StubEngine('e2'),
    e3: new StubEngine('e3', undefined, loopback6),
  };
  /** Listens where no configuration points to. */
  const stranger = new StubEngine('stranger');
  const all = [...Object.values(stubs), stranger];
  let mesh: Mesh;
  let envoy: EnvoyHandle;

  beforeAll(async () => {
    await Promise.all(all.map((stub) => stub.start()));
    mesh = await Mesh.start({
      engines: [
        engine('e1', stubs.e1, [BASE], { residency: 'eu', context: '16k' }),
        engine('e2', stubs.e2, [BASE, ADAPTER], { residency: 'eu', context: '128k' }),
        engine('e3', stubs.e3, [BASE], { residency: 'us', context: '128k' }),
      ],
      rttMs: { west: { e1: 2, e2: 2, e3: 2 } },
      // Enough for all that is sent here at once, so that nothing is shed before a test wants it.
      profiles: { stub: { requestsPerSecond: 1_000 } },
      demand: { west: { models: { [BASE]: { requestsPerSecond: 60 } } } },
      policy: {
        bounds: ['e1', 'e2', 'e3'].map((id) => ({ frontend: 'west', pool: BASE, engine: id, min: 0.3 })),
      },
      config: {
        needs: {
          'eu-only': { when: { header: { 'x-data-residency': 'eu' } }, engines: { residency: 'eu' } },
          'us-only': { when: { header: { 'x-data-residency': 'us' } }, engines: { residency: 'us' } },
          'long-context': { when: { totalTokens: SMALL_CONTEXT }, engines: { context: '128k' } },
          'too-long': { when: { promptTokens: 128_000 }, refuse: true },
        },
        aliases: { 'acme-chat': BASE },
        filter: { maxBodyBytes: MAX_BODY_BYTES },
      },
    });
    envoy = await mesh.startEnvoy('west', { concurrency: 2 });
  });

  afterAll(async () => {
    await mesh?.stop();
    await Promise.all(all.map((stub) => stub.kill()));
  });

  const ask = (model: string | undefined, options: Ask = {}): Promise<Posted> => {
    const { key, prompt = 'hello', headers = {}, fields = {} } = options;
    const body = Buffer.from(
      JSON.stringify({
        messages: [{ role: 'user', content: prompt }],
        prompt_cache_key: key,
        model,
        ...fields,
      }),
    );
    return post(`${envoy.url}/v1/chat/completions`, { pieces: [body], headers });
  };
  const modeOf = async (key: string) => decisionOf((await ask(BASE, { key })).headers).mode;
  const reconfigure = (change: object) => {
    const config = parse(readFileSync(mesh.configFile, 'utf8'));
    writeFileSync(mesh.configFile, stringify({ ...config, ...change }));
  };
  /** Engines that answered, and how often. */
  const served = async (answers: readonly Promise<Posted>[]): Promise<Record<string, number>> => {
    const counts: Record<string, number> = {};
    for (const { status, headers, body } of await Promise.all(answers)) {
      expect([status, body]).toEqual([200, expect.any(String)]);
      const name = String(headers['x-stub']);
      counts[name] = (counts[name] ?? 0) + 1;
    }
    return counts;
  };
  /** Engines with a weight. */
  const plannedFor = async (pool: string): Promise<string[]> => {
    const { rows } = await mesh.api<PlanJson>('/v1/plan');
    return rows.find(({ poolId }) => poolId === pool)!.weights.map(({ engineId }) => engineId);
  };
  const attempts = () => all.reduce((sum, stub) => sum + stub.attempts.length, 0);

  it('sends an adapter only to the engine that has it, and the base model to all', async () => {
    expect(await served(keysOf(100).map((key) => ask(ADAPTER, { key })))).toEqual({ e2: 100 });
    const counts = await served(keysOf(300).map((key) => ask(BASE, { key })));
    expect(Object.keys(counts).sort()).toEqual(['e1', 'e2', 'e3']);
  });

  it('serves a model under its alias as under its name', async () => {
    for (const key of keysOf(12, 'alias')) {
      const first = await ask(BASE, { key });
      const second = await ask('acme-chat', { key });
      expect(second.headers['x-stub']).toBe(first.headers['x-stub']);
    }
  });

  it.each([
    ['acme-leagl', 404, 'model_not_found'],
    ['ACME-LEGAL', 404, 'model_not_found'],
    [undefined, 400, 'model_missing'],
  ])('answers a request for the model %s itself', async (model, status, code) => {
    const before = attempts();
    for (const key of keysOf(20)) {
      const answer = await ask(model, { key });
      expect([answer.status, JSON.parse(answer.body).error.code]).toEqual([status, code]);
    }
    expect(attempts()).toBe(before);
  });

  it.each([
    ['GET', '/v1/models'],
    ['GET', '/health'],
    ['HEAD', '/'],
    ['OPTIONS', '/v1/chat/completions'],
  ])('passes %s %s on, which has no body, to whichever engine is well', async (method, path) => {
    const { status, headers } = await fetch(`${envoy.url}${path}`, { method });
    expect([status, headers.get('x-stub')]).toEqual([200, expect.stringMatching(/^e[123]$/)]);
  });

  it('finds the model in the body however it arrives, and passes the body on unchanged', async () => {
    const late = Buffer.from(
      JSON.stringify({
        messages: [{ role: 'user', content: 'lorem ipsum '.repeat(4_000) }],
        stream: false,
        prompt_cache_key: 'conv-late-1',
        model: BASE,
      }),
    );
    const cut = late.lastIndexOf('"model"') + 4;
    const thousands = Array.from({ length: Math.ceil(late.length / 1_000) }, (_, at) =>
      late.subarray(at * 1_000, (at + 1) * 1_000),
    );
    const homes = new Set<string>();
    for (let round = 0; round < 10; round++) {
      for (const [pieces, isChunked] of [
        [[late], false],
        [[late], true],
        [thousands, true],
        [[late.subarray(0, cut), late.subarray(cut)], true],
      ] as const) {
        for (const send of [post, postHttp2]) {
          const answer = await send(`${envoy.url}/v1/chat/completions`, { pieces, isChunked });
          expect([answer.status, answer.body]).toEqual([200, expect.any(String)]);
          const stub = all.find(({ name }) => name === answer.headers['x-stub'])!;
          expect(stub.attempts.at(-1)!.sha256).toBe(sha256(late));
          homes.add(stub.name);
        }
      }
    }
    expect(homes.size).toBe(1);
  });

  it('finds the model of a form before its file or behind it, and passes the form on unchanged', async () => {
    const model = formField('model', ADAPTER);
    for (const parts of [
      [model, formFile(40_000)],
      [formFile(40_000), model],
      [formField('model', BASE), formFile(40_000), model],
    ]) {
      const form = formOf(parts);
      const cut = form.lastIndexOf('model') + 2;
      for (const send of [post, postHttp2]) {
        for (const pieces of [[form], [form.subarray(0, cut), form.subarray(cut)]]) {
          const answer = await send(`${envoy.url}/v1/audio/transcriptions`, {
            pieces,
            headers: FORM,
            isChunked: pieces.length > 1,
          });
          expect([answer.status, answer.headers['x-stub']]).toEqual([200, 'e2']);
          expect(stubs.e2.attempts.at(-1)!.sha256).toBe(sha256(form));
        }
      }
    }
    const before = attempts();
    for (const [form, status, code] of [
      [formOf([formFile(10)]), 400, 'model_missing'],
      [formOf([formField('model', 'acme-leagl')]), 404, 'model_not_found'],
      [model, 400, 'invalid_form'],
    ] as const) {
      const answer = await post(`${envoy.url}/v1/audio/transcriptions`, { pieces: [form], headers: FORM });
      expect([answer.status, JSON.parse(answer.body).error.code]).toEqual([status, code]);
    }
    expect(attempts()).toBe(before);
  });

  it('passes bodies on that are near the limit, and refuses larger ones', async () => {
    const body = (bytes: number) =>
      Buffer.from(JSON.stringify({ model: ADAPTER, padding: 'x'.repeat(bytes) }));
    const large = body(MAX_BODY_BYTES - 1_000);
    const answer = await post(`${envoy.url}/v1/chat/completions`, { pieces: [large], isChunked: true });
    expect([answer.status, answer.headers['x-stub']]).toEqual([200, 'e2']);
    expect(stubs.e2.attempts.at(-1)!.sha256).toBe(sha256(large));
    const before = attempts();
    for (const isChunked of [false, true]) {
      const refused = await post(`${envoy.url}/v1/chat/completions`, {
        pieces: [body(MAX_BODY_BYTES)],
        isChunked,
      });
      expect([refused.status, decisionOf(refused.headers).reason]).toEqual([413, 'body-too-large']);
    }
    expect(attempts()).toBe(before);
  });

  it('gives bodies that tend to break small parsers the same outcome each time, and good ones beside them theirs', async () => {
    let isOver = false;
    const good = (async () => {
      const statuses: number[] = [];
      for (; !isOver; await sleep(10))
        statuses.push((await ask(BASE, { key: `good ${statuses.length}` })).status);
      return statuses;
    })();
    const seen: object[] = [];
    for (const { body } of hostileBodies(BASE)) {
      const send = () =>
        post(`${envoy.url}/v1/chat/completions`, { pieces: [Buffer.from(body)], isChunked: true });
      const statuses = (await Promise.all(Array.from({ length: 10 }, send))).map(({ status }) => status);
      seen.push({ body, outcomes: [...new Set(statuses)] });
    }
    isOver = true;
    expect(seen).toEqual(hostileBodies(BASE).map(({ body, outcome }) => ({ body, outcomes: [outcome] })));
    expect(new Set(await good)).toEqual(new Set([200]));
  });

  it('refuses an encoded body that has to be read', async () => {
    const before = attempts();
    // The model has a need that only its body can tell, so that headers are not enough.
    for (const headers of [{}, { 'x-wardrop-model': ADAPTER, 'x-session-id': 'k' }]) {
      const answer = await post(`${envoy.url}/v1/chat/completions`, zipped(headers));
      expect([answer.status, answer.body]).toEqual([415, expect.stringContaining('gzip')]);
    }
    expect(attempts()).toBe(before);
  });

  it('sends prompts only to engines whose context is long enough for them and their answers, and longer ones to nobody', async () => {
    const prompt = (tokens: number) => 'abcd'.repeat(tokens);
    const short = await served(
      keysOf(40).map((key) => ask(BASE, { key, prompt: prompt(2_000), fields: { max_tokens: 256 } })),
    );
    expect(Object.keys(short)).toContain('e1');
    const atSmall = stubs.e1.attempts.length;
    await served(keysOf(20).map((key) => ask(BASE, { key, prompt: prompt(60_000) })));
    for (const field of ['max_tokens', 'max_completion_tokens', 'max_output_tokens']) {
      const fields = { [field]: SMALL_CONTEXT - 1_000 };
      await served(keysOf(20).map((key) => ask(BASE, { key, prompt: prompt(2_000), fields })));
    }
    expect(stubs.e1.attempts.length).toBe(atSmall);
    const before = attempts();
    for (const key of keysOf(5)) {
      const answer = await ask(BASE, { key, prompt: prompt(500_000) });
      expect([answer.status, JSON.parse(answer.body).error.code]).toEqual([400, 'context_length_exceeded']);
    }
    expect(attempts()).toBe(before);
  });

  it('lets no header of a client steer a request around its needs', async () => {
    const spoofs: Record<string, string>[] = [
      { 'x-gateway-destination-endpoint': stranger.address },
      { 'x-gateway-destination-endpoint': stubs.e3.address },
      { 'x-gateway-destination-endpoint-subset': stubs.e3.address },
      { 'x-wardrop-cluster': BASE },
      { 'x-wardrop-cluster': 'wardrop-sync' },
      { 'x-prefiller-host-port': stranger.address },
      { 'target-pod': stranger.address },
      { 'x-envoy-original-dst-host': stranger.address },
    ];
    const headers = { 'x-data-residency': 'eu' };
    for (const spoof of spoofs) {
      for (const key of keysOf(6)) {
        const honest = await ask(BASE, { key, headers });
        const answer = await ask(BASE, { key, headers: { ...headers, ...spoof } });
        expect([spoof, answer.status, answer.headers['x-stub']]).toEqual([
          spoof,
          200,
          honest.headers['x-stub'],
        ]);
      }
    }
    expect(stranger.attempts).toEqual([]);
  });

  it('answers needs that nobody meets together itself, and names them', async () => {
    const before = attempts();
    const answer = await ask(BASE, { headers: { 'x-data-residency': ['eu', 'us'] } });
    expect([answer.status, JSON.parse(answer.body).error]).toEqual([
      400,
      expect.objectContaining({
        code: 'need_unmet',
        message: expect.stringMatching(/eu-only.*us-only/),
      }),
    ]);
    expect(attempts()).toBe(before);
  });

  it('never sends a request outside its region, whoever in it dies', async () => {
    const headers = { 'x-data-residency': 'eu' };
    const keys = keysOf(60, 'resident');
    const atThird = stubs.e3.attempts.length;
    await served(keys.map((key) => ask(BASE, { key, headers })));
    await stubs.e1.kill();
    await mesh.eventually('all of the region to be served by e2', async () => {
      const answers = await Promise.all(keys.map((key) => ask(BASE, { key, headers })));
      return answers.every((answer) => answer.headers['x-stub'] === 'e2');
    });
    await stubs.e2.kill();
    await mesh.eventually('requests of the region to be refused', async () => {
      const answers = await Promise.all(keys.map((key) => ask(BASE, { key, headers })));
      return answers.every((answer) => answer.status === 503);
    });
    // Others are served by whom is left; that took no request of the region.
    await mesh.eventually('others to be served', async () => (await ask(BASE, { key: 'k' })).status === 200);
    // The lost ones stay in use for those that have nobody else, and for nobody else.
    await mesh.eventually(
      'a plan of the one that is left',
      async () => (await plannedFor(BASE)).join() === 'e3',
    );
    const explained = [
      'explain',
      '--url',
      mesh.adminUrl,
      '--frontend',
      'west',
      '--pool',
      BASE,
      '--engine',
      'e2',
    ];
    expect(await mesh.wardrop(...explained)).toContain('only in service for pools that have nobody else');
    expect(await plannedFor(ADAPTER)).toEqual(['e2']);
    const resident = stubs.e3.attempts.slice(atThird).filter((one) => one.headers['x-data-residency']);
    expect(resident).toEqual([]);
    await Promise.all([stubs.e1.start(), stubs.e2.start()]);
    await mesh.eventually('the region to be served again', async () => {
      const answers = await Promise.all(keys.map((key) => ask(BASE, { key, headers })));
      return answers.every((answer) => answer.status === 200);
    });
    expect(stubs.e3.attempts.slice(atThird).filter((one) => one.headers['x-data-residency'])).toEqual([]);
  });

  it('passes an encoded body on unread once a reload has removed the needs that it would have to tell', async () => {
    const { needs, ...config } = parse(readFileSync(mesh.configFile, 'utf8'));
    writeFileSync(mesh.configFile, stringify({ ...config, needs: { 'eu-only': needs['eu-only'] } }));
    const request = zipped({ 'x-wardrop-model': ADAPTER, 'x-session-id': 'k' });
    const answer = await mesh.eventually('the body not to be needed', async () => {
      const one = await post(`${envoy.url}/v1/chat/completions`, request);
      return one.status === 200 && one;
    });
    expect(answer.headers['x-stub']).toBe('e2');
    expect(stubs.e2.attempts.at(-1)!.sha256).toBe(sha256(request.pieces[0]!));
    const refused = await post(`${envoy.url}/v1/chat/completions`, zipped({}));
    expect(refused.status).toBe(415);
  });

  it('sends on a form longer than may be read when the model stands before its file, and refuses others', async () => {
    const model = formField('model', ADAPTER);
    const file = formFile(3 * MAX_BODY_BYTES);
    const send = (parts: readonly Buffer[], isChunked: boolean) =>
      post(`${envoy.url}/v1/audio/transcriptions`, { pieces: [formOf(parts)], headers: FORM, isChunked });
    for (const isChunked of [false, true]) {
      for (let round = 0; round < 3; round++) {
        const answer = await send([model, file], isChunked);
        expect([answer.status, answer.headers['x-stub']]).toEqual([200, 'e2']);
        expect(stubs.e2.attempts.at(-1)!.sha256).toBe(sha256(formOf([model, file])));
        const refused = await send([file, model], isChunked);
        expect([refused.status, decisionOf(refused.headers).reason]).toEqual([413, 'body-too-large']);
      }
    }
  });

  it('never unpacks an encoded body: Envoy grows by less than a body may have', async () => {
    const bomb = gzipSync(Buffer.alloc(10_000_000));
    const send = (named: Record<string, string>) =>
      post(`${envoy.url}/v1/chat/completions`, {
        pieces: [bomb],
        headers: { 'content-encoding': 'gzip', ...named },
      });
    const memory = async () => {
      const view = (await (await fetch(`${envoy.adminUrl}/memory`)).json()) as { allocated: string };
      return Number(view.allocated);
    };
    const before = await memory();
    for (let round = 0; round < 10; round++) {
      expect((await send({})).status).toBe(415);
      expect((await send({ 'x-wardrop-model': ADAPTER })).status).toBe(200);
      expect(stubs.e2.attempts.at(-1)!.sha256).toBe(sha256(bomb));
    }
    expect((await memory()) - before).toBeLessThan(MAX_BODY_BYTES);
  });

  it('steers nothing while observing, and goes on to decide, count and keep everybody out who may not serve', async () => {
    const atStranger = stranger.attempts.length;
    reconfigure({ policy: { mode: 'observe' } });
    // In both workers: connections are spread over them.
    await mesh.eventually('the mode to be in force', async () =>
      (await Promise.all(keysOf(20).map(modeOf))).every((mode) => mode === 'observe'),
    );
    for (const key of keysOf(20)) {
      const headers = { 'x-data-residency': 'eu', 'x-gateway-destination-endpoint': stranger.address };
      const answer = await ask(BASE, { key, headers });
      expect([answer.status, decisionOf(answer.headers).mode]).toEqual([200, 'observe']);
      expect(decisionOf(answer.headers).engine).toMatch(/^e[12]$/);
      expect(answer.headers['x-stub']).toMatch(/^e[12]$/);
    }
    // Nor is anything retried, as no retry is granted.
    const before = attempts();
    const fail = (stub: StubEngine) => {
      const { behaviour } = stub;
      stub.behaviour = (_request, response) => void response.writeHead(503).end();
      return () => {
        stub.behaviour = behaviour;
      };
    };
    const healed = all.map(fail);
    const failed = await Promise.all(keysOf(10).map((key) => ask(BASE, { key })));
    for (const heal of healed) heal();
    expect(failed.map(({ status }) => status)).toEqual(Array(10).fill(503));
    expect(attempts() - before).toBe(10);
    // Our own route leads nowhere without the filter, so that it still answers what cannot be decided.
    expect((await ask('acme-leagl')).status).toBe(404);
    expect(stranger.attempts.length).toBe(atStranger);
  });

  it('steers a share of the keys, each always or never, and none at 0 or all at 100', async () => {
    reconfigure({ policy: { steerPercent: 40 } });
    const keys = keysOf(60, 'ramp');
    const modes = () => Promise.all(keys.map(modeOf));
    const some = await mesh.eventually('a share to be steered', async () => {
      const seen = await modes();
      // Until every worker has the news, two looks at a key differ.
      const isSame = isDeepStrictEqual(await modes(), seen) && isDeepStrictEqual(await modes(), seen);
      return new Set(seen).size === 2 && isSame && seen;
    });
    for (let round = 0; round < 3; round++) expect(await modes()).toEqual(some);
    reconfigure({ policy: { steerPercent: 0 } });
    await mesh.eventually('nobody to be steered', async () =>
      (await modes()).every((mode) => mode === 'observe'),
    );
    reconfigure({ policy: {} });
    await mesh.eventually('all to be steered', async () =>
      (await modes()).every((mode) => mode === undefined),
    );
  });

  it('refuses the least important first when there is more than engines can take', async () => {
    reconfigure({
      policy: {},
      profiles: { stub: { requestsPerSecond: 4 } },
      demand: { west: { models: { [BASE]: { requestsPerSecond: 8 } } } },
      classes: { batch: { priority: -10, when: { serviceTier: 'flex' } } },
    });
    let sent = 0;
    const send = async (tier: string) => {
      const body = JSON.stringify({ model: BASE, service_tier: tier, prompt_cache_key: `${tier} ${sent++}` });
      return (await post(`${envoy.url}/v1/chat/completions`, { pieces: [Buffer.from(body)] })).status;
    };
    await mesh.eventually('batches to be refused, and nothing else', async () => {
      const sending = { usual: [] as Promise<number>[], batch: [] as Promise<number>[] };
      // 8 and 16 in a second, however long the answers take; engines can take 12.
      for (let i = 0; i < 8; i++) {
        sending.usual.push(send('default'));
        sending.batch.push(send('flex'), send('flex'));
        await sleep(125);
      }
      const [usual, batch] = await Promise.all([Promise.all(sending.usual), Promise.all(sending.batch)]);
      return usual.every((status) => status === 200) && batch.filter((status) => status === 429).length >= 6;
    });
  });

  it('leaves no warning about unknown fields, rejected updates or failed VMs in the log of Envoy', () => {
    expect(suspiciousLines(envoy.process.output)).toEqual([]);
  });
});

interface Ask {
  readonly key?: string;
  readonly prompt?: string;
  /** Further fields of the body. */
  readonly fields?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
}

interface PlanJson {
  readonly rows: readonly {
    readonly poolId: string;
    readonly weights: readonly { readonly engineId: string }[];
  }[];
}

function engine(
  id: string,
  stub: StubEngine,
  models: readonly string[],
  labels: Readonly<Record<string, string>>,
): Record<string, unknown> {
  return { id, region: 'west', models, labels, profile: 'stub', endpoints: [stub.address] };
}

const FORM = { 'content-type': 'multipart/form-data; boundary="a form"' };

function formField(name: string, value: string): Buffer {
  return Buffer.from(`--a form\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`);
}

/** A file full of what may be the beginning of a boundary. */
function formFile(bytes: number): Buffer {
  const headers = 'Content-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav';
  return Buffer.from(`--a form\r\n${headers}\r\n\r\n${'\r\n--a for'.repeat(bytes / 9)}\r\n`);
}

function formOf(parts: readonly Buffer[]): Buffer {
  return Buffer.concat([...parts, Buffer.from('--a form--\r\n')]);
}

function zipped(headers: Readonly<Record<string, string>>): PostOptions {
  const body = JSON.stringify({ model: ADAPTER, messages: [], prompt_cache_key: 'k' });
  return { pieces: [gzipSync(body)], headers: { 'content-encoding': 'gzip', ...headers } };
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
