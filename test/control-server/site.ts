import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { vi } from 'vitest';
import { SYNC_FRONTEND_HEADER, SYNC_NODE_HEADER, SYNC_SNAPSHOT_HEADER } from '../../wire/names.js';
import { decodeSnapshot } from '../../wire/snapshot-reader.js';
import type { SnapshotView } from '../../wire/snapshot-view.js';
import type { UsageReport } from '../../wire/usage-report.js';
import { encodeUsageReport } from '../../wire/usage-report-writer.js';
import { ControlServer } from '../../xds-server/control-server.js';
import { Optimizer } from '../../xds-server/optimizer/index.js';
import type { PlanSolver } from '../../xds-server/plan/make-plan.js';
import type { Lookup } from '../../xds-server/signals/discovery/lookup.js';
import { freePorts } from '../free-ports.js';
import { PATIENCE_MS } from '../patience.js';

const cleanups: (() => unknown)[] = [];
let areFaultsExpected = false;

/** Has it done after the present test, before what was asked for earlier. */
export function afterwards(cleanup: () => unknown): void {
  cleanups.push(cleanup);
}

/** For `afterEach` of every file that uses this one. What fails keeps nothing else from being done. */
export async function cleanUp(): Promise<void> {
  const errors: unknown[] = [];
  for (const cleanup of cleanups.splice(0).reverse()) {
    try {
      await cleanup();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw new AggregateError(errors, 'cleaning up failed');
}

/** A folder that is there during the present test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'wardrop-control-'));
  afterwards(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** From now on it is as late as `vi.setSystemTime` says, for the present test. */
export function holdClocks(): void {
  vi.useFakeTimers({ toFake: ['Date'] });
  // After any pause between two looks at the fleet, which would not end by a clock that stands still.
  const passed = vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 1_000);
  afterwards(() => {
    passed.mockRestore();
    vi.useRealTimers();
  });
}

/** An engine that is healthy until it is killed, or falls sick: then it is slow to say so. */
export async function startEngine(
  page = '',
): Promise<{ address: string; kill(): void; sicken(): void; probes: () => number }> {
  let probes = 0;
  let isSick = false;
  const server = createServer((request, response) => {
    probes++;
    if (isSick) setTimeout(() => response.writeHead(500).end(), 200);
    else response.end(request.url === '/metrics' ? page : '');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const kill = () => {
    server.closeAllConnections();
    server.close();
  };
  afterwards(kill);
  const sicken = () => {
    isSick = true;
  };
  const { port } = server.address() as AddressInfo;
  return { address: `127.0.0.1:${port}`, kill, sicken, probes: () => probes };
}

/** Faults of a control server's own are what the present test is about. */
export function expectFaults(): void {
  areFaultsExpected = true;
  afterwards(() => {
    areFaultsExpected = false;
  });
}

/** A control server that is stopped after the present test, which no fault of its own may have happened in. */
export async function startControlServer(
  configFile: string,
  solver?: PlanSolver,
  lookup?: Lookup,
): Promise<ControlServer> {
  const optimizer = new Optimizer();
  afterwards(() => optimizer.close());
  const server = await ControlServer.start({
    configFile,
    optimizer: solver ?? optimizer,
    questionSolver: optimizer,
    wasmModule: new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]),
    runFilter: () => ({ decision: {}, requestHeaders: new Map() }),
    log: pino({}, { write: () => undefined }),
    ...(lookup !== undefined && { lookup }),
  });
  const isExpected = areFaultsExpected;
  afterwards(async () => {
    const faults = server.alarms.list.filter(({ id }) => id.startsWith('fault:'));
    await server.stop();
    if (!isExpected && faults.length > 0) throw new Error(faults[0]!.message);
  });
  return server;
}

/** A folder with a configuration; control servers on it can be started one after the other. */
export class Site {
  readonly folder = temporaryFolder();
  readonly configFile = join(this.folder, 'fleet.yaml');
  readonly #ports: readonly number[];

  private constructor(ports: readonly number[]) {
    this.#ports = ports;
  }

  static async create(engines: Readonly<Record<string, string>>): Promise<Site> {
    const site = new Site(await freePorts(4));
    site.write(site.text(engines));
    return site;
  }

  get xds(): string {
    return `127.0.0.1:${this.#ports[0]}`;
  }

  get admin(): string {
    return `http://127.0.0.1:${this.#ports[2]}`;
  }

  text(engines: Readonly<Record<string, string>>, rps = 5): string {
    const [xds, sync, admin, frontend] = this.#ports.map((port) => `{listen: "127.0.0.1:${port}"}`);
    const list = Object.entries(engines).map(
      ([id, address]) => `- {id: ${id}, region: r, models: [m], profile: p, endpoints: ["${address}"]}`,
    );
    return [
      `server: {xds: ${xds}, sync: ${sync}, admin: ${admin}, stateFile: state.json}`,
      `frontends: [{id: f, region: r, ${frontend!.slice(1)}]`,
      'engines:',
      ...list,
      'profiles: {p: {requestsPerSecond: 10}}',
      `demand: {f: {requestsPerSecond: ${rps}}}`,
      '',
    ].join('\n');
  }

  write(text: string): void {
    writeFileSync(this.configFile, text);
  }

  start(solver?: PlanSolver, lookup?: Lookup): Promise<ControlServer> {
    return startControlServer(this.configFile, solver, lookup);
  }

  async get(path: string): Promise<{ status: number; body: unknown }> {
    const response = await fetch(`${this.admin}${path}`);
    return { status: response.status, body: await response.json() };
  }

  /** What a filter of the frontend would get now; undefined for 304 and 503. */
  async sync(held = 0, report: UsageReport = { vms: [] }): Promise<SnapshotView | undefined> {
    const response = await fetch(`http://127.0.0.1:${this.#ports[1]}/v1/sync`, {
      method: 'POST',
      headers: { [SYNC_NODE_HEADER]: 'n', [SYNC_FRONTEND_HEADER]: 'f', [SYNC_SNAPSHOT_HEADER]: String(held) },
      body: Buffer.from(encodeUsageReport(report)),
    });
    const bytes = new Uint8Array(await response.arrayBuffer());
    return response.status === 200 ? decodeSnapshot(bytes) : undefined;
  }
}

export async function planned(server: ControlServer): Promise<Record<string, number>> {
  const plan = await vi.waitUntil(() => server.plan, PATIENCE_MS);
  return Object.fromEntries(plan.rows[0]!.weights.map(({ engineId, weight }) => [engineId, weight]));
}

export function hasTwoEngines({ plan }: ControlServer): boolean {
  return plan?.rows[0]?.weights.length === 2;
}

export function readinessOf(view: SnapshotView | undefined): Record<string, boolean[]> {
  return Object.fromEntries(
    (view?.engines ?? []).map(({ id, replicas }) => [id, replicas.map(({ ready }) => ready)]),
  );
}
