import { request } from 'undici';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type EnvoyHandle, Mesh, suspiciousLines } from './harness/mesh.js';
import { sleep } from './harness/process.js';
import { type Behaviour, StubEngine } from './harness/stub-engine.js';

const stubs = ['a', 'b', 'c', 'd'].map((name) => new StubEngine(name));
let mesh: Mesh;
let envoy: EnvoyHandle;

const token = 'data: {"choices":[{"delta":{"content":"x"}}]}\n\n';
const error = `data: ${JSON.stringify({ error: { type: 'InternalServerError', code: 500 } })}\n\n`;

/** A stream that begins well, and what comes of it. */
const stream =
  (end: (response: Parameters<Behaviour>[1]) => void): Behaviour =>
  async (_attempt, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    response.write(token);
    await sleep(20);
    end(response);
  };
const serves = stream((response) => response.end(`${token}data: [DONE]\n\n`));
const breaksOff = stream((response) => response.destroy());
/** Nobody sees the end but by leaving. */
const goesOn = stream(() => {});
const endsInError = stream((response) => response.end(`${error}data: [DONE]\n\n`));

interface Alarms {
  readonly alarms: readonly { readonly id: string; readonly message: string }[];
}

/** Asks for a stream. Whether it was whole and told no error; a client that leaves does so with the first token. */
async function ask(leaves = false): Promise<{ engine: string; isGood: boolean }> {
  const leaving = new AbortController();
  const { headers, body } = await request(`${envoy.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'hello' }] }),
    signal: leaving.signal,
  });
  const engine = String(headers['x-stub']);
  let text = '';
  try {
    for await (const piece of body) {
      text += String(piece);
      if (leaves) leaving.abort();
    }
  } catch {
    return { engine, isGood: false };
  }
  return { engine, isGood: text.includes('[DONE]') && !text.includes('"error"') };
}

/** A hundred of them, eight at a time. */
async function askMany(leaves = false): Promise<{ lost: number; engines: Map<string, number> }> {
  const engines = new Map<string, number>();
  let left = 100;
  let lost = 0;
  const asking = async () => {
    while (left-- > 0) {
      const { engine, isGood } = await ask(leaves);
      engines.set(engine, (engines.get(engine) ?? 0) + 1);
      if (!isGood) lost++;
    }
  };
  await Promise.all(Array.from({ length: 8 }, asking));
  return { lost, engines };
}

const failing = async () =>
  (await mesh.api<Alarms>('/v1/alarms')).alarms.filter(({ id }) => id.startsWith('engine-failing:'));

beforeAll(async () => {
  for (const stub of stubs) {
    stub.behaviour = serves;
    await stub.start();
  }
  mesh = await Mesh.start({
    engines: stubs.map(({ name, address }) => ({
      id: name,
      region: 'r',
      models: ['m'],
      profile: 'stub',
      endpoints: [address],
      slowStartSeconds: 0,
    })),
    rttMs: { west: Object.fromEntries(stubs.map(({ name }) => [name, 2])) },
    profiles: { stub: { requestsPerSecond: 100 } },
    demand: { west: { requestsPerSecond: 100 } },
  });
  envoy = await mesh.startEnvoy('west', { concurrency: 1 });
});

afterAll(async () => {
  await mesh?.stop();
  await Promise.all(stubs.map((stub) => stub.kill()));
});

it('ejects nobody for clients that leave amid their answers', async () => {
  expect((await askMany()).lost).toBe(0);
  for (const stub of stubs) stub.behaviour = goesOn;
  expect((await askMany(true)).lost).toBe(100);
  for (const stub of stubs) stub.behaviour = serves;
  const { lost, engines } = await askMany();
  expect(lost).toBe(0);
  expect([...engines.keys()].sort()).toEqual(['a', 'b', 'c', 'd']);
  const stats = await (await fetch(`${envoy.adminUrl}/stats?filter=wardrop_.*_ejections`)).text();
  expect(stats).not.toMatch(/: [1-9]/);
  expect(await failing()).toEqual([]);
});

it.each([
  ['breaks off its answers behind their first tokens', 'a', breaksOff],
  ['ends its streams in errors of its own', 'b', endsInError],
])(
  'soon sends no answers to an engine that %s, tells it, and goes back when it is well',
  async (_, name, behaviour) => {
    const stub = stubs.find((each) => each.name === name)!;
    stub.behaviour = behaviour;
    const [alarm] = await mesh.eventually(
      'the alarm',
      async () => {
        await askMany();
        const alarms = await failing();
        return alarms.length > 0 && alarms;
      },
      60_000,
    );
    expect(alarm!.id).toBe(`engine-failing:${name}`);
    expect(alarm!.message).toContain(`engine ${name} begins answers and ends none`);
    const served = stub.requests.length;
    await mesh.eventually('all answers to be whole', async () => (await askMany()).lost === 0, 60_000);
    // Those under way when it was left out.
    expect(stub.requests.length - served).toBeLessThan(100);

    stub.behaviour = serves;
    await mesh.eventually(
      'its share to be back',
      async () => ((await askMany()).engines.get(name) ?? 0) >= 15 && (await failing()).length === 0,
      120_000,
    );
    expect(suspiciousLines(envoy.process.output)).toEqual([]);
  },
);
