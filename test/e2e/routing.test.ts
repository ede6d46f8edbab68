import { EventEmitter, once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Agent } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decisionOf } from '../../wire/decision.js';
import type { DecisionView } from '../../xds-server/admin/views/decision-view.js';
import { freePorts } from '../free-ports.js';
import { chat, keysOf, type Result } from './harness/load.js';
import { type EnvoyHandle, engineEntry, Mesh, suspiciousLines } from './harness/mesh.js';
import { post, postHttp2 } from './harness/post.js';
import { sleep } from './harness/process.js';
import { answerOk, StubEngine } from './harness/stub-engine.js';
import { tcpTimers } from './harness/tcp-timers.js';

const KEYS = keysOf(40);

describe('routing through a real Envoy', () => {
  const stubs = { a1: new StubEngine('a1'), a2: new StubEngine('a2'), b1: new StubEngine('b1') };
  /** Listens where no configuration points to. */
  const stranger = new StubEngine('stranger');
  let mesh: Mesh;
  let envoy: EnvoyHandle;

  beforeAll(async () => {
    await Promise.all([...Object.values(stubs), stranger].map((stub) => stub.start()));
    mesh = await Mesh.start({
      engines: [engineEntry('a', [stubs.a1.address, stubs.a2.address]), engineEntry('b', [stubs.b1.address])],
      rttMs: { west: { a: 2, b: 2 } },
      profiles: { stub: { requestsPerSecond: 1_000 } },
      demand: { west: { requestsPerSecond: 1_500, promptTokens: 100, outputTokens: 32 } },
    });
    envoy = await mesh.startEnvoy('west', { concurrency: 2 });
  });

  afterAll(async () => {
    await mesh?.stop();
    await Promise.all([...Object.values(stubs), stranger].map((stub) => stub.kill()));
  });

  it('sends a conversation to the same replica from either worker and after a restart of Envoy', async () => {
    const before = await homes(envoy);
    expect(new Set(before.values()).size).toBe(3);

    const other = await mesh.startEnvoy('west', {
      concurrency: 1,
      listen: `127.0.0.1:${(await freePorts(1))[0]}`,
    });
    expect(await homes(other)).toEqual(before);

    await envoy.process.stop();
    envoy = await mesh.startEnvoy('west', { concurrency: 2 });
    expect(await homes(envoy)).toEqual(before);
  });

  it('explains the decision in a response header that names the reason, the engine and the plan', async () => {
    // A worker hears of a plan a moment after it is made.
    const { result, id } = await mesh.eventually('the plan in force in an answer', async () => {
      const { id } = await mesh.api<{ id: string }>('/v1/plan');
      const result = await chat(envoy.url, { key: KEYS[0]! });
      return decisionOf(result.headers).plan === id && { result, id };
    });
    const engine = String(result.headers['x-stub'])[0]!;
    expect(result.headers['x-wardrop']).toBe(`planned; engine="${engine}"; plan="${id}"`);
  });

  it('decides in a dry run as on the wire', async () => {
    for (const key of KEYS.slice(0, 10)) {
      const { headers } = await chat(envoy.url, { key, later: true });
      const response = await fetch(`${mesh.adminUrl}/v1/decide`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          frontend: 'west',
          headers: [['x-session-id', key]],
          body: '{"model":"demo-8b"}',
        }),
      });
      const { engine, endpoints } = (await response.json()) as DecisionView;
      expect({ key, engine, address: endpoints[0]!.address }).toEqual({
        key,
        engine: decisionOf(headers).engine,
        address: stubs[String(headers['x-stub']) as keyof typeof stubs].address,
      });
    }
    const told = await mesh.wardrop(
      ...['decide', '-c', mesh.configFile, '--frontend', 'west', '--header', `x-session-id: ${KEYS[0]}`],
    );
    expect(told).toMatch(/^pool {7}demo-8b\nengine {5}[ab] \(owns .*\nreason {5}planned\nendpoints {2}127/);
  });

  it("lets a client's own steering headers change nothing", async () => {
    const expected = await homes(envoy);
    const spoofs: Record<string, string>[] = [
      { 'x-gateway-destination-endpoint': stranger.address },
      { 'X-Gateway-Destination-Endpoint': `${stranger.address},${stubs.b1.address}` },
      { 'x-wardrop-cluster': 'wardrop-sync' },
      { 'x-wardrop-cluster': 'wardrop-xds' },
      { 'x-wardrop-cluster': 'nowhere' },
      { 'x-envoy-max-retries': '7', 'x-envoy-retry-on': '5xx' },
      { 'x-envoy-upstream-rq-timeout-ms': '1', 'x-envoy-upstream-rq-per-try-timeout-ms': '1' },
      { 'x-envoy-original-dst-host': stranger.address },
    ];
    for (const headers of spoofs) {
      for (const key of KEYS.slice(0, 6)) {
        const result = await chat(envoy.url, { key, headers, later: true });
        expect([headers, result.status, result.headers['x-stub']]).toEqual([headers, 200, expected.get(key)]);
      }
    }
    expect(stranger.attempts).toEqual([]);
  });

  it('passes requests on without its own headers and with the body untouched', async () => {
    const trace = {
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      tracestate: 'a=b',
      baggage: 'k=v',
      'x-client-request-id': 'c1',
    };
    for (const stream of [false, true]) {
      const headers = { 'x-custom': 'kept', ...trace };
      const result = await chat(envoy.url, { key: 'untouched', stream, headers });
      const stub = Object.values(stubs).find((candidate) => candidate.name === result.headers['x-stub']);
      const attempt = stub?.requests.at(-1);
      expect(attempt?.headers).toMatchObject(headers);
      const ours = Object.keys(attempt?.headers ?? {}).filter((name) =>
        /wardrop|x-gateway|x-envoy-max/.test(name),
      );
      expect(ours).toEqual([]);
      expect(attempt?.body).toContain('"content":"hello"');
    }
  });

  it('takes a body without a byte for none, in chunks and over HTTP/2', async () => {
    const [key] = KEYS;
    const { headers } = await chat(envoy.url, { key: key!, later: true });
    for (const send of [post, postHttp2]) {
      const answer = await send(`${envoy.url}/v1/responses/resp_1/cancel`, {
        pieces: [],
        headers: { 'x-session-id': key! },
        isChunked: true,
      });
      expect([answer.status, answer.headers['x-stub']]).toEqual([200, headers['x-stub']]);
    }
  });

  it("passes an engine's refusal on as it is, advice and all, and tries it nowhere else", async () => {
    const attempts = () => Object.values(stubs).reduce((sum, stub) => sum + stub.requests.length, 0);
    for (const status of [429, 529]) {
      for (const stub of Object.values(stubs)) {
        stub.behaviour = (_request, response) => {
          response.writeHead(status, { 'retry-after': '7', 'x-ratelimit-remaining-requests': '0' });
          response.end('{"error":{"message":"busy"}}');
        };
      }
      const before = attempts();
      const answer = await post(`${envoy.url}/v1/chat/completions`, {
        pieces: [Buffer.from('{"model":"demo-8b"}')],
      });
      expect([answer.status, answer.body]).toEqual([status, '{"error":{"message":"busy"}}']);
      expect(answer.headers).toMatchObject({ 'retry-after': '7', 'x-ratelimit-remaining-requests': '0' });
      expect(attempts() - before).toBe(1);
    }
    for (const stub of Object.values(stubs)) stub.behaviour = answerOk;
  });

  it('has TCP probe its connections to engines, so that one that is silent is not forgotten on the way', async () => {
    let answer = () => {};
    const isAnswered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const all = Object.values(stubs);
    for (const stub of all) {
      stub.behaviour = async (request, response) => {
        await isAnswered;
        answerOk(request, response);
      };
    }
    const result = chat(envoy.url, { key: KEYS[0]! });
    const ports = all.map(({ address }) => Number(address.split(':')[1]));
    await mesh.eventually('a timer of probes at each connection', () => {
      const timers = tcpTimers(envoy.process.pid, ports);
      return timers.length > 0 && timers.every((timer) => timer === 'keepalive');
    });
    answer();
    expect((await result).status).toBe(200);
    for (const stub of all) stub.behaviour = answerOk;
  });

  it("opens WebSockets to the conversation's engine", async () => {
    const [key] = KEYS;
    const { headers } = await chat(envoy.url, { key: key!, later: true });
    const request = httpRequest(`${envoy.url}/v1/realtime`, {
      headers: { connection: 'upgrade', upgrade: 'websocket', 'x-session-id': key },
    });
    request.end();
    const [response, socket] = (await once(request, 'upgrade')) as [IncomingMessage, Socket];
    expect(response.headers['x-stub']).toBe(headers['x-stub']);
    socket.write('hello');
    expect(String((await once(socket, 'data'))[0])).toBe('hello');
    socket.destroy();
  });

  it('lets conversations begin where there is room, and every worker and Envoy follow', async () => {
    const [port] = await freePorts(1);
    const other = await mesh.startEnvoy('west', { concurrency: 2, listen: `127.0.0.1:${port}` });
    const begun = await mesh.eventually('conversations that are placed', async () => {
      const results = await beginBesideBusyEngine(envoy, [stubs.a1, stubs.a2]);
      return results.some(({ headers }) => decisionOf(headers).reason === 'placed') && results;
    });
    expect(begun.every(({ status }) => status === 200)).toBe(true);
    const homes = new Map(begun.map(({ key, headers }) => [key, String(headers['x-stub'])]));
    const follow = async (handle: EnvoyHandle) => {
      const agent = new Agent({ pipelining: 0 });
      const turns = await Promise.all(
        [...homes.keys(), ...homes.keys()].map((key) => chat(handle.url, { key, agent, later: true })),
      );
      await agent.close();
      return turns.every(({ key, headers }) => headers['x-stub'] === homes.get(key));
    };
    await mesh.eventually('both workers to follow', () => follow(envoy));
    await mesh.eventually('another Envoy to follow', () => follow(other));
  });

  it('leaves no warning about unknown fields, rejected updates or failed VMs in the log of Envoy', () => {
    for (const handle of mesh.envoys) expect(suspiciousLines(handle.process.output)).toEqual([]);
  });
});

/** Begins conversations one after the other while two engines keep their answers back. */
async function beginBesideBusyEngine(envoy: EnvoyHandle, busy: readonly StubEngine[]): Promise<Result[]> {
  const gate = new EventEmitter().setMaxListeners(0);
  for (const stub of busy) {
    stub.behaviour = async (request, response) => {
      await once(gate, 'open');
      answerOk(request, response);
    };
  }
  const agent = new Agent({ pipelining: 0 });
  const pending = [];
  for (const key of keysOf(60, `begun-${Date.now()}`)) {
    pending.push(chat(envoy.url, { key, agent }));
    await sleep(5);
  }
  await sleep(100);
  for (const stub of busy) stub.behaviour = answerOk;
  gate.emit('open');
  const results = await Promise.all(pending);
  await agent.close();
  return results;
}

/** Which stub serves each key; every key is asked several times on connections of their own. */
async function homes(envoy: EnvoyHandle): Promise<Map<string, string>> {
  const map = new Map<string, string>();
  for (let round = 0; round < 6; round++) {
    const agent = new Agent({ connections: 4, pipelining: 1 });
    const results = await Promise.all(KEYS.map((key) => chat(envoy.url, { key, agent, later: true })));
    for (const { key, status, headers, body } of results) {
      expect([status, body]).toEqual([200, expect.any(String)]);
      const stub = String(headers['x-stub']);
      expect([key, map.get(key) ?? stub]).toEqual([key, stub]);
      map.set(key, stub);
    }
    await agent.close();
  }
  return map;
}
