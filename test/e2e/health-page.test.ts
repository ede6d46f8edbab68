import { afterAll, beforeAll, expect, it } from 'vitest';
import { keysOf, OpenLoop } from './harness/load.js';
import { engineEntry, Mesh } from './harness/mesh.js';
import { StubEngine } from './harness/stub-engine.js';

const HEALTH_PATH = '/v2/health/ready';

const stubs = [new StubEngine('a1'), new StubEngine('a2'), new StubEngine('b')] as const;
let mesh: Mesh;
let load: OpenLoop;

beforeAll(async () => {
  await Promise.all(stubs.map((stub) => stub.start()));
  const [a1, a2, b] = stubs.map(({ address }) => address);
  mesh = await Mesh.start({
    engines: [
      engineEntry('a', [a1!, a2!], { healthPath: HEALTH_PATH }),
      engineEntry('b', [b!], { healthPath: HEALTH_PATH }),
    ],
    rttMs: { west: { a: 2, b: 2 } },
    profiles: { stub: { requestsPerSecond: 40 } },
    demand: { west: { requestsPerSecond: 40, promptTokens: 100, outputTokens: 32 } },
  });
  load = new OpenLoop((await mesh.startEnvoy('west')).url, 40, keysOf(200));
});

afterAll(async () => {
  await load?.stop();
  await mesh?.stop();
  await Promise.all(stubs.map((stub) => stub.kill()));
});

it('an engine that is healthy and answers 4xx, while others of its pool serve, raises an alarm', async () => {
  const serve = stubs[2].behaviour;
  stubs[2].behaviour = (request, response) => {
    if (request.path === HEALTH_PATH) return serve(request, response);
    response.statusCode = 429;
    response.end();
  };
  const alarm = await mesh.eventually('the alarm', async () => {
    const { alarms } = await mesh.api<{ alarms: readonly { id: string; message: string }[] }>('/v1/alarms');
    return alarms.find(({ id }) => id === 'engine-rejects:b');
  });
  expect(alarm.message).toMatch(
    /^engine b answers 4xx to \d+ % of requests, others of pool demo-8b serve theirs; /,
  );
  stubs[2].behaviour = serve;
});

it('an engine that is healthy and lacks the model gets hardly a request, and clients have their answers from others', async () => {
  await mesh.eventually('requests at the engine', () => stubs[2].requests.length > 40);
  const serve = stubs[2].behaviour;
  stubs[2].behaviour = (request, response) => {
    if (request.path === HEALTH_PATH) return serve(request, response);
    response.statusCode = 404;
    response.end();
  };
  const since = load.results.length;
  await mesh.eventually('two hundred answers in a row', () => {
    const latest = load.results.slice(since).slice(-200);
    return latest.length === 200 && latest.every(({ status }) => status === 200);
  });
  expect(load.results.slice(since).map(({ status }) => status)).toContain(404);
  for (const { headers } of stubs.flatMap(({ requests }) => requests))
    expect(headers).not.toHaveProperty('x-envoy-retriable-status-codes');
  stubs[2].behaviour = serve;
});

it('a replica that is healthy and hangs is named and left out, and serves again as soon as it answers what it was stuck with', async () => {
  const serve = stubs[1].behaviour;
  // What takes less time than from one report to the next is not seen to end at a replica.
  stubs[1].behaviour = (request, response) => {
    if (request.path === HEALTH_PATH) return serve(request, response);
    setTimeout(() => void serve(request, response), 1_000);
  };
  const usual = stubs[1].requests.length + 60;
  await mesh.eventually('requests at the replica', () => stubs[1].requests.length > usual);
  const held: (() => void)[] = [];
  stubs[1].behaviour = (request, response) => {
    if (request.path === HEALTH_PATH) return serve(request, response);
    held.push(() => void serve(request, response));
  };
  const isAlarmed = async () => {
    const { alarms } = await mesh.api<{ alarms: readonly { id: string }[] }>('/v1/alarms');
    return alarms.some(({ id }) => id === `replica-stuck:${stubs[1].address}`);
  };
  await mesh.eventually('the alarm', isAlarmed);
  expect(held.length).toBeGreaterThanOrEqual(8);
  await mesh.eventually('a hundred answers', () => {
    const { length } = stubs[0].requests;
    return (
      stubs[0].requests.slice(-100).every(({ atMs }) => atMs > stubs[1].requests.at(-1)!.atMs) && length > 100
    );
  });
  stubs[1].behaviour = serve;
  for (const answer of held.splice(0)) answer();
  await mesh.eventually('the end of the alarm', async () => !(await isAlarmed()));
  const before = stubs[1].requests.length;
  await mesh.eventually('requests at the replica', () => stubs[1].requests.length > before + 20);
});

it('a replica that says 400 on its health page and to requests, as Triton does without its model, gets no more of them', async () => {
  await mesh.eventually('requests at the replica', () => stubs[1].requests.length > 40);
  stubs[1].behaviour = (_request, response) => {
    response.statusCode = 400;
    response.end();
  };
  const since = load.results.length;
  await mesh.eventually('the replica to be out', async () => {
    const { engines } = await mesh.api<FleetJson>('/v1/fleet');
    return engines[0]!.replicas.some(({ ready }) => !ready);
  });
  await mesh.eventually('a hundred answers in a row', () => {
    const latest = load.results.slice(since).slice(-100);
    return latest.length === 100 && latest.every(({ status }) => status === 200);
  });
});

interface FleetJson {
  readonly engines: readonly { readonly replicas: readonly { readonly ready: boolean }[] }[];
}
