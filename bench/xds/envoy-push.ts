import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, createServer as createHttpServer, get } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { INLINE_SNAPSHOT_VERSION, KEY_HEADER } from '../../wire/names.js';
import { encodeSnapshot } from '../../wire/snapshot-writer.js';
import { readWasmModule } from '../../xds-server/cli/package-files.js';
import { engineStates } from '../../xds-server/fleet/testing/engine-states.js';
import { buildSnapshotView } from '../../xds-server/plan/snapshot-view.js';
import {
  buildBootstrap,
  buildResources,
  frontendOf,
  type Steering,
  XdsServer,
} from '../../xds-server/xds/index.js';
import { runningNs } from '../filter/cpu.js';
import { quantile } from '../filter/statistics.js';
import { fleetOf, weightsAt } from './fleet.js';

/** What one push of weights does to an Envoy with one worker that serves requests meanwhile. */
export interface EnvoyPushResult {
  readonly policy: Steering;
  readonly endpoints: number;
  /** CPU of Envoy's threads per push, over what they use anyway: how long a thread is busy with it. */
  readonly mainCpuMs: number;
  readonly workerCpuMs: number;
  /** Of requests without and with pushes. */
  readonly quietP99Ms: number;
  readonly p99Ms: number;
  readonly quietMaxMs: number;
  readonly maxMs: number;
}

export interface EnvoyPushOptions {
  readonly endpoints: number;
  readonly steering: Steering;
  readonly pushes: number;
}

const PUSH_PERIOD_MS = 100;
const CONNECTIONS = 4;
const silent = { info() {}, warn() {}, error() {} };

export async function measureEnvoyPush(options: EnvoyPushOptions): Promise<EnvoyPushResult> {
  const binary = process.env.ENVOY_BIN;
  if (!binary) throw new Error('ENVOY_BIN is not set; `npm run bench` finds or fetches Envoy');
  const closers: (() => unknown)[] = [];
  try {
    const engines = await listenOnMany(options.endpoints, closers);
    const fleet = fleetOf({ frontends: 1, clusters: 1, endpoints: options.endpoints }, (i) => engines[i]!);
    const [listen, admin] = await freeAddresses(2);
    const frontend = { ...fleet.frontends[0]!, listen: listen! };
    const ours = { ...fleet, frontends: [frontend] };
    const server = new XdsServer({
      listen: '127.0.0.1:0',
      resolveFrontend: (node) => frontendOf(node, [frontend]),
      log: silent,
    });
    const xds = await server.start();
    closers.push(() => server.stop());
    const snapshot = snapshotOf(ours, frontend.id);
    const wasmModule = readWasmModule();
    const push = async (turn: number) => {
      server.setResources(
        frontend.id,
        buildResources({
          fleet: ours,
          frontendId: frontend.id,
          plan: weightsAt(ours, turn),
          engines: engineStates(ours),
          wasmModule,
          filter: { frontendId: frontend.id, snapshot },
          steering: options.steering,
        }),
      );
      await server.settled(frontend.id, 10_000);
    };
    await push(0);

    const folder = mkdtempSync(join(tmpdir(), 'wardrop-bench-'));
    closers.push(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, 'envoy.json');
    const target = { host: '127.0.0.1', port: Number(xds.split(':')[1]) };
    writeFileSync(
      file,
      JSON.stringify(buildBootstrap({ frontend, nodeId: 'bench', xds: target, sync: target, admin: admin! })),
    );
    const envoy = spawn(binary, [
      '-c',
      file,
      '--concurrency',
      '1',
      '--disable-hot-restart',
      '--log-level',
      'error',
    ]);
    closers.push(() => envoy.kill('SIGKILL'));
    await untilServed(`http://${listen}/`);

    let turn = 0;
    const pushAll = async () => {
      for (let i = 0; i < options.pushes; i++) await Promise.all([push(++turn), sleep(PUSH_PERIOD_MS)]);
    };
    const rest = () => sleep(options.pushes * PUSH_PERIOD_MS);
    const [idle, pushed] = [await cpuOf(envoy.pid!, rest), await cpuOf(envoy.pid!, pushAll)];
    const load = new Load(`http://${listen}/`);
    closers.push(() => load.stop());
    await load.during(() => sleep(500));
    const quiet = await load.during(rest);
    const disturbed = await load.during(pushAll);
    return {
      policy: options.steering,
      endpoints: options.endpoints,
      mainCpuMs: (pushed.mainNs - idle.mainNs) / options.pushes / 1e6,
      workerCpuMs: (pushed.workerNs - idle.workerNs) / options.pushes / 1e6,
      quietP99Ms: quantile(quiet, 0.99),
      p99Ms: quantile(disturbed, 0.99),
      quietMaxMs: quiet.at(-1)!,
      maxMs: disturbed.at(-1)!,
    };
  } finally {
    for (const close of closers.reverse()) await close();
  }
}

interface ThreadsCpu {
  readonly mainNs: number;
  readonly workerNs: number;
}

async function cpuOf(pid: number, during: () => Promise<unknown>): Promise<ThreadsCpu> {
  const before = threads(pid);
  await during();
  const after = threads(pid);
  return { mainNs: after.mainNs - before.mainNs, workerNs: after.workerNs - before.workerNs };
}

/** CPU of Envoy's main thread and of its workers so far. */
function threads(pid: number): ThreadsCpu {
  let workerNs = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const name = readFileSync(`/proc/${pid}/task/${thread}/comm`, 'utf8');
    if (name.startsWith('wrk:')) workerNs += spentBy(pid, thread);
  }
  return { mainNs: spentBy(pid, String(pid)), workerNs };
}

function spentBy(pid: number, thread: string): number {
  return runningNs(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8'));
}

/** A few connections that each ask again 2 ms after they were answered. */
class Load {
  #delays: number[] = [];
  #failed: unknown;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  #running = true;
  #key = 0;

  constructor(private readonly url: string) {
    for (let i = 0; i < CONNECTIONS; i++) void this.#ask();
  }

  /** How long requests took meanwhile, sorted milliseconds; throws when one of them has failed. */
  async during(work: () => Promise<unknown>): Promise<number[]> {
    this.#delays = [];
    await work();
    if (this.#failed !== undefined) throw new Error(`a request failed: ${this.#failed}`);
    return this.#delays.sort((a, b) => a - b);
  }

  async #ask(): Promise<void> {
    while (this.#running) {
      const startMs = performance.now();
      const status = await request(this.url, this.#agent, `key ${this.#key++}`).catch(String);
      if (status !== 200) this.#failed ??= status;
      this.#delays.push(performance.now() - startMs);
      await sleep(2);
    }
  }

  stop(): void {
    this.#running = false;
    this.#agent.destroy();
  }
}

function request(url: string, agent: Agent | undefined, key: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const options = { headers: { [KEY_HEADER]: key }, ...(agent && { agent }) };
    get(url, options, (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode!));
    }).once('error', reject);
  });
}

async function untilServed(url: string): Promise<void> {
  for (let i = 0; i < 300; i++) {
    if ((await request(url, undefined, 'first').catch(() => 0)) === 200) return;
    await sleep(100);
  }
  throw new Error(`Envoy does not serve ${url}`);
}

function snapshotOf(fleet: ReturnType<typeof fleetOf>, frontendId: string): Uint8Array {
  let start = 0;
  const row = weightsAt(fleet, 0).rows[0]!;
  const segments = row.weights.map(({ engineId, weight }) => {
    const segment = { start: Math.round(start * 2 ** 32), ownerId: engineId, backupId: null };
    start += weight;
    return segment;
  });
  const plan = {
    id: '0'.repeat(16),
    sequence: 1,
    createdAtMs: 0,
    rows: [{ ...row, demandRps: 1, segments, retryRatio: 0, shed: [] }],
    engines: [],
    objectiveSeconds: 0,
  };
  const engines = engineStates(fleet);
  const version = INLINE_SNAPSHOT_VERSION;
  return encodeSnapshot(
    buildSnapshotView({ plan, fleet, engines, frontendId, version, salt: 'bench', issuedAtMs: Date.now() }),
  );
}

/** One HTTP server that listens on many ports; their addresses. */
async function listenOnMany(count: number, closers: (() => unknown)[]): Promise<string[]> {
  const http = createHttpServer((_request, response) => response.end('ok'));
  const servers: Server[] = [];
  closers.push(() => {
    http.closeAllConnections();
    for (const server of servers) server.close();
  });
  for (let i = 0; i < count; i++) {
    const server = createServer((socket) => http.emit('connection', socket));
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  }
  return servers.map((server) => `127.0.0.1:${(server.address() as AddressInfo).port}`);
}

async function freeAddresses(count: number): Promise<string[]> {
  const closers: (() => unknown)[] = [];
  const addresses = await listenOnMany(count, closers);
  for (const close of closers) close();
  return addresses;
}
