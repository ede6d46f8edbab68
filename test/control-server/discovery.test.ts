import { readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Lookup, systemLookup } from '../../xds-server/signals/discovery/lookup.js';
import { DnsServer } from '../../xds-server/signals/testing/dns-server.js';
import { PATIENCE_MS } from '../patience.js';
import { afterwards, cleanUp, holdClocks, planned, readinessOf, Site, startEngine } from './site.js';

afterEach(cleanUp);

describe('the control server', () => {
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
    await vi.waitUntil(() => server.alarms.list.some(({ id }) => id === 'discovery:a'), PATIENCE_MS);
    expect(server.plan).toBeNull();
    writeFileSync(file, `${first.address}\n`);
    await planned(server);
    const addresses = async () => (await site.sync())?.engines[0]?.replicas.map(({ address }) => address);
    expect(await addresses()).toEqual([first.address]);
    writeFileSync(file, `${first.address}\n${second.address}\n`);
    await vi.waitFor(async () => expect(await addresses()).toHaveLength(2), PATIENCE_MS);
    writeFileSync(file, `${second.address}\n`);
    await vi.waitFor(async () => expect(await addresses()).toEqual([second.address]), PATIENCE_MS);
    // That is no change of the configuration, which takes long to read where it is large.
    const metrics = await (await fetch(`${site.admin}/metrics`)).text();
    expect(metrics).not.toMatch(/^wardrop_config_reloads_total\{.*[1-9]/m);
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
    await vi.waitUntil(() => server.alarms.list.some(({ id }) => id === 'discovery:a'), PATIENCE_MS);
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
    await vi.waitUntil(() => server.alarms.list.some(({ id }) => id === 'discovery:b'), PATIENCE_MS);
    holdClocks();
    const noteHoldUp = vi.spyOn(server.signals, 'noteHoldUp');
    vi.setSystemTime(server.startedAtMs + 27_000);
    await vi.waitUntil(() => noteHoldUp.mock.calls.length > 0, PATIENCE_MS);
    const lookAt = async (ms: number) => {
      vi.setSystemTime(server.startedAtMs + ms);
      await vi.waitUntil(() => server.view.state.atMs >= server.startedAtMs + ms, PATIENCE_MS);
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
    afterwards(() => dns.stop());
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
      await vi.waitUntil(() => problem.test(server.discovered.get('a')!.problem ?? ''), PATIENCE_MS);
      expect(await view()).toMatchObject({
        discovery: {
          source: { kind: 'dns', host: 'engines.invalid' },
          ageSeconds: expect.any(Number),
          problem: expect.stringContaining('engines.invalid'),
        },
        replicas: [{ address: engine.address, ready: true }],
      });
    }
    await vi.waitFor(
      () => expect(server.alarms.list.map(({ id }) => id)).toEqual(['discovery:a']),
      PATIENCE_MS,
    );
    dns.answers.set('engines.invalid', { a: [host!, '127.0.0.2'] });
    await vi.waitFor(async () => expect((await view()).replicas).toHaveLength(2), PATIENCE_MS);
    expect(await view()).toMatchObject({ discovery: { problem: null } });
  });
});
