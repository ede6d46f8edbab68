import { mkdtempSync, readFileSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, createServer as createNetServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pino } from 'pino';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { id64 } from '../wire/hash.js';
import { SYNC_FRONTEND_HEADER, SYNC_NODE_HEADER, SYNC_SNAPSHOT_HEADER } from '../wire/names.js';
import { decodeSnapshot } from '../wire/snapshot-reader.js';
import type { SnapshotView } from '../wire/snapshot-view.js';
import { noEngineUsage, noPoolUsage, noVmUsage, type UsageReport } from '../wire/usage-report.js';
import { encodeUsageReport } from '../wire/usage-report-writer.js';
import { run } from './cli/run.js';
import type { Changed } from './control/plan-history.js';
import type { PlanSolver } from './control/planner.js';
import type { WhatIf } from './control/questions/what-if.js';
import type { Replayed } from './control/recording/replay.js';
import { ControlServer } from './control-server.js';
import { WardropError } from './errors.js';
import { Optimizer } from './optimizer/index.js';
import { type Lookup, systemLookup } from './signals/discovery/lookup.js';
import { DnsServer } from './signals/testing/dns-server.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** An engine that is healthy until it is killed. */
async function startEngine(page = ''): Promise<{ address: string; kill(): void; probes: () => number }> {
  let probes = 0;
  const server: Server = createServer((request, response) => {
    probes++;
    response.end(request.url === '/metrics' ? page : '');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const kill = () => {
    server.closeAllConnections();
    server.close();
  };
  cleanups.push(kill);
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, kill, probes: () => probes };
}

async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createNetServer());
  const listening = servers.map(
    (server) => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)),
  );
  await Promise.all(listening);
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

/** A folder with a configuration; control servers on it can be started one after the other. */
class Site {
  readonly folder = mkdtempSync(join(tmpdir(), 'wardrop-control-'));
  readonly configFile = join(this.folder, 'fleet.yaml');
  readonly #ports: readonly number[];

  private constructor(ports: readonly number[]) {
    this.#ports = ports;
    cleanups.push(() => rmSync(this.folder, { recursive: true, force: true }));
  }

  static async create(engines: Readonly<Record<string, string>>): Promise<Site> {
    const site = new Site(await freePorts(4));
    site.write(site.text(engines));
    return site;
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

  async start(solver?: PlanSolver, lookup?: Lookup): Promise<ControlServer> {
    const optimizer = new Optimizer();
    const server = await ControlServer.start({
      configFile: this.configFile,
      optimizer: solver ?? optimizer,
      questionSolver: optimizer,
      wasmModule: new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]),
      runFilter: () => ({ decision: {}, requestHeaders: new Map() }),
      log: pino({}, { write: () => undefined }),
      ...(lookup !== undefined && { lookup }),
    });
    cleanups.push(async () => {
      await server.stop();
      await optimizer.close();
    });
    return server;
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

async function planned(server: ControlServer): Promise<Record<string, number>> {
  const plan = await vi.waitUntil(() => server.plan, 10_000);
  return Object.fromEntries(plan.rows[0]!.weights.map(({ engineId, weight }) => [engineId, weight]));
}

function hasTwoEngines({ plan }: ControlServer): boolean {
  return plan?.rows[0]?.weights.length === 2;
}

function readinessOf(view: SnapshotView | undefined): Record<string, boolean[]> {
  return Object.fromEntries(
    (view?.engines ?? []).map(({ id, replicas }) => [id, replicas.map(({ ready }) => ready)]),
  );
}

describe('ControlServer', () => {
  it('is ready once a plan is published, and not before', async () => {
    const engine = await startEngine();
    const site = await Site.create({ a: engine.address });
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const optimizer = new Optimizer();
    const server = await site.start({
      solveChecked: async (input) => {
        await held;
        return optimizer.solveChecked(input);
      },
    });
    expect((await site.get('/live')).status).toBe(200);
    expect((await site.get('/ready')).status).toBe(503);
    expect((await site.get('/v1/plan')).status).toBe(503);
    expect(await site.sync()).toBeUndefined();
    release();
    expect(await planned(server)).toEqual({ a: 1 });
    expect((await site.get('/ready')).body).toEqual({ ready: true, planId: server.plan!.id });
    expect(await site.sync()).toMatchObject({ planId: server.plan!.id, frontendId: 'f' });
    await optimizer.close();
  });

  it('tells filters of a lost engine at once and plans without it', async () => {
    const [a, b] = [await startEngine(), await startEngine()];
    const site = await Site.create({ a: a.address, b: b.address });
    const server = await site.start();
    await vi.waitUntil(() => hasTwoEngines(server), 10_000);
    const first = (await site.sync())!;
    expect(readinessOf(first)).toEqual({ a: [true], b: [true] });
    a.kill();
    await vi.waitFor(
      async () => expect(readinessOf(await site.sync())).toEqual({ a: [false], b: [true] }),
      5_000,
    );
    await vi.waitFor(async () => expect(await planned(server)).toEqual({ b: 1 }), 5_000);
    expect(server.alarms.list.map(({ id }) => id)).toEqual([`replica-down:${a.address}`]);
    const later = (await site.sync())!;
    expect(later.version).toBeGreaterThan(first.version);
    expect(later.planId).toBe(server.plan!.id);
  });

  it('goes on with the same plan after a restart, under newer snapshot versions', async () => {
    const [a, b] = [await startEngine(), await startEngine()];
    const site = await Site.create({ a: a.address, b: b.address });
    const first = await site.start();
    await planned(first);
    const { id, sequence } = first.plan!;
    const before = (await site.sync())!;
    await first.stop();
    const second = await site.start({ solveChecked: () => new Promise(() => undefined) });
    expect([second.plan!.id, second.plan!.sequence]).toEqual([id, sequence]);
    const after = (await site.sync())!;
    expect(after.version).toBeGreaterThan(before.version);
    expect({ ...after, version: 0, issuedAtMs: 0 }).toEqual({ ...before, version: 0, issuedAtMs: 0 });
  });

  it('keeps every conversation where it is when a newer version wrote the state file, and its file, too', async () => {
    const [a, b] = [await startEngine(), await startEngine()];
    const site = await Site.create({ a: a.address, b: b.address });
    const first = await site.start();
    await planned(first);
    const before = (await site.sync())!;
    await first.stop();
    const file = join(site.folder, 'state.json');
    const stored = JSON.parse(readFileSync(file, 'utf8'));
    stored.plan.engines = 'said in another way';
    writeFileSync(file, JSON.stringify({ ...stored, format: 2, novelty: {} }));
    await site.start({ solveChecked: () => new Promise(() => undefined) });
    const after = (await site.sync())!;
    const own = { version: 0, issuedAtMs: 0, planId: '' };
    expect({ ...after, ...own }).toEqual({ ...before, ...own });
    expect(JSON.parse(readFileSync(`${file}.broken`, 'utf8'))).toMatchObject({ format: 2, novelty: {} });
  });

  it('makes a first plan when the state file is broken, and says so', async () => {
    const engine = await startEngine();
    const site = await Site.create({ a: engine.address });
    writeFileSync(join(site.folder, 'state.json'), '{"format": 1');
    const server = await site.start();
    expect(server.alarms.list.map(({ id }) => id)).toEqual(['state-file']);
    expect(await planned(server)).toEqual({ a: 1 });
  });

  it('keeps the last good plan when planning fails, hands lost engines to their backups and raises an alarm', async () => {
    const [a, b] = [await startEngine(), await startEngine()];
    const site = await Site.create({ a: a.address, b: b.address });
    const optimizer = new Optimizer();
    cleanups.push(() => optimizer.close());
    let isBroken = false;
    const server = await site.start({
      solveChecked: async (input) => {
        if (isBroken) throw new WardropError('WARDROP_SOLVER_TIMEOUT', 'no answer in time');
        return optimizer.solveChecked(input);
      },
    });
    await vi.waitUntil(() => hasTwoEngines(server), 10_000);
    isBroken = true;
    a.kill();
    await vi.waitFor(async () => expect(await planned(server)).toEqual({ b: 1 }), 5_000);
    const { body } = await site.get('/v1/alarms');
    expect(JSON.stringify(body)).toContain(
      'WARDROP_SOLVER_TIMEOUT: no answer in time; the last good plan stays',
    );
    isBroken = false;
    await vi.waitUntil(() => !server.alarms.list.some(({ id }) => id === 'planning'), 10_000);
  });

  it('a broken file changes nothing, and the next good one applies', async () => {
    const [a, b, c] = [await startEngine(), await startEngine(), await startEngine()];
    const site = await Site.create({ e1: a.address, e2: b.address });
    const server = await site.start();
    await vi.waitUntil(() => hasTwoEngines(server), 10_000);
    const { id } = server.plan!;

    const fixed = site.text({ e1: a.address, e3: c.address });
    site.write(fixed.replace('"]}', '"]'));
    const alarm = await vi.waitUntil(() => server.alarms.list.find((one) => one.id === 'config'), 5_000);
    expect(alarm.message).toMatch(/fleet\.yaml:\d+:\d+: /);
    expect(server.plan!.id).toBe(id);
    expect(server.config.fleet.engines.map((engine) => engine.id)).toEqual(['e1', 'e2']);

    site.write(fixed);
    await vi.waitFor(async () => expect(Object.keys(await planned(server))).toEqual(['e1', 'e3']), 8_000);
    expect(server.alarms.list).toEqual([]);
    await new Promise((resolve) => setTimeout(resolve, 200));
    const probes = b.probes();
    const others = c.probes();
    await vi.waitUntil(() => c.probes() > others + 2, 5_000);
    expect(b.probes()).toBe(probes);
  });

  it('announces new endpoints also when the plan stays the same', async () => {
    const [a, b] = [await startEngine(), await startEngine()];
    const site = await Site.create({ e: a.address });
    const server = await site.start();
    await planned(server);
    const { id } = server.plan!;
    site.write(site.text({ e: b.address }));
    expect(await server.reload('test')).toBe(true);
    await vi.waitFor(async () => {
      expect((await site.sync())!.engines[0]!.replicas[0]!.address).toBe(b.address);
    }, 5_000);
    expect(server.plan!.id).toBe(id);
  });

  it('sees files that are renamed into place, deleted and brought back, and changed often', async () => {
    const [a, b] = [await startEngine(), await startEngine()];
    const site = await Site.create({ e1: a.address });
    const server = await site.start();
    const engines = () => server.config.fleet.engines.map((engine) => engine.id);
    await planned(server);

    writeFileSync(`${site.configFile}.new`, site.text({ e1: a.address, e2: b.address }));
    renameSync(`${site.configFile}.new`, site.configFile);
    await vi.waitFor(() => expect(engines()).toEqual(['e1', 'e2']), 8_000);

    unlinkSync(site.configFile);
    await vi.waitFor(() => expect(server.alarms.list.map(({ id }) => id)).toContain('config'), 8_000);
    expect(engines()).toEqual(['e1', 'e2']);
    site.write(site.text({ e2: b.address }));
    await vi.waitFor(() => expect(engines()).toEqual(['e2']), 10_000);

    for (let change = 0; change < 20; change++) {
      site.write(site.text(change % 2 === 0 ? { e1: a.address } : { e1: a.address, e2: b.address }));
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await vi.waitFor(() => expect(engines()).toEqual(['e1', 'e2']), 10_000);
    await vi.waitFor(async () => expect(Object.keys(await planned(server))).toEqual(['e1', 'e2']), 8_000);
  });

  it('refuses excess demand and says by how much', async () => {
    const [a, b] = [await startEngine(), await startEngine()];
    const site = await Site.create({ a: a.address, b: b.address });
    site.write(site.text({ a: a.address, b: b.address }, 30));
    const server = await site.start();
    await planned(server);
    const shed = server.plan!.rows[0]!.shed[0]!;
    expect(shed.fraction).toBeCloseTo(1 / 3, 1);
    await vi.waitFor(() => expect(server.alarms.list.map(({ id }) => id)).toEqual(['shedding:f/m']), 2_000);
    expect(server.alarms.list[0]!.message).toMatch(/demand above capacity: 3\d\.\d % of 30\.0 requests\/s/);
  });

  it('takes a change of the file that comes while it is still looking for replicas at its start', async () => {
    const engine = await startEngine();
    const site = await Site.create({ a: engine.address });
    const [host, port] = engine.address.split(':');
    const listed = readFileSync(site.configFile, 'utf8');
    const found = listed.replace(/endpoints: \[.*?\]/, `discovery: {dns: "e.invalid:${port}"}`);
    site.write(found);
    const server = await site.start(undefined, async () => {
      site.write(found.replace('requestsPerSecond: 5}', 'requestsPerSecond: 6}'));
      return { addresses: [`${host}:${port}`], secondsToLive: 60 };
    });
    await vi.waitUntil(() => server.view.state.demands[0]!.requestsPerSecond === 6, 10_000);
  });

  it('keeps server settings that need a restart, and says so', async () => {
    const engine = await startEngine();
    const site = await Site.create({ a: engine.address });
    const server = await site.start();
    await planned(server);
    site.write(readFileSync(site.configFile, 'utf8').replace('state.json', 'other.json'));
    expect(await server.reload('test')).toBe(true);
    expect(server.alarms.list.map(({ id }) => id)).toEqual(['restart-needed']);
    expect(server.config.server.stateFile).toBe(join(site.folder, 'state.json'));
  });

  it('says when something else writes its state file, too', async () => {
    const engine = await startEngine();
    const site = await Site.create({ a: engine.address });
    const server = await site.start();
    await planned(server);
    const file = join(site.folder, 'state.json');
    // A write that falls into one of the server's own goes unnoticed.
    const alarm = await vi.waitUntil(() => {
      writeFileSync(file, '{}');
      server.act({ action: 'drain', target: 'a', by: 'test' });
      return server.alarms.list.find(({ id }) => id === 'state-file');
    }, 10_000);
    expect(alarm.message).toContain('state.json, too: run one control server');
    await vi.waitUntil(() => readFileSync(file, 'utf8').includes('"target":"a"'), 10_000);
  });

  it('follows a file of replicas, and remembers them when it is gone at the next start', async () => {
    const [first, second] = [await startEngine(), await startEngine()];
    const site = await Site.create({ a: first.address });
    const file = join(site.folder, 'replicas');
    site.write(
      site
        .text({ a: first.address })
        .replace(`endpoints: ["${first.address}"]`, 'discovery: {file: replicas}'),
    );
    const server = await site.start();
    await vi.waitUntil(() => server.alarms.list.some(({ id }) => id === 'discovery:a'), 10_000);
    expect(server.plan).toBeNull();
    writeFileSync(file, `${first.address}\n`);
    await planned(server);
    const addresses = async () => (await site.sync())?.engines[0]?.replicas.map(({ address }) => address);
    expect(await addresses()).toEqual([first.address]);
    writeFileSync(file, `${first.address}\n${second.address}\n`);
    await vi.waitFor(async () => expect(await addresses()).toHaveLength(2), 10_000);
    writeFileSync(file, `${second.address}\n`);
    await vi.waitFor(async () => expect(await addresses()).toEqual([second.address]), 15_000);
    await server.stop();

    unlinkSync(file);
    const again = await site.start();
    await planned(again);
    expect(await addresses()).toEqual([second.address]);
  });

  it('keeps listed replicas when the name that is to find them instead leads nowhere', async () => {
    const engine = await startEngine();
    const site = await Site.create({ a: engine.address });
    const lookup: Lookup = async () => {
      throw new Error('no such name');
    };
    const server = await site.start(undefined, lookup);
    await planned(server);
    const listed = readFileSync(site.configFile, 'utf8');
    site.write(listed.replace(/endpoints: \[.*?\]/, 'discovery: {dns: "typo.invalid:80"}'));
    expect(await server.reload('test')).toBe(true);
    await vi.waitUntil(() => server.alarms.list.some(({ id }) => id === 'discovery:a'), 5_000);
    const { replicas } = server.view.state.engines[0]!;
    expect(replicas).toEqual([{ address: engine.address, ready: true }]);
    expect(readinessOf(await site.sync())).toEqual({ a: [true] });
  });

  it('waits half a minute for a pool that nobody can be found of, and then plans for the others', async () => {
    const [a, b] = [await startEngine(), await startEngine()];
    const site = await Site.create({ a: a.address, b: b.address });
    const listed = readFileSync(site.configFile, 'utf8').replace(/^demand:.*$/m, '');
    const other = /(id: b.*?)models: \[m\](.*?)endpoints: \[.*?\]/;
    site.write(listed.replace(other, '$1models: [n]$2discovery: {dns: "typo.invalid:80"}'));
    const lookup: Lookup = async () => {
      throw new Error('no such name');
    };
    const server = await site.start(undefined, lookup);
    await vi.waitUntil(() => server.alarms.list.some(({ id }) => id === 'discovery:b'), 5_000);
    vi.useFakeTimers({ toFake: ['Date'] });
    cleanups.push(() => vi.useRealTimers());
    const noteHoldUp = vi.spyOn(server.signals, 'noteHoldUp');
    vi.setSystemTime(server.startedAtMs + 27_000);
    await vi.waitUntil(() => noteHoldUp.mock.calls.length > 0, 5_000);
    const lookAt = async (ms: number) => {
      vi.setSystemTime(server.startedAtMs + ms);
      await vi.waitUntil(() => server.view.state.atMs >= server.startedAtMs + ms, 5_000);
    };
    await lookAt(29_500);
    expect(server.plan).toBeNull();
    await lookAt(30_500);
    await planned(server);
    expect(server.plan!.rows.map(({ poolId, segments }) => [poolId, segments.length > 0])).toEqual([
      ['m', true],
      ['n', false],
    ]);
  });

  it('keeps the replicas of a name that DNS does not know any more, says so, and follows it again', async () => {
    const engine = await startEngine();
    const [host, port] = engine.address.split(':');
    const dns = await DnsServer.start();
    cleanups.push(() => dns.stop());
    dns.answers.set('engines.invalid', { a: [host!] });
    const site = await Site.create({ a: engine.address });
    const discovery = `discovery: {dns: "engines.invalid:${port}"}`;
    site.write(site.text({ a: engine.address }).replace(`endpoints: ["${engine.address}"]`, discovery));
    const server = await site.start(undefined, systemLookup(dns.resolver()));
    await planned(server);
    const view = async () => {
      const { body } = await site.get('/v1/fleet');
      return (body as { engines: [{ discovery: object; replicas: { address: string }[] }] }).engines[0];
    };
    const failures = [
      ['no such name', /ENOTFOUND|EAI_AGAIN/],
      ['silence', /ETIMEOUT/],
    ] as const;
    for (const [failure, problem] of failures) {
      dns.answers.set('engines.invalid', failure);
      await vi.waitUntil(() => problem.test(server.discovered.get('a')!.problem ?? ''), 15_000);
      expect(await view()).toMatchObject({
        discovery: {
          source: { kind: 'dns', host: 'engines.invalid' },
          ageSeconds: expect.any(Number),
          problem: expect.stringContaining('engines.invalid'),
        },
        replicas: [{ address: engine.address, ready: true }],
      });
    }
    await vi.waitFor(() => expect(server.alarms.list.map(({ id }) => id)).toEqual(['discovery:a']), 2_000);
    dns.answers.set('engines.invalid', { a: [host!, '127.0.0.2'] });
    await vi.waitFor(async () => expect((await view()).replicas).toHaveLength(2), 10_000);
    expect(await view()).toMatchObject({ discovery: { problem: null } });
  });

  it('can be recorded, and its plans can be made again from the file', async () => {
    const [a, b] = [await startEngine(), await startEngine()];
    const site = await Site.create({ a: a.address, b: b.address });
    const server = await site.start();
    await vi.waitUntil(() => hasTwoEngines(server), 10_000);
    const said = vi.spyOn(console, 'log').mockReturnValue(undefined);
    cleanups.push(() => said.mockRestore());
    const file = join(site.folder, 'fleet.jsonl.gz');
    writeFileSync(file, 'something else');
    const complained = vi.spyOn(console, 'error').mockReturnValue(undefined);
    cleanups.push(() => complained.mockRestore());
    const record = ['record', '--url', site.admin, '--out', file, '--for', '3s'];
    expect(await run(record)).toBe(1);
    expect(complained.mock.lastCall![0]).toMatch(/is there already.*--force.*WARDROP_OUTPUT_FAILED/s);
    const recording = run([...record, '--force']);
    await site.sync();
    b.kill();
    expect(await recording).toBe(0);
    expect(await run(['replay', file, '--json'])).toBe(0);
    const replayed = JSON.parse(said.mock.lastCall![0] as string) as Replayed[];
    expect(replayed.length).toBeGreaterThan(1);
    expect(replayed.every(({ isSame }) => isSame)).toBe(true);
    // The last solve before it is in it, and perhaps one that was under way.
    const states = replayed.map(({ isSameState }) => isSameState);
    expect(states).not.toContain(false);
    expect(states.lastIndexOf(null)).toBeLessThan(2);
    expect(states.at(-1)).toBe(true);
    expect(replayed.at(-1)!.planId).toBe(server.plan!.id);
  });

  it('drains an engine by an operator’s will, tells so, and remembers it over a restart', async () => {
    const [a, b] = [await startEngine(), await startEngine()];
    const site = await Site.create({ a: a.address, b: b.address });
    const server = await site.start();
    await vi.waitUntil(() => hasTwoEngines(server), 10_000);
    const post = async (body: object) =>
      (
        await fetch(`${site.admin}/v1/operations`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        })
      ).status;
    expect(await post({ action: 'drain', target: 'c' })).toBe(400);
    expect(await post({ action: 'explode', target: 'b' })).toBe(400);
    expect(await post({ action: 'drain', target: 'b', overSeconds: 0, by: 'me' })).toBe(200);
    await vi.waitUntil(() => server.plan!.rows[0]!.weights.every(({ engineId }) => engineId !== 'b'), 10_000);
    expect(server.alarms.list.map(({ id }) => id)).toContain('drained:b');
    await server.stop();

    const again = await site.start();
    const { body } = await site.get('/v1/operations');
    expect(body).toEqual({
      drains: [expect.objectContaining({ engineId: 'b' })],
      orders: [],
      actions: [expect.objectContaining({ action: 'drain', by: 'me' })],
    });
    expect(again.view.state.engines.map(({ drain }) => drain)).toEqual([1, 0]);
  });

  it('plans anew when requests are measured to be of another size, without waiting, and shows how they are', async () => {
    const engine = await startEngine();
    const site = await Site.create({ a: engine.address });
    const optimizer = new Optimizer();
    cleanups.push(() => optimizer.close());
    const promptTokens: number[] = [];
    const server = await site.start({
      solveChecked: (input) => {
        promptTokens.push(input.state.demands[0]!.promptTokens);
        return optimizer.solveChecked(input);
      },
    });
    await planned(server);
    // Time stands still but for what the test lets pass, so that nothing is solved because of that.
    vi.useFakeTimers({ toFake: ['Date'] });
    cleanups.push(() => vi.useRealTimers());
    const report = (sequence: number): UsageReport => {
      const answers = 30 * sequence;
      const tokens = {
        promptCount: answers,
        promptTokens: answers * 4_000,
        cachedOfTokens: answers * 4_000,
        cachedTokens: answers * 3_000,
        outputCount: answers,
        outputTokens: answers * 60,
      };
      const bodies = { offered: answers, bodiesRead: answers, followUps: answers * 0.8 };
      const engines = [{ ...noEngineUsage(id64('m'), id64('a')), usageCount: answers }];
      const pools = [{ ...noPoolUsage(id64('m')), ...bodies, ...tokens }];
      return { vms: [{ ...noVmUsage(1n, sequence), pools, engines }] };
    };
    // Two hundred answers are there after 7 reports, and ten minutes later it counts.
    for (let sequence = 1; sequence <= 107; sequence++) {
      await site.sync(0, report(sequence));
      vi.setSystemTime(Date.now() + 6_000);
    }
    // Another solve now, so that the next one for lack of another reason is ten seconds away.
    site.write(`${site.text({ a: engine.address })}policy: {targetUtilization: 0.8}\n`);
    const solves = promptTokens.length;
    await server.reload('for the test');
    await vi.waitUntil(() => promptTokens.length > solves, 5_000);
    expect(new Set(promptTokens)).toEqual(new Set([512]));
    await site.sync(0, report(108));
    vi.setSystemTime(Date.now() + 1_000);
    await vi.waitUntil(() => promptTokens.at(-1) === 4_000, 5_000);
    const { body } = await site.get('/v1/fleet');
    expect((body as { demands: object[] }).demands).toEqual([
      expect.objectContaining({
        promptTokens: 4_000,
        uncachedPromptTokens: 1_000,
        outputTokens: 60,
        source: 'measured',
        confidence: expect.any(Number),
        sizes: expect.objectContaining({
          source: 'measured',
          measured: expect.objectContaining({
            outputTokens: expect.closeTo(60),
            ageSeconds: expect.closeTo(1, 0),
            confidence: 1,
          }),
        }),
        measured: {
          promptTokens: expect.objectContaining({ value: expect.closeTo(4_000), confidence: 1 }),
          outputTokens: expect.objectContaining({ value: expect.closeTo(60), source: 'answers' }),
          followUpShare: expect.objectContaining({
            value: expect.closeTo(0.8),
            source: 'bodies',
            ageSeconds: expect.closeTo(1, 0),
          }),
          hitShare: expect.objectContaining({ value: expect.closeTo(0.75), confidence: 1 }),
        },
      }),
    ]);
  });

  it('takes its own being held up for nobody’s silence, and goes on when it has heard how things are', async () => {
    const engine = await startEngine();
    const site = await Site.create({ a: engine.address });
    const server = await site.start();
    await planned(server);
    const noteHoldUp = vi.spyOn(server.signals, 'noteHoldUp');
    vi.useFakeTimers({ toFake: ['Date'] });
    cleanups.push(() => vi.useRealTimers());
    const report = (sequence: number) => site.sync(0, { vms: [noVmUsage(1n, sequence)] });
    await report(1);
    const endMs = Date.now() + 30_000;
    vi.setSystemTime(endMs);
    await vi.waitUntil(() => noteHoldUp.mock.calls.length > 0, 5_000);
    await report(2);
    vi.setSystemTime(endMs + 1_000);
    await vi.waitUntil(() => server.view.state.atMs >= endMs, 5_000);
    expect(server.view.state.atMs).toBeGreaterThanOrEqual(endMs + 1_000);
    expect(server.view.silentFrontends).toEqual([]);
    expect(noteHoldUp).toHaveBeenCalledOnce();
  });

  it('shows plan, fleet, Envoys, configuration and metrics', async () => {
    const engine = await startEngine();
    const site = await Site.create({ a: engine.address });
    const server = await site.start();
    await planned(server);
    await site.sync();
    expect((await site.get('/v1/plan')).body).toMatchObject({ id: server.plan!.id, sequence: 1 });
    expect((await site.get('/v1/fleet')).body).toMatchObject({
      frontends: [{ id: 'f', networkMs: { a: 0 } }],
      engines: [{ id: 'a', replicas: [{ address: engine.address, ready: true, health: { state: 'up' } }] }],
      demands: [{ requestsPerSecond: 5, source: 'expected' }],
    });
    expect((await site.get('/v1/envoys')).body).toMatchObject({
      envoys: [],
      withoutStream: [{ nodeId: 'n', frontendId: 'f', snapshot: { version: 0, isNewest: false } }],
    });
    expect((await site.get('/v1/config')).body).toMatchObject({
      config: { demand: { f: { requestsPerSecond: 5 } } },
    });
    expect((await site.get('/nothing')).status).toBe(404);
    const page = await (await fetch(`${site.admin}/metrics`)).text();
    expect(page).toMatch(/^wardrop_plan_sequence 1$/m);
    expect(page).toMatch(/^wardrop_weight\{frontend="f",pool="m",engine="a"\} 1$/m);
    expect(page).toMatch(/^wardrop_sync_calls_total\{status="200"\} 1$/m);
    expect(page).toMatch(/^wardrop_solves_total\{result="ok"\} \d+$/m);
    expect(await (await fetch(`${site.admin}/`)).text()).toContain('/v1/fleet');
    const manual = readFileSync(resolve(import.meta.dirname, '../docs/operations.md'), 'utf8');
    for (const [, name] of page.matchAll(/^# HELP (wardrop_\w+) /gm)) expect(manual).toContain(`\`${name}\``);
  });

  it('shows no label and no series of the pages of engines in its own', async () => {
    const forged = 'm\\"} 1\\nforged_series{a=\\"b';
    const labels = Array.from({ length: 500 }, (_, at) => `model_name="${forged}",rank="${at}"`);
    const lines = labels.flatMap((each) => [
      `vllm:num_requests_running{${each}} 1`,
      `vllm:num_requests_waiting{${each}} 0`,
      `forged_series{${each}} 7`,
    ]);
    const engine = await startEngine(lines.join('\n'));
    const site = await Site.create({ a: engine.address });
    const seriesOf = async () => {
      const page = await (await fetch(`${site.admin}/metrics`)).text();
      const ours = page
        .split('\n')
        .filter((line) => line.startsWith('wardrop_engine_') || /forged/.test(line));
      return ours.map((line) => line.slice(0, line.lastIndexOf(' ')));
    };
    site.write(site.text({ a: engine.address }).replace('profile: p,', 'profile: p, metrics: {kind: vllm},'));
    await planned(await site.start());
    const running = 'wardrop_engine_running_requests{engine="a"}';
    const series = await vi.waitFor(async () => {
      const all = await seriesOf();
      expect(all).toContain(running);
      return all;
    }, 8_000);
    expect(series.filter((name) => !/^wardrop_engine_\w+\{(\w+="[\w:]+",?)+\}$/.test(name))).toEqual([]);
    expect(series.length).toBeLessThan(30);
  });

  it('explains a weight in JSON and in words', async () => {
    const engine = await startEngine();
    const site = await Site.create({ a: engine.address });
    const server = await site.start();
    await planned(server);
    const path = '/v1/explain?frontend=f&engine=a';
    expect((await site.get(path)).body).toMatchObject({
      planId: server.plan!.id,
      failure: null,
      weightInForce: 1,
      explanation: { frontendId: 'f', poolId: 'm', engineId: 'a', engine: { weight: 1 } },
    });
    const words = await (await fetch(`${site.admin}${path}`, { headers: { accept: 'text/plain' } })).text();
    expect(words).toContain('f → a, pool m: weight 100.0 %');
    expect(words).toContain(`Plan ${server.plan!.id}.`);
    expect(await site.get('/v1/explain?frontend=f')).toMatchObject({
      status: 400,
      body: { code: 'WARDROP_QUERY_INVALID', message: 'say which engine; known: a' },
    });
  });

  it('says which input changed which weight', async () => {
    const [a, b] = [await startEngine(), await startEngine()];
    const site = await Site.create({ a: a.address, b: b.address });
    const server = await site.start();
    await vi.waitUntil(() => hasTwoEngines(server), 10_000);
    expect((await site.get('/v1/changes')).status).toBe(400);
    const nonsense = await site.get('/v1/changes?since=abc');
    expect(nonsense).toMatchObject({ status: 400, body: { code: 'WARDROP_QUERY_INVALID' } });
    expect(JSON.stringify(nonsense.body)).toContain('since=abc: expected the number of a plan');
    const { sequence } = server.plan!;
    a.kill();
    await vi.waitFor(async () => expect(await planned(server)).toEqual({ b: 1 }), 5_000);
    const { body } = await site.get(`/v1/changes?since=${sequence}`);
    const { since, until, effects } = body as Changed;
    expect([since.sequence, until.sequence]).toEqual([sequence, server.plan!.sequence]);
    const capacity = effects.find(({ cause }) => cause === 'capacity')!;
    expect(capacity.weights).toContainEqual(expect.objectContaining({ engineId: 'a', after: 0 }));
    const words = await (
      await fetch(`${site.admin}/v1/changes`, { headers: { accept: 'text/plain' } })
    ).text();
    expect(words).toMatch(/^From plan \d+ \(.*\) to plan \d+ /);
    expect(words).toMatch(/^capacity: /m);
  });

  it('answers what would be without an engine and how much can grow', async () => {
    const [a, b] = [await startEngine(), await startEngine()];
    const site = await Site.create({ a: a.address, b: b.address });
    const server = await site.start();
    await planned(server);
    const ask = (body: string) =>
      fetch(`${site.admin}/v1/what-if`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      });
    const { id } = server.plan!;
    const changes = { without: ['b'], demand: [{ frontendId: 'f', factor: 3 }] };
    const answer = (await (await ask(JSON.stringify(changes))).json()) as WhatIf;
    expect(answer.rows[0]).toMatchObject({ demandRps: { before: 5, after: 15 } });
    expect(answer.rows[0]!.refusedRps.after).toBeCloseTo(5, 1);
    expect(server.plan!.id).toBe(id);
    for (const wrong of ['{', '{"with": 1}', '{"without": ["x"]}', '[]']) {
      const refusal = await ask(wrong);
      expect(refusal.status).toBe(400);
      expect(await refusal.json()).toMatchObject({ code: 'WARDROP_QUERY_INVALID' });
    }
    expect((await site.get('/v1/headroom')).body).toMatchObject({
      frontends: [{ frontendId: 'f', growth: 4 }],
    });
  });

  it('frees its sockets when one of them is taken', async () => {
    const engine = await startEngine();
    const site = await Site.create({ a: engine.address });
    const blocker = createNetServer();
    const [, sync] = /sync: \{listen: "127\.0\.0\.1:(\d+)"/.exec(readFileSync(site.configFile, 'utf8'))!;
    await new Promise<void>((resolve) => blocker.listen(Number(sync), '127.0.0.1', resolve));
    cleanups.push(() => blocker.close());
    await expect(site.start()).rejects.toMatchObject({ code: 'WARDROP_PORT_IN_USE' });
    await expect(fetch(`${site.admin}/live`)).rejects.toThrow();
  });
});
