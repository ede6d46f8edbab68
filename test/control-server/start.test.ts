import { readFileSync, writeFileSync } from 'node:fs';
import { createServer as createNetServer, type Server } from 'node:net';
import { join } from 'node:path';
import * as grpc from '@grpc/grpc-js';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { id64 } from '../../wire/hash.js';
import { noPoolUsage, noVmUsage, type UsageReport } from '../../wire/usage-report.js';
import type { ControlServer } from '../../xds-server/control-server.js';
import { Optimizer, type OptimizerInput } from '../../xds-server/optimizer/index.js';
import { EXTENSION_TYPE } from '../../xds-server/xds/index.js';
import { socketWire } from '../conformance/server.js';
import { PATIENCE_MS } from '../patience.js';
import { afterwards, cleanUp, planned, Site, startEngine } from './site.js';

afterEach(cleanUp);

describe('the control server', () => {
  it('is ready once a plan is published, and not before', async () => {
    const engine = await startEngine();
    const site = await Site.create({ a: engine.address });
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const optimizer = new Optimizer();
    afterwards(() => optimizer.close());
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

  it('ends when the filter that an Envoy was just given has its snapshot: it may be unable to read the one before', async () => {
    const site = await Site.create({ a: (await startEngine()).address });
    const server = await site.start();
    await planned(server);
    const envoy = new grpc.Client(site.xds, grpc.credentials.createInsecure());
    afterwards(() => envoy.close());
    const stream = socketWire(
      envoy,
      '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources',
    );
    stream.send({
      node: {
        id: 'n',
        cluster: 'f',
        region: '',
        metadata: {},
        userAgent: 'envoy',
        userAgentVersion: '1.40.0',
      },
      typeUrl: EXTENSION_TYPE,
      subscribe: ['wardrop'],
      unsubscribe: [],
      initialVersions: {},
      responseNonce: '',
    });
    await vi.waitUntil(() => server.nodes()[0]?.types[EXTENSION_TYPE]?.sent, PATIENCE_MS);
    const stopped = server.stop();
    // No other filter is given meanwhile.
    expect(await stream.status).toBe(grpc.status.OK);
    const { version } = (await site.sync())!;
    expect(await site.sync(version)).toBeUndefined();
    await stopped;
    await expect(site.sync(version)).rejects.toThrow();
  });

  it('shows no negative age of a plan that was made by a clock which was ahead', async () => {
    const site = await Site.create({ a: (await startEngine()).address });
    const first = await site.start();
    await planned(first);
    await first.stop();
    const file = join(site.folder, 'state.json');
    const stored = JSON.parse(readFileSync(file, 'utf8'));
    stored.plan.createdAtMs += 3_600_000;
    writeFileSync(file, JSON.stringify(stored));
    await site.start({ solveChecked: () => new Promise(() => undefined) });
    const page = await (await fetch(`${site.admin}/metrics`)).text();
    expect(page).toMatch(/^wardrop_plan_age_seconds 0$/m);
  });

  it('goes on with what it measured before a short stop', async () => {
    const site = await Site.create({ a: (await startEngine()).address });
    const first = await site.start();
    await planned(first);
    const report = (sequence: number): UsageReport => {
      const pools = [{ ...noPoolUsage(id64('m')), offered: 1_000 * sequence }];
      return { vms: [{ ...noVmUsage(1n, sequence), pools }] };
    };
    const heardOf = ({ view }: ControlServer) => view.rates.map(({ ageSeconds }) => ageSeconds !== undefined);
    for (const sequence of [1, 2]) void site.sync(0, report(sequence));
    await vi.waitFor(() => expect(heardOf(first)).toEqual([true]), PATIENCE_MS);
    await first.stop();
    // One that ends before it has heard anything, or cannot open its sockets, leaves what it found, as old as it is.
    const left = () =>
      JSON.parse(readFileSync(join(site.folder, 'state.json.signals'), 'utf8').split('\n')[0]!);
    const { atMs } = left();
    await (await site.start()).stop();
    expect(left().atMs).toBe(atMs);
    const blocker = await occupySync(site);
    await expect(site.start()).rejects.toMatchObject({ code: 'WARDROP_PORT_IN_USE' });
    blocker.close();
    const second = await site.start();
    expect(heardOf(second)).toEqual([true]);
    expect(second.view.rates[0]!.requestsPerSecond).toBe(first.view.rates[0]!.requestsPerSecond);
  });

  it('makes no plan after a restart before it knows who is dead', async () => {
    const [a, b] = [await startEngine(), await startEngine()];
    const site = await Site.create({ a: a.address, b: b.address });
    const first = await site.start();
    await planned(first);
    await first.stop();
    a.sicken();
    const solved: OptimizerInput[] = [];
    await site.start({
      solveChecked: (input) => {
        solved.push(input);
        return new Promise(() => undefined);
      },
    });
    await vi.waitUntil(() => solved.length > 0, PATIENCE_MS);
    const ready = solved[0]!.state.engines.map(({ replicas }) => replicas.map((replica) => replica.ready));
    expect(ready).toEqual([[false], [true]]);
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
    }, PATIENCE_MS);
    expect(alarm.message).toContain('state.json, too: run one control server');
    await vi.waitUntil(() => readFileSync(file, 'utf8').includes('"target":"a"'), PATIENCE_MS);
  });

  it('frees its sockets when one of them is taken', async () => {
    const engine = await startEngine();
    const site = await Site.create({ a: engine.address });
    await occupySync(site);
    await expect(site.start()).rejects.toMatchObject({ code: 'WARDROP_PORT_IN_USE' });
    await expect(fetch(`${site.admin}/live`)).rejects.toThrow();
  });
});

/** Something else listens where the site's filters call. */
async function occupySync({ configFile }: Site): Promise<Server> {
  const [, port] = /sync: \{listen: "127\.0\.0\.1:(\d+)"/.exec(readFileSync(configFile, 'utf8'))!;
  const blocker = createNetServer();
  await new Promise<void>((resolve) => blocker.listen(Number(port), '127.0.0.1', resolve));
  afterwards(() => blocker.close());
  return blocker;
}
