import { get } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decisionOf } from '../../wire/decision.js';
import { Acme, ADAPTER, type Ask, BASE, SMALL_CONTEXT } from './harness/acme.js';
import { keysOf } from './harness/load.js';
import { suspiciousLines } from './harness/mesh.js';
import { type Posted, post } from './harness/post.js';
import { sleep } from './harness/process.js';
import type { StubEngine } from './harness/stub-engine.js';

describe('eligibility through a real Envoy', () => {
  let acme: Acme;
  beforeAll(async () => {
    acme = await Acme.start();
  });
  afterAll(() => acme?.stop());

  const ask = (model: string | undefined, options?: Ask) => acme.ask(model, options);
  const modeOf = async (key: string) => decisionOf((await ask(BASE, { key })).headers).mode;
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
    const { rows } = await acme.mesh.api<PlanJson>('/v1/plan');
    return rows.find(({ poolId }) => poolId === pool)!.weights.map(({ engineId }) => engineId);
  };

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
    const before = acme.attempts;
    for (const key of keysOf(20)) {
      const answer = await ask(model, { key });
      expect([answer.status, JSON.parse(answer.body).error.code]).toEqual([status, code]);
    }
    expect(acme.attempts).toBe(before);
  });

  it('lists all names of models without an engine, and lets one that has a model tell of it', async () => {
    const before = acme.attempts;
    const list = await fetch(`${acme.envoy.url}/v1/models?x`);
    expect(list.headers.get('content-type')).toBe('application/json');
    const { object, data } = (await list.json()) as { object: string; data: { id: string }[] };
    expect([object, data.map(({ id }) => id)]).toEqual(['list', [BASE, 'acme-chat', ADAPTER].sort()]);
    expect(acme.attempts).toBe(before);
    for (let time = 0; time < 5; time++) {
      const one = await fetch(`${acme.envoy.url}/v1/models/${ADAPTER}`);
      expect(one.headers.get('x-stub')).toBe('e2');
      const headers = { 'x-wardrop-model': ADAPTER };
      const ofEngine = await fetch(`${acme.envoy.url}/v1/models`, { headers });
      expect(ofEngine.headers.get('x-stub')).toBe('e2');
    }
  });

  it.each([
    ['GET', '/health'],
    ['HEAD', '/v1/models'],
    ['HEAD', '/'],
    ['OPTIONS', '/v1/chat/completions'],
  ])('passes %s %s on, which has no body, to whichever engine is well', async (method, path) => {
    const { status, headers } = await fetch(`${acme.envoy.url}${path}`, { method });
    expect([status, headers.get('x-stub')]).toEqual([200, expect.stringMatching(/^e[123]$/)]);
  });

  it.each([
    '/v1/embeddings?x',
    '//v1/embeddings',
    '/v1//embeddings',
    '/./v1/./embeddings',
    '/x/../v1/embeddings',
    '/x/%2e%2E/v1/embeddings',
    '/v1%2Fembeddings',
    '/x%2f..%2Fv1%2F/embeddings',
    '/v1/%65mbeddings',
  ])('holds a need by path for %s, which a server behind may read as that path', async (path) => {
    const before = acme.attempts;
    expect(await statusOf(acme, path)).toBe(400);
    expect(acme.attempts).toBe(before);
  });

  it('gives engines the plain path that needs were judged by, with its query as it was', async () => {
    expect(await statusOf(acme, '/x/..//v1%2F%6Dodels/a%2Fb%20c?d=//e/../%2F')).toBe(200);
    const paths = Object.values(acme.stubs).flatMap((stub) => stub.attempts.map(({ path }) => path));
    expect(paths).toContain('/v1/models/a/b%20c?d=//e/../%2F');
  });

  it('sends prompts only to engines whose context is long enough for them and their answers, and longer ones to nobody', async () => {
    const prompt = (tokens: number) => 'abcd'.repeat(tokens);
    const short = await served(
      keysOf(40).map((key) => ask(BASE, { key, prompt: prompt(2_000), fields: { max_tokens: 256 } })),
    );
    expect(Object.keys(short)).toContain('e1');
    const atSmall = acme.stubs.e1.attempts.length;
    await served(keysOf(20).map((key) => ask(BASE, { key, prompt: prompt(60_000) })));
    for (const field of ['max_tokens', 'max_completion_tokens', 'max_output_tokens']) {
      const fields = { [field]: SMALL_CONTEXT - 1_000 };
      await served(keysOf(20).map((key) => ask(BASE, { key, prompt: prompt(2_000), fields })));
    }
    expect(acme.stubs.e1.attempts.length).toBe(atSmall);
    const before = acme.attempts;
    for (const key of keysOf(5)) {
      const answer = await ask(BASE, { key, prompt: prompt(500_000) });
      expect([answer.status, JSON.parse(answer.body).error.code]).toEqual([400, 'context_length_exceeded']);
    }
    expect(acme.attempts).toBe(before);
  });

  it('lets no header of a client steer a request around its needs', async () => {
    const spoofs: Record<string, string>[] = [
      { 'x-gateway-destination-endpoint': acme.stranger.address },
      { 'x-gateway-destination-endpoint': acme.stubs.e3.address },
      { 'x-gateway-destination-endpoint-subset': acme.stubs.e3.address },
      { 'x-wardrop-cluster': BASE },
      { 'x-wardrop-cluster': 'wardrop-sync' },
      { 'x-prefiller-host-port': acme.stranger.address },
      { 'target-pod': acme.stranger.address },
      { 'x-envoy-original-dst-host': acme.stranger.address },
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
    expect(acme.stranger.attempts).toEqual([]);
  });

  it('answers needs that nobody meets together itself, and names them', async () => {
    const before = acme.attempts;
    const answer = await ask(BASE, { headers: { 'x-data-residency': ['eu', 'us'] } });
    expect([answer.status, JSON.parse(answer.body).error]).toEqual([
      400,
      expect.objectContaining({
        code: 'need_unmet',
        message: expect.stringMatching(/eu-only.*us-only/),
      }),
    ]);
    expect(acme.attempts).toBe(before);
  });

  it('never sends a request outside its region, whoever in it dies', async () => {
    const headers = { 'x-data-residency': 'eu' };
    const keys = keysOf(60, 'resident');
    const atThird = acme.stubs.e3.attempts.length;
    await served(keys.map((key) => ask(BASE, { key, headers })));
    await acme.stubs.e1.kill();
    await acme.mesh.eventually('all of the region to be served by e2', async () => {
      const answers = await Promise.all(keys.map((key) => ask(BASE, { key, headers })));
      return answers.every((answer) => answer.headers['x-stub'] === 'e2');
    });
    await acme.stubs.e2.kill();
    await acme.mesh.eventually('requests of the region to be refused', async () => {
      const answers = await Promise.all(keys.map((key) => ask(BASE, { key, headers })));
      return answers.every((answer) => answer.status === 503);
    });
    // Others are served by whom is left; that took no request of the region.
    await acme.mesh.eventually(
      'others to be served',
      async () => (await ask(BASE, { key: 'k' })).status === 200,
    );
    // The lost ones stay in use for those that have nobody else, and for nobody else.
    await acme.mesh.eventually(
      'a plan of the one that is left',
      async () => (await plannedFor(BASE)).join() === 'e3',
    );
    const explained = [
      'explain',
      '--url',
      acme.mesh.adminUrl,
      '--frontend',
      'west',
      '--pool',
      BASE,
      '--engine',
      'e2',
    ];
    expect(await acme.mesh.wardrop(...explained)).toContain(
      'only in service for pools that have nobody else',
    );
    expect(await plannedFor(ADAPTER)).toEqual(['e2']);
    const resident = acme.stubs.e3.attempts.slice(atThird).filter((one) => one.headers['x-data-residency']);
    expect(resident).toEqual([]);
    await Promise.all([acme.stubs.e1.start(), acme.stubs.e2.start()]);
    await acme.mesh.eventually('the region to be served again', async () => {
      const answers = await Promise.all(keys.map((key) => ask(BASE, { key, headers })));
      return answers.every((answer) => answer.status === 200);
    });
    expect(acme.stubs.e3.attempts.slice(atThird).filter((one) => one.headers['x-data-residency'])).toEqual(
      [],
    );
  });

  it('steers nothing while observing, and goes on to decide, count and keep everybody out who may not serve', async () => {
    const atStranger = acme.stranger.attempts.length;
    acme.reconfigure({ policy: { mode: 'observe' } });
    // In both workers: connections are spread over them.
    await acme.mesh.eventually('the mode to be in force', async () =>
      (await Promise.all(keysOf(20).map(modeOf))).every((mode) => mode === 'observe'),
    );
    for (const key of keysOf(20)) {
      const headers = { 'x-data-residency': 'eu', 'x-gateway-destination-endpoint': acme.stranger.address };
      const answer = await ask(BASE, { key, headers });
      expect([answer.status, decisionOf(answer.headers).mode]).toEqual([200, 'observe']);
      expect(decisionOf(answer.headers).engine).toMatch(/^e[12]$/);
      expect(answer.headers['x-stub']).toMatch(/^e[12]$/);
    }
    // Nor is anything retried, as no retry is granted.
    const before = acme.attempts;
    const fail = (stub: StubEngine) => {
      const { behaviour } = stub;
      stub.behaviour = (_request, response) => void response.writeHead(503).end();
      return () => {
        stub.behaviour = behaviour;
      };
    };
    const healed = acme.all.map(fail);
    const failed = await Promise.all(keysOf(10).map((key) => ask(BASE, { key })));
    for (const heal of healed) heal();
    expect(failed.map(({ status }) => status)).toEqual(Array(10).fill(503));
    expect(acme.attempts - before).toBe(10);
    // Our own route leads nowhere without the filter, so that it still answers what cannot be decided.
    expect((await ask('acme-leagl')).status).toBe(404);
    expect(acme.stranger.attempts.length).toBe(atStranger);
  });

  it('steers a share of the keys, each always or never, and none at 0 or all at 100', async () => {
    acme.reconfigure({ policy: { steerPercent: 40 } });
    const keys = keysOf(60, 'ramp');
    const modes = () => Promise.all(keys.map(modeOf));
    const some = await acme.mesh.eventually('a share to be steered', async () => {
      const seen = await modes();
      // Until every worker has the news, two looks at a key differ.
      const isSame = isDeepStrictEqual(await modes(), seen) && isDeepStrictEqual(await modes(), seen);
      return new Set(seen).size === 2 && isSame && seen;
    });
    for (let round = 0; round < 3; round++) expect(await modes()).toEqual(some);
    acme.reconfigure({ policy: { steerPercent: 0 } });
    await acme.mesh.eventually('nobody to be steered', async () =>
      (await modes()).every((mode) => mode === 'observe'),
    );
    acme.reconfigure({ policy: {} });
    await acme.mesh.eventually('all to be steered', async () =>
      (await modes()).every((mode) => mode === undefined),
    );
  });

  it('refuses the least important first when there is more than engines can take', async () => {
    acme.reconfigure({
      policy: {},
      profiles: { stub: { requestsPerSecond: 4 } },
      demand: { west: { models: { [BASE]: { requestsPerSecond: 8 } } } },
      classes: { batch: { priority: -10, when: { serviceTier: 'flex' } } },
    });
    let sent = 0;
    const send = async (tier: string) => {
      const body = JSON.stringify({ model: BASE, service_tier: tier, prompt_cache_key: `${tier} ${sent++}` });
      return (await post(`${acme.envoy.url}/v1/chat/completions`, { pieces: [Buffer.from(body)] })).status;
    };
    await acme.mesh.eventually('batches to be refused, and nothing else', async () => {
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
    expect(suspiciousLines(acme.envoy.process.output)).toEqual([]);
  });
});

interface PlanJson {
  readonly rows: readonly {
    readonly poolId: string;
    readonly weights: readonly { readonly engineId: string }[];
  }[];
}

/** Of a GET with the path as it is written: URLs would make it plain. */
function statusOf({ envoy }: Acme, path: string): Promise<number | undefined> {
  const { hostname, port } = new URL(envoy.url);
  return new Promise((resolve, reject) => {
    get({ hostname, port, path, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).on('error', reject);
  });
}
