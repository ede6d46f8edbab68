import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ConnectionOptions, connect } from 'node:tls';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { id64 } from '../../wire/hash.js';
import {
  SYNC_DISPLACED_HEADER,
  SYNC_FRONTEND_HEADER,
  SYNC_NODE_HEADER,
  SYNC_SNAPSHOT_HEADER,
} from '../../wire/names.js';
import { noPoolUsage, noVmUsage, type UsageReport } from '../../wire/usage-report.js';
import { encodeUsageReport } from '../../wire/usage-report-writer.js';
import type { ControlServer } from '../../xds-server/control-server.js';
import { CertificateAuthority } from '../conformance/certificates.js';
import { freePorts } from '../free-ports.js';
import { PATIENCE_MS } from '../patience.js';
import { afterwards, cleanUp, startControlServer, startEngine, temporaryFolder } from './site.js';

let folder = '';
let engine = '';

beforeEach(async () => {
  folder = temporaryFolder();
  engine = (await startEngine()).address;
});

afterEach(cleanUp);

/** A control server that may be started. */
class Site {
  readonly #file: string;
  readonly #ports: readonly number[];

  constructor(name: string, ports: readonly number[], peer: readonly number[], rest: SiteRest = {}) {
    this.#file = join(folder, `${name}.yaml`);
    this.#ports = ports;
    const [xds, sync, admin] = ports.map((port) => `{listen: "127.0.0.1:${port}"}`);
    const addresses = (all: readonly number[]) => `{xds: "127.0.0.1:${all[0]}", sync: "127.0.0.1:${all[1]}"}`;
    const { extra = '', rps = 5, token = 'a-token-for-the-fleet' } = rest;
    writeFileSync(
      this.#file,
      [
        `server: {xds: ${xds}, sync: ${sync}, admin: ${admin}, stateFile: ${name}.json, token: ${token},`,
        // Both are listed, as where servers share a file.
        `  ${extra} peers: [${addresses(ports)}, ${addresses(peer)}]}`,
        'frontends: [{id: f, region: r, listen: "127.0.0.1:1"}]',
        `engines: [{id: a, region: r, models: [m], profile: p, endpoints: ["${engine}"]}]`,
        'profiles: {p: {requestsPerSecond: 10}}',
        `demand: {f: {requestsPerSecond: ${rps}}}`,
        '',
      ].join('\n'),
    );
  }

  get state(): { readonly salt: string } {
    return JSON.parse(readFileSync(this.#file.replace('.yaml', '.json'), 'utf8')) as { salt: string };
  }

  get address(): string {
    return `127.0.0.1:${this.#ports[1]}`;
  }

  get admin(): string {
    return `http://127.0.0.1:${this.#ports[2]}`;
  }

  async start(): Promise<ControlServer> {
    const server = await startControlServer(this.#file);
    await vi.waitUntil(() => server.plan, PATIENCE_MS);
    return server;
  }

  /** What an Envoy of the frontend gets for a report. */
  async sync(nodeId: string, report: UsageReport, held = 0): Promise<Response> {
    return fetch(`http://${this.address}/v1/sync`, {
      method: 'POST',
      headers: {
        authorization: 'Bearer a-token-for-the-fleet',
        [SYNC_NODE_HEADER]: nodeId,
        [SYNC_FRONTEND_HEADER]: 'f',
        [SYNC_SNAPSHOT_HEADER]: String(held),
        [SYNC_DISPLACED_HEADER]: '0',
      },
      body: Buffer.from(encodeUsageReport(report)),
    });
  }
}

interface SiteRest {
  /** More under `server`. */
  readonly extra?: string;
  readonly rps?: number;
  readonly token?: string;
}

async function twoSites(rest: SiteRest = {}): Promise<readonly [Site, Site]> {
  const ports = await freePorts(6);
  const [one, two] = [ports.slice(0, 3), ports.slice(3)];
  return [new Site('one', one, two), new Site('two', two, one, rest)];
}

function reportOf(offered: number, displaced: readonly bigint[] = []): UsageReport {
  const vm = { ...noVmUsage(7n, offered + 1), pools: [{ ...noPoolUsage(id64('m')), offered }] };
  return { vms: [vm], displaced };
}

function isAlarmed({ alarms }: ControlServer, kind: string, message: RegExp): boolean {
  return alarms.list.some(({ id, message: text }) => id.startsWith(`${kind}:`) && message.test(text));
}

const TLS = 'tls: {cert: cert.pem, key: key.pem, clientCa: ca.pem, peerCa: ca.pem},';

/** Writes what `TLS` names. */
function certify(authority: CertificateAuthority) {
  const { certificate, key } = authority.issue('127.0.0.1');
  writeFileSync(join(folder, 'ca.pem'), authority.certificate);
  writeFileSync(join(folder, 'cert.pem'), certificate);
  writeFileSync(join(folder, 'key.pem'), key);
  return { cert: certificate, key };
}

/** Whether each takes the other's certificate: a client hears only after its own handshake that its certificate is refused. */
async function speaksTls(port: number, options: ConnectionOptions): Promise<boolean> {
  const socket = connect({ host: '127.0.0.1', port, ...options });
  try {
    await once(socket, 'secureConnect');
    const isRefused = await Promise.race([
      once(socket, 'error').then(() => true),
      once(socket, 'close').then(() => true),
      new Promise<boolean>((resolve) => setTimeout(resolve, 300, false)),
    ]);
    return !isRefused;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

describe('two control servers', () => {
  it('have one plan and salt, know of every report and displaced key, and an order given to either holds at both', async () => {
    const sites = await twoSites();
    const one = await sites[0].start();
    const two = await sites[1].start();
    expect([one.isPlanning, two.isPlanning]).toEqual([true, false]);
    expect(two.plan!.id).toBe(one.plan!.id);
    await vi.waitUntil(
      () =>
        one
          .peerViews()
          .map(({ hasSameConfig }) => hasSameConfig)
          .join() === 'true',
      PATIENCE_MS,
    );

    for (const [at, site] of sites.entries()) {
      await site.sync(`n${at}`, reportOf(0));
      await vi.waitUntil(() => [two, one][at]!.peerViews()[0]!.envoys.length === 1, PATIENCE_MS);
      await site.sync(`n${at}`, reportOf(10 * (at + 1), [BigInt(2 + 2 * at)]));
    }
    const offered = ({ signals }: ControlServer) =>
      signals.totals.pools.reduce((sum, pool) => sum + pool.offered, 0);
    await vi.waitUntil(() => offered(one) === 30 && offered(two) === 30, PATIENCE_MS);
    const { version } = one.board.current('f')!;
    const displaced = Buffer.from(await (await sites[0].sync('n0', reportOf(10), version)).arrayBuffer());
    expect(displaced.readBigUInt64LE(displaced.length - 8)).toBe(4n);

    await expect(two.questions.explain({})).rejects.toThrow(
      `the control server at ${sites[0].address} makes the plans`,
    );
    two.act({ action: 'drain', target: engine, by: 'me' });
    await vi.waitUntil(() => one.signals.orders.drains.length === 1, PATIENCE_MS);
    one.act({ action: 'undrain', target: engine, by: 'you' });
    await vi.waitUntil(() => two.signals.orders.drains.length === 0, PATIENCE_MS);
    expect(two.signals.orders.actions.map(({ by }) => by)).toEqual(['me', 'you']);
    expect(one.signals.orders).toEqual(two.signals.orders);

    await two.stop();
    await one.stop();
    expect(sites[1].state.salt).toBe(sites[0].state.salt);
  });

  it('tell the reasons of the one that makes the plans, and nothing else of its admin API', async () => {
    const sites = await twoSites();
    const one = await sites[0].start();
    await sites[1].start();
    const explain = (accept: string) =>
      fetch(`${sites[1].admin}/v1/explain?frontend=f&engine=a`, { headers: { accept } });
    expect(await (await explain('application/json')).json()).toMatchObject({ planId: one.plan!.id });
    const words = await explain('text/plain');
    expect(words.headers.get('content-type')).toMatch(/^text\/plain/);
    expect(await words.text()).toContain('Engine a is');
    const unknown = await fetch(`${sites[1].admin}/v1/explain?frontend=g`);
    expect(unknown.status).toBe(400);

    const ask = (path: string) =>
      fetch(`http://${sites[0].address}/v1/peer/admin`, {
        method: 'POST',
        headers: { authorization: 'Bearer a-token-for-the-fleet' },
        body: JSON.stringify({ path, accept: '*/*' }),
      });
    expect((await ask('/v1/explain?frontend=f&engine=a')).status).toBe(200);
    expect((await ask('/v1/config')).status).toBe(400);
    expect((await ask('/v1/explain/../config')).status).toBe(400);
  });

  it('agree on the plan and salt of the one that runs, also when the other comes back without its state', async () => {
    const sites = await twoSites();
    const one = await sites[0].start();
    const two = await sites[1].start();
    const { id } = one.plan!;
    await one.stop();
    const { salt } = sites[0].state;
    rmSync(join(folder, 'one.json'));
    const again = await sites[0].start();
    expect([again.plan!.id, two.plan!.id]).toEqual([id, id]);
    await again.stop();
    expect(sites[0].state.salt).toBe(salt);
  });

  it('raise no alarm for plans of before, when another makes them', async () => {
    const sites = await twoSites();
    await sites[0].start();
    const two = await sites[1].start();
    two.alarms.raise('planning', 'a solve failed while this server led');
    await vi.waitUntil(() => !two.alarms.list.some(({ id }) => id === 'planning'), PATIENCE_MS);
    expect(two.isPlanning).toBe(false);
  });

  it('say when they are configured otherwise, and may not hear each other with another token', async () => {
    const sites = await twoSites({ rps: 6 });
    const one = await sites[0].start();
    const two = await sites[1].start();
    await vi.waitUntil(() => isAlarmed(two, 'peer-differs', /another configuration/), PATIENCE_MS);
    expect(two.plan!.id).toBe(one.plan!.id);
    await two.stop();

    const stranger = (await twoSites({ token: 'another-token-than-that' }))[1];
    const third = await stranger.start();
    expect(third.isPlanning).toBe(true);
    const silent = await fetch(`http://${sites[0].address}/v1/peer`, { method: 'POST', body: '{}' });
    expect(silent.status).toBe(401);
  });

  it('raise alarms and take over also while the clock of the machine is behind what it has shown', async () => {
    const sites = await twoSites({ rps: 6 });
    const { now } = Date;
    let behindMs = 0;
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() - behindMs);
    afterwards(() => clock.mockRestore());
    const one = await sites[0].start();
    behindMs = 3_600_000;
    const two = await sites[1].start();
    await vi.waitUntil(() => isAlarmed(one, 'peer-differs', /another configuration/), PATIENCE_MS);
    behindMs = 7_200_000;
    await one.stop();
    await vi.waitUntil(() => two.isPlanning, PATIENCE_MS);
  });

  it('speak TLS, and show each other certificates where these are asked for', async () => {
    certify(new CertificateAuthority());
    const ports = await freePorts(6);
    const one = await new Site('one', ports.slice(0, 3), ports.slice(3), { extra: TLS }).start();
    const two = await new Site('two', ports.slice(3), ports.slice(0, 3), { extra: TLS }).start();
    expect(two.plan!.id).toBe(one.plan!.id);
    await vi.waitUntil(() => one.peerViews()[0]?.hasSameConfig === true, PATIENCE_MS);
    expect([one.isPlanning, two.isPlanning]).toEqual([true, false]);
  });

  it('go over to certificates of another authority without a restart, and go on to hear each other', async () => {
    certify(new CertificateAuthority());
    const ports = await freePorts(6);
    const one = await new Site('one', ports.slice(0, 3), ports.slice(3), { extra: TLS }).start();
    const two = await new Site('two', ports.slice(3), ports.slice(0, 3), { extra: TLS }).start();
    const next = new CertificateAuthority();
    const own = certify(next);
    for (const port of [ports[0]!, ports[1]!, ports[3]!, ports[4]!]) {
      await vi.waitUntil(() => speaksTls(port, { ...own, ca: next.certificate }), PATIENCE_MS);
    }
    const renewedMs = performance.now();
    const isHeardSince = (server: ControlServer) =>
      server.peerViews().every(({ ageSeconds }) => ageSeconds! * 1_000 < performance.now() - renewedMs);
    await vi.waitUntil(() => isHeardSince(one) && isHeardSince(two), PATIENCE_MS);
    await vi.waitUntil(() => [one, two].every(({ alarms }) => alarms.list.length === 0), PATIENCE_MS);
  });
});
