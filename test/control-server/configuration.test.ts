import { readFileSync, renameSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { fleetView } from '../../xds-server/admin/views/fleet-view.js';
import { PATIENCE_MS } from '../patience.js';
import { cleanUp, hasTwoEngines, planned, Site, startEngine } from './site.js';

afterEach(cleanUp);

describe('the control server', () => {
  it('a broken file changes nothing, and the next good one applies', async () => {
    const [a, b, c] = [await startEngine(), await startEngine(), await startEngine()];
    const site = await Site.create({ e1: a.address, e2: b.address });
    const server = await site.start();
    await vi.waitUntil(() => hasTwoEngines(server), PATIENCE_MS);
    const { id } = server.plan!;

    const fixed = site.text({ e1: a.address, e3: c.address });
    site.write(fixed.replace('"]}', '"]'));
    const alarm = await vi.waitUntil(
      () => server.alarms.list.find((one) => one.id === 'config'),
      PATIENCE_MS,
    );
    expect(alarm.message).toMatch(/fleet\.yaml:\d+:\d+: /);
    expect(server.plan!.id).toBe(id);
    expect(server.config.fleet.engines.map((engine) => engine.id)).toEqual(['e1', 'e2']);

    site.write(fixed);
    await vi.waitFor(
      async () => expect(Object.keys(await planned(server))).toEqual(['e1', 'e3']),
      PATIENCE_MS,
    );
    await vi.waitFor(() => expect(server.alarms.list).toEqual([]), PATIENCE_MS);
    const twoMoreOf = async ({ probes }: typeof c) => {
      const before = probes();
      await vi.waitUntil(() => probes() > before + 2, PATIENCE_MS);
    };
    // What was under way.
    await twoMoreOf(c);
    const probes = b.probes();
    await twoMoreOf(c);
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
    }, PATIENCE_MS);
    expect(server.plan!.id).toBe(id);
  });

  it('tells of the fleet also in the moment after another one is configured', async () => {
    const [a, b] = [await startEngine(), await startEngine()];
    const site = await Site.create({ a: a.address });
    const server = await site.start();
    await planned(server);
    const enginesAfter = async (engines: Record<string, string>, model = 'm') => {
      site.write(site.text(engines).replaceAll('models: [m]', `models: [${model}]`));
      expect(await server.reload('test')).toBe(true);
      return [...fleetView(server).engines].map((engine) => (engine as { id: string }).id);
    };
    expect(await enginesAfter({ a: a.address, b: b.address })).toEqual(['a']);
    await vi.waitUntil(() => server.view.state.engines.length === 2, PATIENCE_MS);
    expect(await enginesAfter({ b: b.address }, 'other')).toEqual(['a', 'b']);
  });

  it('sees files that are renamed into place, deleted and brought back, and changed often', async () => {
    const [a, b] = [await startEngine(), await startEngine()];
    const site = await Site.create({ e1: a.address });
    const server = await site.start();
    const engines = () => server.config.fleet.engines.map((engine) => engine.id);
    await planned(server);

    writeFileSync(`${site.configFile}.new`, site.text({ e1: a.address, e2: b.address }));
    renameSync(`${site.configFile}.new`, site.configFile);
    await vi.waitFor(() => expect(engines()).toEqual(['e1', 'e2']), PATIENCE_MS);

    unlinkSync(site.configFile);
    await vi.waitFor(() => expect(server.alarms.list.map(({ id }) => id)).toContain('config'), PATIENCE_MS);
    expect(engines()).toEqual(['e1', 'e2']);
    site.write(site.text({ e2: b.address }));
    await vi.waitFor(() => expect(engines()).toEqual(['e2']), PATIENCE_MS);

    for (let change = 0; change < 20; change++) {
      site.write(site.text(change % 2 === 0 ? { e1: a.address } : { e1: a.address, e2: b.address }));
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await vi.waitFor(() => expect(engines()).toEqual(['e1', 'e2']), PATIENCE_MS);
    await vi.waitFor(
      async () => expect(Object.keys(await planned(server))).toEqual(['e1', 'e2']),
      PATIENCE_MS,
    );
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
    await vi.waitUntil(() => server.view.state.demands[0]!.requestsPerSecond === 6, PATIENCE_MS);
  });

  it('keeps server settings that need a restart, and says so', async () => {
    const engine = await startEngine();
    const site = await Site.create({ a: engine.address });
    const server = await site.start();
    await planned(server);
    site.write(readFileSync(site.configFile, 'utf8').replace('state.json', 'other.json'));
    expect(await server.reload('test')).toBe(true);
    expect(server.alarms.list).toMatchObject([
      { id: 'restart-needed', message: 'changes of server.stateFile take effect at the next start' },
    ]);
    expect(server.config.server.stateFile).toBe(join(site.folder, 'state.json'));
  });
});
