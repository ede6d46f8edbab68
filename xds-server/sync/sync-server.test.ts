import { request as httpRequest } from 'node:http';
import { Agent, request } from 'undici';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { CertificateAuthority } from '../../test/conformance/certificates.js';
import { PATIENCE_MS } from '../../test/patience.js';
import { encodeDisplaced } from '../../wire/displaced-writer.js';
import { DISPLACED_CURSOR } from '../../wire/layout.js';
import {
  INLINE_SNAPSHOT_VERSION,
  SYNC_DISPLACED_HEADER,
  SYNC_FRONTEND_HEADER,
  SYNC_NODE_HEADER,
  SYNC_PATH,
  SYNC_SNAPSHOT_HEADER,
} from '../../wire/names.js';
import { decodeSnapshot } from '../../wire/snapshot-reader.js';
import { noPoolUsage, noVmUsage, type UsageReport } from '../../wire/usage-report.js';
import { encodeUsageReport } from '../../wire/usage-report-writer.js';
import { now } from '../steady-clock.js';
import { holdMs, urgentHoldMs } from './hold.js';
import { SnapshotBoard, type SnapshotContent } from './snapshot-board.js';
import { SyncServer, type SyncServerOptions } from './sync-server.js';

const report: UsageReport = {
  vms: [
    {
      ...noVmUsage(7n),
      pools: [{ ...noPoolUsage(1n), offered: 3 }],
    },
  ],
};

function content(planId = '0123456789abcdef', frontendId = 'west'): SnapshotContent {
  return {
    planId,
    frontendId,
    salt: 'salt',
    models: [{ name: 'm', pool: 0 }],
    pools: [
      {
        id: 'm',
        cluster: 'm',
        engines: [0],
        segments: [{ start: 0, owner: 0, backup: -1 }],
        retryRatio: 0.2,
        shedFraction: 0,
      },
    ],
    engines: [{ id: 'a', replicas: [{ address: '127.0.0.1:9001', ready: true }] }],
  };
}

const running: SyncServer[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.stop()));
});

async function start(options: Partial<SyncServerOptions> = {}, board = new SnapshotBoard(Date.now)) {
  const reports: [string, string, UsageReport][] = [];
  const log = { info: vi.fn(), warn: vi.fn() };
  const server = new SyncServer({
    listen: '127.0.0.1:0',
    board,
    isFrontend: (id) => id === 'west' || id === 'east',
    onReport: (frontendId, nodeId, report) => {
      reports.push([frontendId, nodeId, report]);
      return false;
    },
    log,
    holdMs: 150,
    ...options,
  });
  const address = await server.start();
  running.push(server);
  const call = (
    held = 0,
    { headers = {}, body = encodeUsageReport(report), path = SYNC_PATH, method = 'POST' } = {} as {
      headers?: Record<string, string>;
      body?: Uint8Array;
      path?: string;
      method?: string;
    },
  ) =>
    fetch(`http://${address}${path}`, {
      method,
      headers: {
        [SYNC_NODE_HEADER]: 'envoy-1',
        [SYNC_FRONTEND_HEADER]: 'west',
        [SYNC_SNAPSHOT_HEADER]: String(held),
        ...headers,
      },
      ...(method === 'POST' ? { body: Buffer.from(body) } : {}),
    });
  return { board, reports, log, address, call, server };
}

async function versionOf(response: Response): Promise<number> {
  return decodeSnapshot(new Uint8Array(await response.arrayBuffer())).version;
}

it('GET /ready tells anyone whether there is a snapshot, and keeps the connection', async () => {
  const { board, address, reports } = await start({ token: 'a-token-that-envoys-have' });
  const ask = () => fetch(`http://${address}/ready`);
  expect((await ask()).status).toBe(503);
  board.publish(content());
  const ready = await ask();
  expect([ready.status, ready.headers.get('connection')]).toEqual([200, 'keep-alive']);
  expect(reports).toEqual([]);
});

it('POST /v1/peer is answered for those with the token, and is not there without other control servers', async () => {
  const token = 'a-token-that-servers-have';
  const onPeer = async (question: string) => `{"asked": ${question}}`;
  const { call } = await start({ token, onPeer });
  const path = '/v1/peer';
  const body = Buffer.from('1');
  expect((await call(0, { path, body })).status).toBe(401);
  const answer = await call(0, { path, body, headers: { authorization: `Bearer ${token}` } });
  expect(await answer.json()).toEqual({ asked: 1 });
  expect((await (await start()).call(0, { path, body })).status).toBe(404);
});

describe('POST /v1/sync', () => {
  it('takes the report and answers at once with a snapshot that the caller does not hold', async () => {
    const { board, reports, call } = await start();
    board.publish(content());
    const response = await call();
    expect(response.status).toBe(200);
    expect(response.headers.get(SYNC_SNAPSHOT_HEADER)).toBe(String(board.current('west')!.version));
    const view = decodeSnapshot(new Uint8Array(await response.arrayBuffer()));
    expect(view).toMatchObject({ ...content(), version: board.current('west')!.version });
    expect(reports).toEqual([['west', 'envoy-1', report]]);
  });

  it('leaves an Envoy with the snapshot of its bootstrap until it has the clusters that others name', async () => {
    let hasClusters = false;
    const { board, call } = await start({ hasClusters: (nodeId) => nodeId === 'envoy-1' && hasClusters });
    board.publish(content());
    expect((await call(INLINE_SNAPSHOT_VERSION)).status).toBe(503);
    expect((await call(0)).status).toBe(200);
    hasClusters = true;
    expect(await versionOf(await call(INLINE_SNAPSHOT_VERSION))).toBe(board.current('west')!.version);
  });

  it('leaves an Envoy with the snapshot that it has until it has the clusters of another, but gives one to a filter without any', async () => {
    let given: readonly string[] = [];
    const { board, call, reports } = await start({
      lacksPools: (nodeId, poolIds) => nodeId === 'envoy-1' && poolIds.some((id) => !given.includes(id)),
      holdMs: 500,
    });
    board.publish(content('00000000000000aa'));
    const held = board.current('west')!.version;
    const waiting = call(held);
    await vi.waitUntil(() => reports.length === 1, PATIENCE_MS);
    board.publish(content('00000000000000bb'));
    expect((await waiting).status).toBe(304);
    expect((await call(held)).status).toBe(304);
    expect((await call(0)).status).toBe(200);
    expect((await call(held, { headers: { [SYNC_NODE_HEADER]: 'envoy-2' } })).status).toBe(200);
    given = ['m'];
    expect(await versionOf(await call(held))).toBe(board.current('west')!.version);
  });

  it('holds a caller that has the newest snapshot, then answers 304', async () => {
    const { board, call } = await start();
    board.publish(content());
    expect((await call(board.current('west')!.version)).status).toBe(304);
  });

  it('answers a waiting caller as soon as its snapshot changes, and only for its frontend', async () => {
    const { board, call, reports } = await start({ holdMs: 60_000 });
    board.publish(content());
    const waiting = call(board.current('west')!.version);
    await vi.waitUntil(() => reports.length === 1, PATIENCE_MS);
    board.publish(content('00000000000000aa', 'east'));
    board.publish(content('00000000000000bb'));
    const response = await waiting;
    expect(response.status).toBe(200);
    expect(await versionOf(response)).toBe(board.current('west')!.version);
  });

  it('holds a caller only briefly when its next report is urgent', async () => {
    const { board, call } = await start({ holdMs: 60_000, onReport: (frontendId) => frontendId === 'west' });
    board.publish(content());
    expect((await call(board.current('west')!.version)).status).toBe(304);
  });

  it('asks for urgent reports ten times a second, and less often where reading them all would take more than a quarter of a core', () => {
    for (const callers of [1, 5, 10, 50, 200]) {
      for (const reportMs of [0, 0.1, 1, 3, 15]) {
        const urgentMs = urgentHoldMs(callers, reportMs);
        expect(urgentMs).toBeGreaterThanOrEqual(100);
        expect((callers * reportMs) / urgentMs).toBeLessThanOrEqual(0.25 + 1e-9);
        if (callers * reportMs <= 25) expect(urgentMs).toBe(100);
      }
    }
  });

  it('asks for reports twice a second, and up to half as often where reading them all would take more than half a core', () => {
    expect(holdMs(1, 0)).toBe(500);
    expect(holdMs(50, 5)).toBe(500);
    expect(holdMs(128, 3)).toBe(768);
    expect(holdMs(1_000, 4)).toBe(1_000);
  });

  it('has a caller wait longer by what reports take it, and never longer than a second', async () => {
    let passedMs = 0;
    const real = performance.now.bind(performance);
    const passed = vi.spyOn(performance, 'now').mockImplementation(() => real() + passedMs);
    const onReport = () => {
      passedMs += 4_800;
      return false;
    };
    const { board, call } = await start({ holdMs: undefined, onReport }, new SnapshotBoard(now));
    board.publish(content());
    const newerThan = vi.spyOn(board, 'newerThan').mockImplementation(async () => undefined);
    const waited = async () => {
      await call(board.current('west')!.version);
      return newerThan.mock.lastCall![2];
    };
    expect(await waited()).toBeGreaterThanOrEqual(600);
    expect(await waited()).toBe(1_000);
    passed.mockRestore();
  });

  it.each([2 ** 52, 2 ** 52 + 1, Number.MAX_SAFE_INTEGER])(
    'goes on issuing snapshots whatever version a caller claims to hold: %d',
    async (claimed) => {
      const { board, call } = await start();
      board.publish(content());
      const response = await call(claimed);
      expect(decodeSnapshot(new Uint8Array(await response.arrayBuffer()))).toMatchObject(content());
      const before = board.lastVersion;
      board.publish(content('00000000000000aa'));
      expect(board.lastVersion).toBeGreaterThan(before);
      expect(await versionOf(await call())).toBe(board.lastVersion);
    },
  );

  it('gives a caller from the future the present content under a newer version', async () => {
    const { board, call } = await start();
    board.publish(content());
    const future = board.current('west')!.version + 1_000_000;
    const response = await call(future);
    expect(response.status).toBe(200);
    expect(await versionOf(response)).toBeGreaterThan(future);
  });

  it('tells an Envoy, when it asks and there is no new snapshot, what others of its frontend have displaced', async () => {
    const { board, reports, call } = await start();
    board.publish(content());
    const held = board.current('west')!.version;
    const displaced = [2n, 4n];
    const asking = (node: string, known: string, of = report) =>
      call(held, {
        headers: { [SYNC_NODE_HEADER]: node, [SYNC_DISPLACED_HEADER]: known },
        body: encodeUsageReport(of),
      });
    expect((await asking('envoy-1', '0', { ...report, displaced })).status).toBe(304);
    expect(reports).toEqual([['west', 'envoy-1', report]]);
    expect((await call(held)).status).toBe(304);
    const response = await asking('envoy-2', '0');
    expect(response.status).toBe(200);
    const bytes = Buffer.from(await response.arrayBuffer());
    const cursor = Number(bytes.readBigUInt64LE(DISPLACED_CURSOR));
    expect(bytes).toEqual(Buffer.from(encodeDisplaced({ hashes: displaced, cursor })));
    expect((await asking('envoy-2', String(cursor))).status).toBe(304);
    expect((await asking('envoy-2', '0', { ...report, displaced: [6n] })).status).toBe(200);
    expect((await asking('envoy-1', '0')).status).toBe(200);
    expect((await asking('envoy-1', '-1')).status).toBe(400);
  });

  it('stops giving snapshots to a filter that takes none, says so once, and goes on to hear its reports', async () => {
    const { board, call, log, reports, server } = await start();
    board.publish(content());
    const newest = board.current('west')!.version;
    const statuses: number[] = [];
    for (let time = 0; time < 5; time++) statuses.push((await call(newest - 1)).status);
    expect(statuses).toEqual([200, 200, 200, 409, 409]);
    expect(reports).toHaveLength(5);
    expect(log.warn).toHaveBeenCalledOnce();
    expect(await (await call(newest - 1)).json()).toMatchObject({ code: 'WARDROP_SNAPSHOT_INVALID' });
    // The server's clock may be ahead of the machine's, where a test before has set that back.
    vi.useFakeTimers({ toFake: ['Date'], now: now() + 10_500 });
    onTestFinished(() => void vi.useRealTimers());
    await call(newest - 1);
    expect(server.unreadNodes(now()).get('envoy-1')).toContain(`holds on to version ${newest - 1}`);
  });

  it('takes an Envoy of which a former filter still calls for one that holds what the present one does', async () => {
    const { board, call } = await start();
    board.publish(content());
    const newest = board.current('west')!.version;
    for (const held of [newest, newest - 1]) await call(held);
    expect(board.holders()).toMatchObject([{ nodeId: 'envoy-1', version: newest }]);
  });

  it('gives a filter that has no snapshot one whenever it asks', async () => {
    const { board, call } = await start();
    board.publish(content());
    for (let time = 0; time < 6; time++) expect((await call(0)).status).toBe(200);
  });

  it('answers 503 while there is no plan, but takes the report', async () => {
    const { reports, call } = await start();
    const response = await call();
    expect(response.status).toBe(503);
    expect(response.headers.get('retry-after')).toBe('1');
    expect(reports).toHaveLength(1);
  });

  it('answers all that wait when it stops', async () => {
    const { board, call, reports, server } = await start({ holdMs: 60_000 });
    board.publish(content());
    const waiting = call(board.current('west')!.version);
    await vi.waitUntil(() => reports.length === 1, PATIENCE_MS);
    await server.stop();
    expect((await waiting).status).toBe(304);
  });

  it.each([
    ['an unknown frontend', { headers: { [SYNC_FRONTEND_HEADER]: 'nowhere' } }, 404, 'WARDROP_NODE_UNKNOWN'],
    ['no node', { headers: { [SYNC_NODE_HEADER]: '' } }, 400, 'WARDROP_REPORT_INVALID'],
    ['a version that is none', { headers: { [SYNC_SNAPSHOT_HEADER]: '-1' } }, 400, 'WARDROP_REPORT_INVALID'],
    ['a report that is none', { body: new Uint8Array([1, 2, 3]) }, 400, 'WARDROP_REPORT_INVALID'],
    ['an endless report', { body: new Uint8Array(8 * 2 ** 20 + 1) }, 413, undefined],
    ['another path', { path: '/v1/other' }, 404, undefined],
    ['another method', { method: 'GET' }, 404, undefined],
  ])('refuses %s with a reason and counts nothing', async (_name, options, status, code) => {
    const { reports, call } = await start();
    const response = await call(0, options);
    expect(response.status).toBe(status);
    const body = (await response.json()) as { code?: string; message: string };
    expect(body.code).toBe(code);
    expect(body.message).not.toBe('');
    expect(reports).toEqual([]);
  });

  it('ends the connection of a call that it has not read to its end, and of no other', async () => {
    const { call } = await start();
    const endless = await call(0, { body: new Uint8Array(8 * 2 ** 20 + 1) });
    expect([endless.status, endless.headers.get('connection')]).toEqual([413, 'close']);
    const garbled = await call(0, { body: new Uint8Array([1, 2, 3]) });
    expect([garbled.status, garbled.headers.get('connection')]).toEqual([400, 'keep-alive']);
  });

  it('lets nobody in without the token and never logs it', async () => {
    const { board, reports, call, log } = await start({ token: 'the-real-token-0123' });
    board.publish(content());
    expect((await call()).status).toBe(401);
    expect((await call(0, { headers: { authorization: 'Bearer another-token-4567' } })).status).toBe(401);
    expect(reports).toEqual([]);
    expect((await call(0, { headers: { authorization: 'Bearer the-real-token-0123' } })).status).toBe(200);
    expect(JSON.stringify(log.warn.mock.calls)).not.toMatch(/0123|4567/);
  });

  it('over TLS, serves only callers with a certificate of the authority', async () => {
    const authority = new CertificateAuthority();
    const pem = ({ certificate, key }: { certificate: Buffer; key: Buffer }) => ({
      cert: certificate.toString(),
      key: key.toString(),
    });
    const own = pem(authority.issue('127.0.0.1'));
    const clientCa = authority.certificate.toString();
    const { board, address } = await start({ tls: { ...own, clientCa } });
    board.publish(content());
    const sync = (client: object) => {
      const agent = new Agent({ connect: { ca: clientCa, ...client } });
      return request(`https://${address}${SYNC_PATH}`, {
        method: 'POST',
        headers: { [SYNC_NODE_HEADER]: 'envoy-1', [SYNC_FRONTEND_HEADER]: 'west' },
        body: encodeUsageReport(report),
        dispatcher: agent,
      }).finally(() => agent.close());
    };
    expect((await sync(pem(authority.issue('envoy')))).statusCode).toBe(200);
    await expect(sync({})).rejects.toThrow();
    await expect(sync(pem(new CertificateAuthority().issue('envoy')))).rejects.toThrow();
  });

  it('logs the refusals of a node once', async () => {
    const { call, log } = await start();
    for (let repeat = 0; repeat < 3; repeat++)
      await call(0, { headers: { [SYNC_FRONTEND_HEADER]: 'nowhere' } });
    expect(log.warn).toHaveBeenCalledTimes(1);
  });

  it('logs the refusals of one without the token once, whatever names it says', async () => {
    const { call, log } = await start({ token: 'the-real-token-0123' });
    for (let repeat = 0; repeat < 3; repeat++)
      await call(0, { headers: { [SYNC_NODE_HEADER]: `envoy-${repeat}` } });
    expect(log.warn).toHaveBeenCalledTimes(1);
  });

  it('survives a caller that leaves in the middle of its report, and counts no answer to it', async () => {
    const statuses: number[] = [];
    const { board, address, call, reports } = await start({ onAnswer: (status) => statuses.push(status) });
    board.publish(content());
    const [host, port] = address.split(':');
    const client = httpRequest({
      host,
      port,
      path: SYNC_PATH,
      method: 'POST',
      headers: { 'content-length': 1_000, [SYNC_NODE_HEADER]: 'n', [SYNC_FRONTEND_HEADER]: 'west' },
    });
    client.on('error', () => undefined);
    client.write('half');
    await new Promise((resolve) => setTimeout(resolve, 50));
    client.destroy();
    expect((await call()).status).toBe(200);
    expect(reports).toHaveLength(1);
    expect(statuses).toEqual([200]);
  });
});

describe('SnapshotBoard', () => {
  it('issues nothing when the content is the same', () => {
    const board = new SnapshotBoard(() => 1_000);
    expect(board.publish(content())).toBe(true);
    expect(board.publish(content())).toBe(false);
    expect(board.publish(content('00000000000000bb'))).toBe(true);
  });

  it('versions grow when the clock stands still or goes back, and over a restart', () => {
    let nowMs = 5_000;
    const board = new SnapshotBoard(() => nowMs);
    board.publish(content('00000000000000aa'));
    nowMs = 4_000;
    board.publish(content('00000000000000bb'));
    expect(board.lastVersion).toBe(5_001);
    const restarted = new SnapshotBoard(() => nowMs, board.lastVersion);
    restarted.publish(content());
    expect(restarted.current('west')!.version).toBe(5_002);
  });

  it('is taken once all Envoys of the frontend hold it that have called within five seconds', () => {
    let nowMs = 10_000;
    const board = new SnapshotBoard(() => nowMs);
    board.publish(content());
    board.noteHolder('west', 'gone', 0);
    board.noteHolder('east', 'other', 0);
    expect(board.isTaken('west')).toBe(false);
    nowMs += 5_001;
    board.noteHolder('west', 'here', 0);
    expect(board.isTaken('west')).toBe(false);
    board.noteHolder('west', 'here', board.current('west')!.version);
    expect(board.isTaken('west')).toBe(true);
  });
});
