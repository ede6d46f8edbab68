import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { SYNC_FRONTEND_HEADER, SYNC_NODE_HEADER, SYNC_SNAPSHOT_HEADER } from '../../wire/names.js';
import { CertificateAuthority } from '../conformance/certificates.js';
import { chat, keysOf, OpenLoop } from './harness/load.js';
import { type EnvoyHandle, Mesh } from './harness/mesh.js';
import { type Attempt, answerOk, StubEngine } from './harness/stub-engine.js';
import { surgeByHalf } from './harness/surge.js';

type Answer = (response: ServerResponse) => void;

interface FleetJson {
  readonly frontends: readonly object[];
  readonly engines: readonly {
    readonly id: string;
    readonly replicas: readonly {
      readonly ready: boolean;
      readonly health: { readonly detail: string };
      /** Null where no page is read. */
      readonly load: { readonly running: { readonly problem?: { readonly reason: string } } } | null;
    }[];
  }[];
  readonly demands: readonly { readonly frontendId: string; readonly source: string }[];
}

interface PlanJson {
  readonly rows: readonly {
    readonly weights: readonly { readonly engineId: string; readonly weight: number }[];
  }[];
}

const RATE = 40;
const PAGE = 'vllm:num_requests_running 1\nvllm:num_requests_waiting 0\nvllm:kv_cache_usage_perc 0.1\n';
const goodPage: Answer = (response) => response.end(PAGE);
/** Many requests that are not there, and no token more than last time. */
const standingPage: Answer = (response) =>
  response.end(
    'vllm:num_requests_running 30\nvllm:num_requests_waiting 10\nvllm:generation_tokens_total 700\n' +
      'vllm:kv_cache_usage_perc 0.9\n',
  );
const goodHealth: Answer = (response) => response.end();
const hanging: Answer = () => {};

const engines = ['a', 'b', 'c'].map((id) => new StubEngine(id));
const authority = new CertificateAuthority();
const { certificate: cert, key } = authority.issue('engines.example');
const client = authority.issue('client');
const secure = new StubEngine('secure', {
  ...{ cert, key, ca: authority.certificate, requestCert: true },
  minVersion: 'TLSv1.3',
});
const failing: Answer = (response) => {
  response.statusCode = 500;
  response.end();
};
/** What engine a says on its pages, and the others on theirs. */
let page = goodPage;
let otherPages = goodPage;
let health = goodHealth;
/** How long engine a takes for an answer. */
let answerMs = 0;
let mesh: Mesh;
let east: EnvoyHandle;
let url: string;
let load: OpenLoop;
let replicaFile: string;

beforeAll(async () => {
  for (const [at, engine] of engines.entries()) {
    engine.behaviour = (request, response) => {
      if (request.path === '/metrics') (at === 0 ? page : otherPages)(response);
      else if (request.path === '/healthy') (at === 0 ? health : goodHealth)(response);
      else if (at === 0) setTimeout(answerOk, answerMs, request, response);
      else answerOk(request, response);
    };
    await engine.start();
  }
  await secure.start();
  mesh = await Mesh.start({
    engines: [
      ...engines.map(({ name, address }) => ({
        id: name,
        region: 'west',
        models: ['demo-8b'],
        profile: 'p',
        ...(name === 'b' ? { discovery: { file: 'replicas.txt' } } : { endpoints: [address] }),
        metrics: { kind: 'vllm' },
        healthPath: '/healthy',
      })),
      {
        id: secure.name,
        region: 'west',
        models: ['demo-secure'],
        profile: 'p',
        endpoints: [secure.address],
        healthPath: '/healthy',
        tls: { sni: 'engines.example', caFile: 'ca.pem', certFile: 'client.pem', keyFile: 'client-key.pem' },
        auth: { valueFile: 'authorization.txt' },
      },
    ],
    rttMs: Object.fromEntries(['west', 'east'].map((id) => [id, { a: 1, b: 1, c: 1, secure: 1 }])),
    profiles: { p: { requestsPerSecond: 50 } },
    demand: Object.fromEntries(
      ['west', 'east'].map((id) => [id, { models: { 'demo-8b': { requestsPerSecond: RATE } } }]),
    ),
    files: {
      'replicas.txt': `${engines[1]!.address}\n`,
      'ca.pem': authority.certificate.toString(),
      'client.pem': client.certificate.toString(),
      'client-key.pem': client.key.toString(),
      'authorization.txt': 'Bearer 100%\n',
    },
  });
  replicaFile = join(mesh.folder, 'replicas.txt');
  const west = await mesh.startEnvoy('west');
  east = await mesh.startEnvoy('east');
  url = west.url;
  load = new OpenLoop(url, RATE, keysOf(100));
  await mesh.eventually('2 s of requests', () => load.results.length > 2 * RATE);
});

afterAll(async () => {
  east?.process.signal('SIGCONT');
  await mesh?.stop();
  await Promise.all([...engines, secure].map((engine) => engine.kill()));
});

it('an engine that wants TLS 1.3, a certificate and credentials is probed and served with them, whatever the client sends', async () => {
  const isOurs = ({ headers }: Attempt) => headers.authorization === 'Bearer 100%';
  await mesh.eventually('a probe', () => secure.attempts.some(({ path }) => path === '/healthy'));
  for (let sent = 0; sent < 5; sent++) {
    const headers = { authorization: "Bearer client's" };
    expect((await chat(url, { model: 'demo-secure', headers })).status).toBe(200);
  }
  expect(secure.requests).toHaveLength(5);
  expect(secure.attempts.every(isOurs)).toBe(true);
});

it('a surge by half at 40 requests/s is planned for within 3 s', async () => {
  const results = await surgeByHalf(mesh, { frontendId: 'west', url, requestsPerSecond: RATE, load });
  expect(results.filter(({ status }) => status !== 200)).toEqual([]);
});

it('no source that freezes or says nonsense, and no failure of all pages, costs a request or spoils the plan, and the admin view tells', async () => {
  east.process.signal('SIGSTOP');

  page = (response) => response.end('vllm:num_requests_running many\n\0{{{');
  await seen('the garbled page', async () => (await problemOfA()) === 'not a valid number');
  page = hanging;
  await seen('the hanging page', async () => /no answer/.test((await problemOfA()) ?? ''));
  page = otherPages = failing;
  await seen('that all pages fail', async () => {
    const problems = (await replicas()).flatMap(({ load }) => load?.running.problem?.reason ?? []);
    return problems.length === engines.length && problems.every((reason) => reason === 'status 500');
  });
  page = standingPage;
  otherPages = goodPage;
  answerMs = 300;

  health = failing;
  await seen('the failing health page', async () => (await replicaOfA()).health.detail === 'status 500');
  health = hanging;
  await seen('the hanging health page', async () => /no answer/.test((await replicaOfA()).health.detail));
  health = goodHealth;
  expect((await replicaOfA()).ready).toBe(true);

  writeFileSync(replicaFile, 'no address\n');
  await seen('the garbled file of replicas', () => isAlarmed('discovery:b'));
  rmSync(replicaFile);
  await seen('the missing file of replicas', () => isAlarmed('discovery:b', /ENOENT/));
  writeFileSync(replicaFile, `${engines[1]!.address}\n`);

  const config = readFileSync(mesh.configFile);
  writeFileSync(mesh.configFile, config.subarray(0, config.length / 2));
  await seen('half of a configuration', () => isAlarmed('config'));
  writeFileSync(mesh.configFile, config);
  await seen('the good configuration', async () => !(await isAlarmed('config')));

  const [node] = (await mesh.api<{ envoys: { nodeId: string }[] }>('/v1/envoys')).envoys;
  const nonsense = await fetch(`${mesh.syncUrl}/v1/sync`, {
    method: 'POST',
    headers: {
      [SYNC_FRONTEND_HEADER]: 'west',
      [SYNC_NODE_HEADER]: node!.nodeId,
      [SYNC_SNAPSHOT_HEADER]: '0',
    },
    body: Buffer.alloc(200, 0xff),
  });
  expect(nonsense.status).toBe(400);
  await seen('the garbled report', async () => {
    const metrics = await (await fetch(`${mesh.adminUrl}/metrics`)).text();
    return /^wardrop_sync_calls_total\{status="400"\} 1$/m.test(metrics);
  });

  await seen('the page that stands still', async () => /stands still/.test((await problemOfA()) ?? ''));
  await seen('the silent frontend', () => isAlarmed('frontend-silent:east'));
  const { demands, frontends } = await mesh.api<FleetJson>('/v1/fleet');
  expect(frontends[0]).toMatchObject({ networkSource: 'rttMs' });
  expect(demands.find(({ frontendId }) => frontendId === 'west')!.source).toBe('measured');

  const results = await load.stop();
  expect(results.length).toBeGreaterThan(200);
  expect(results.filter(({ status }) => status !== 200)).toEqual([]);
});

/** Waits until the admin view shows what is wrong; the plan is whole then. */
async function seen(what: string, condition: () => Promise<boolean>): Promise<void> {
  await mesh.eventually(`${what} to show`, condition, 12_000);
  const { rows } = await mesh.api<PlanJson>('/v1/plan');
  expect(rows).toHaveLength(4);
  for (const { weights } of rows) {
    expect(weights.reduce((sum, { weight }) => sum + weight, 0)).toBeCloseTo(1, 6);
    expect(weights.every(({ engineId }) => ['a', 'b', 'c', 'secure'].includes(engineId))).toBe(true);
  }
}

async function replicas() {
  const { engines: all } = await mesh.api<FleetJson>('/v1/fleet');
  return all.flatMap((engine) => engine.replicas);
}

async function replicaOfA() {
  const { engines: all } = await mesh.api<FleetJson>('/v1/fleet');
  return all.find(({ id }) => id === 'a')!.replicas[0]!;
}

async function problemOfA(): Promise<string | undefined> {
  return (await replicaOfA()).load?.running.problem?.reason;
}

async function isAlarmed(alarm: string, message = /./): Promise<boolean> {
  const { alarms } = await mesh.api<{ alarms: { id: string; message: string }[] }>('/v1/alarms');
  return alarms.some(
    ({ id, message: text }) => (id === alarm || id.startsWith(`${alarm}:`)) && message.test(text),
  );
}
