import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { request } from 'undici';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Status } from '../../xds-server/admin/views/status.js';
import { type EnvoyHandle, Mesh, suspiciousLines } from './harness/mesh.js';
import { sleep } from './harness/process.js';
import { type Behaviour, StubEngine } from './harness/stub-engine.js';

/** Many times the pause between two tokens of a stream that goes on, as a busy machine may be late with one. */
const STREAM_IDLE_SECONDS = 4;

const stubs = { a: new StubEngine('a'), b: new StubEngine('b') };
let mesh: Mesh;
let envoy: EnvoyHandle;
let logFile: string;
/** Of requests that their clients may leave, those that engines have seen closed. */
const closed: string[] = [];

const USAGE = {
  usage: { prompt_tokens: 20, completion_tokens: 11, prompt_tokens_details: { cached_tokens: 16 } },
};
const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`;

/** Sends headers at once, as vLLM does, and a prelude, then so many tokens with pauses, then nothing, or the end. */
const stream =
  (tokens: number, pauseMs: number, ends: boolean, prelude = ''): Behaviour =>
  async (_attempt, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    if (prelude !== '') response.write(prelude);
    for (let token = 0; token < tokens && !response.destroyed; token++) {
      await sleep(pauseMs);
      response.write(event({ token }));
    }
    if (ends) response.end(`${event(USAGE)}data: [DONE]\n\n`);
  };
const never: Behaviour = () => {};

const TOKENS = [0, 1, 2, 3, 4].map((token) => event({ token })).join('');
/** Sends headers and so much of a body, then breaks the connection. */
const dies =
  (body: string): Behaviour =>
  async (_attempt, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    if (body !== '') response.write(body);
    await sleep(50);
    response.destroy();
  };

/** By path. */
const behaviours: Record<string, Behaviour> = {
  '/long': stream(12, 500, true, '\ufeff: wait\r\rdata: {"type":"response.created"}\r\r'),
  '/silent': stream(0, 0, false),
  '/stuck': stream(3, 50, false),
  '/never': never,
  '/retried': (attempt, response) => {
    if (attemptsAt('/retried').length > 1) stream(2, 10, true)(attempt, response);
  },
  '/whole': async (_attempt, response) => {
    await sleep(1_000 * STREAM_IDLE_SECONDS + 500);
    response.setHeader('content-type', 'application/json');
    response.setHeader('endpoint-load-metrics', 'TEXT named_metrics.kv_cache_usage_perc=0.93, eps=0');
    response.end(JSON.stringify(USAGE));
  },
  '/left': stream(600, 100, false),
  '/open': (attempt, response) => {
    response.once('close', () => closed.push(attempt.path));
    return stream(600, 100, false)(attempt, response);
  },
  '/waits': never,
  '/cut': stream(1, 10, false),
  '/dies-silent': dies(''),
  '/dies-early': dies(': ping\n\n'),
  '/dies-amid': dies(TOKENS),
  '/dies-late': dies(`${TOKENS}${event(USAGE)}`),
};

/** A request that is found by its path again. It has no key: either engine may be asked first. */
async function ask(path: string, asksForStream = true, signal?: AbortSignal) {
  const answer = await request(`${envoy.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'm-3.1',
      stream: asksForStream,
      messages: [{ role: 'user', content: 'hello' }],
    }),
    ...(signal && { signal }),
  });
  return { status: answer.statusCode, headers: answer.headers, body: await answer.body.text().catch(String) };
}

const attemptsAt = (path: string) =>
  Object.values(stubs).flatMap((stub) => stub.attempts.filter((attempt) => attempt.path === path));

/** What a client gets of an answer, and whether it came to its end. */
async function receive(path: string): Promise<{ status: number; text: string; isWhole: boolean }> {
  const answer = await request(`${envoy.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm-3.1', stream: true, messages: [] }),
  });
  let text = '';
  try {
    for await (const chunk of answer.body) text += String(chunk);
    return { status: answer.statusCode, text, isWhole: true };
  } catch {
    return { status: answer.statusCode, text, isWhole: false };
  }
}

type Line = Record<string, string | number | null>;

interface FleetView {
  readonly engines: readonly {
    readonly inFlight: number | null;
    readonly replicas: readonly { readonly reported: object | null }[];
  }[];
  readonly demands: readonly object[];
  readonly usage: { readonly engines: readonly Record<string, number>[] };
}

beforeAll(async () => {
  for (const stub of Object.values(stubs)) {
    stub.behaviour = (attempt, response) => behaviours[attempt.path]!(attempt, response);
    await stub.start();
  }
  const engines = Object.values(stubs).map(({ name, address }) => ({
    id: name,
    region: 'r',
    models: ['m-3.1'],
    profile: 'stub',
    endpoints: [address],
    slowStartSeconds: 0,
  }));
  logFile = join(mkdtempSync(join(tmpdir(), 'wardrop-log-')), 'access.log');
  mesh = await Mesh.start({
    engines,
    rttMs: { west: { a: 2, b: 2 } },
    profiles: { stub: { requestsPerSecond: 100 } },
    demand: { west: { requestsPerSecond: 20 } },
    config: { timeouts: { streamIdleSeconds: STREAM_IDLE_SECONDS }, accessLog: logFile },
  });
  envoy = await mesh.startEnvoy('west', { concurrency: 2 });
});

afterAll(async () => {
  await mesh?.stop();
  await Promise.all(Object.values(stubs).map((stub) => stub.kill()));
  rmSync(dirname(logFile), { recursive: true, force: true });
});

it('ends what is silent by the limit of streams, and no stream that goes on', async () => {
  const paths = ['/long', '/silent', '/stuck', '/retried', '/never'];
  const [whole, ...streams] = await Promise.all([ask('/whole', false), ...paths.map((path) => ask(path))]);
  const [long, silent, stuck, retried, lost] = streams;
  expect(long).toMatchObject({ status: 200, body: expect.stringContaining('[DONE]') });
  // Headers have come, so there is no retry; the limit holds before the first token and between two.
  for (const ended of [silent, stuck]) {
    expect(ended).toMatchObject({ status: 200, body: expect.stringContaining('closed') });
  }
  // Without headers there is one, at another engine.
  expect(retried).toMatchObject({ status: 200, body: expect.stringContaining('[DONE]') });
  expect(lost!.status).toBe(504);
  expect(JSON.parse(lost!.body)).toEqual({
    type: 'error',
    error: {
      message: expect.any(String),
      type: 'server_error',
      param: null,
      code: 'upstream_per_try_idle_timeout',
    },
  });
  const attempts = ['/silent', '/stuck', '/retried', '/never'].map((path) => attemptsAt(path).length);
  // One of two engines each: the budget grants a retry at the other.
  expect(attempts).toEqual([1, 1, 2, 2]);
  // Other answers have a limit of their own.
  expect(whole).toMatchObject({ status: 200, body: JSON.stringify(USAGE) });
  expect(whole.headers).not.toHaveProperty('endpoint-load-metrics');
});

it('tries an answer that breaks off once only: its client sees each token once, and no clean end', async () => {
  const seen = await Promise.all(
    ['/dies-silent', '/dies-early', '/dies-amid', '/dies-late'].map(async (path) => {
      const received = await receive(path);
      return { path, attempts: attemptsAt(path).length, ...received };
    }),
  );
  const once = { status: 200, attempts: 1, isWhole: false };
  expect(seen).toEqual([
    { path: '/dies-silent', ...once, text: '' },
    { path: '/dies-early', ...once, text: ': ping\n\n' },
    { path: '/dies-amid', ...once, text: TOKENS },
    { path: '/dies-late', ...once, text: `${TOKENS}${event(USAGE)}` },
  ]);
});

it('keeps what goes on in flight while time passes, and ends it at the engine as soon as its client leaves', async () => {
  const leaving = Array.from({ length: 20 }, () => new AbortController());
  const open = leaving.map(({ signal }, index) =>
    ask('/open', index % 2 === 0, signal).catch(() => undefined),
  );
  const inFlight = async () => {
    const { engines } = await mesh.api<FleetView>('/v1/fleet');
    return engines.reduce((sum, engine) => sum + (engine.inFlight ?? Number.NaN), 0);
  };
  await mesh.eventually('all to be in flight', async () => (await inFlight()) === 20);
  const counts = new Set<number>();
  for (let look = 0; look < 15; look++) {
    await sleep(100);
    counts.add(await inFlight());
  }
  expect([...counts]).toEqual([20]);
  for (const client of leaving) client.abort();
  await Promise.all(open);
  await mesh.eventually('the engines to be told', () => closed.length === 20, 1_000);
});

it('has nothing in flight when clients have left and engines have died', async () => {
  const leave = (path: string, ms: number) =>
    ask(path, ms % 40 > 0, AbortSignal.timeout(ms)).catch(() => undefined);
  await Promise.all([
    ...Array.from({ length: 40 }, (_, index) => leave('/left', 50 + 10 * index)),
    ...Array.from({ length: 20 }, () => leave('/waits', 300)),
  ]);
  const cut = Array.from({ length: 10 }, () => ask('/cut').catch(() => undefined));
  await mesh.eventually('all of them at engines', () => attemptsAt('/cut').length === 10);
  await Promise.all(Object.values(stubs).map((stub) => stub.kill()));
  await Promise.all(cut);

  const fleet = await mesh.eventually('nothing in flight', async () => {
    const view = await mesh.api<FleetView>('/v1/fleet');
    return view.engines.every(({ inFlight }) => inFlight === 0) && view;
  });
  const sum = (name: string) => fleet.usage.engines.reduce((total, row) => total + row[name]!, 0);
  expect(sum('planned') + sum('diverted')).toBe(sum('ended'));
  expect(sum('stalled')).toBe(2);
  const average = (value: number, source: string) =>
    expect.objectContaining({
      value: expect.closeTo(value),
      source,
      ageSeconds: expect.any(Number),
      confidence: expect.any(Number),
    });
  expect(fleet.demands).toEqual([
    expect.objectContaining({
      measured: expect.objectContaining({
        hitShare: average(0.8, 'answers'),
        followUpShare: average(0, 'bodies'),
      }),
    }),
  ]);
  expect(sum('broken')).toBeGreaterThanOrEqual(1);
  const loads = fleet.engines.flatMap(({ replicas }) => replicas.flatMap(({ reported }) => reported ?? []));
  expect(loads).toEqual([
    expect.objectContaining({ reports: 1, garbled: 0, kvUse: expect.objectContaining({ value: 0.93 }) }),
  ]);
});

it('tells in status and metrics what clients have met with', async () => {
  const { frontends, engines } = await mesh.api<Status>('/v1/status');
  const { offeredPerSecond, refusedShare, failedShare, ...latencies } = frontends[0]!.traffic;
  // About a hundred requests; most clients have left, or what they waited for broke.
  expect(offeredPerSecond).toBeGreaterThan(1);
  expect(offeredPerSecond).toBeLessThan(100);
  expect(refusedShare).toBe(0);
  expect(failedShare).toBeGreaterThan(0.2);
  expect(latencies).toEqual({ firstTokenSeconds: expect.any(Number), wholeSeconds: expect.any(Number) });
  expect(engines.reduce((sum, { traffic }) => sum + traffic.failuresPerSecond, 0)).toBeGreaterThan(0);
  const { usage } = await mesh.api<FleetView>('/v1/fleet');
  const page = await (await fetch(`${mesh.adminUrl}/metrics`)).text();
  for (const { engineId, firstTokenCount } of usage.engines) {
    const labels = `frontend="west",engine="${engineId}"`;
    expect(page).toContain(`wardrop_first_token_seconds_count{${labels}} ${firstTokenCount}`);
    expect(page).toContain(`wardrop_first_token_seconds_bucket{${labels},le="+Inf"} ${firstTokenCount}`);
  }
});

it('explains every request in the access log', async () => {
  const stats = await (await fetch(`${envoy.adminUrl}/stats?filter=wardrop`)).text();
  expect(stats).toContain('wasmcustom.wardrop_answers_stalled: 2');
  expect(stats).toContain('wasmcustom.wardrop_first_token_ms: P0');
  const named = ['/named', '/named-too'].map(async (path) => {
    const { headers } = await fetch(`${envoy.url}${path}`, { headers: { 'x-request-id': 'of the client' } });
    return [path, headers.get('x-request-id')] as const;
  });
  const ids = await Promise.all(named);
  // Envoy flushes its log when it ends.
  await envoy.process.stop();
  const lines = readFileSync(logFile, 'utf8').trimEnd().split('\n');
  const log = new Map(lines.map((line) => JSON.parse(line) as Line).map((line) => [line.path, line]));
  expect(log.get('/long')).toMatchObject({
    status: 200,
    frontend: 'west',
    pool: 'm-3.1',
    limits: 'stream-short',
    engine: expect.stringMatching(/^[ab]$/),
    plan: expect.stringMatching(/^[0-9a-f]{16}$/),
    reason: 'no-key',
    attempts: 1,
    prompt_tokens: '20',
    cached_tokens: '16',
    output_tokens: '11',
  });
  expect(Number(log.get('/long')!.ttft_ms)).toBeGreaterThanOrEqual(250);
  expect(log.get('/stuck')).toMatchObject({ flags: 'UT', details: 'upstream_per_try_idle_timeout' });
  expect(log.get('/retried')).toMatchObject({ attempts: 2, reason: 'retry', status: 200 });
  expect(log.get('/never')).toMatchObject({ status: 504 });
  expect(log.get('/whole')).toMatchObject({ limits: 'answer', ttft_ms: null, output_tokens: '11' });
  // No answer had come, but where it was to come from is known.
  expect(log.get('/waits')).toMatchObject({ flags: 'DC', engine: expect.stringMatching(/^[ab]$/) });
  expect(new Set(ids.map(([, id]) => id)).size).toBe(2);
  for (const [path, id] of ids) expect(log.get(path)).toMatchObject({ request_id: id });
  expect(log.has('/wardrop/ready')).toBe(false);
  expect(suspiciousLines(envoy.process.output)).toEqual([]);
});
