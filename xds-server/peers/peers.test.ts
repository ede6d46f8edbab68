import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it, vi } from 'vitest';
import { PATIENCE_MS } from '../../test/patience.js';
import { noRelief } from '../plan/protection/relief.js';
import { SILENT_MS } from './leadership.js';
import { NOTHING_KNOWN } from './peer-board.js';
import { decodeNews, encodeNews, encodeQuestion, type PeerNews } from './peer-news.js';
import { Peers } from './peers.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const news: PeerNews = {
  claim: { instance: 'other', term: 0, leads: false, sinceMs: 0 },
  known: { instance: 'other', reports: 1, state: 0, live: 0 },
  configId: 'c',
  planSequence: null,
  orders: { drains: [], orders: [], actions: [] },
  reports: [{ kind: 'report', frontendId: 'f', nodeId: 'n', bytes: new Uint8Array([1]) }],
};

it('that a peer which was silent is heard again is told before what it says, and only then', async () => {
  const server = createServer((_request, response) => response.end(encodeNews(news)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  let nowMs = 0;
  const target = { host: '127.0.0.1', port };
  const peers = new Peers({ server: { peers: [{ xds: target, sync: target }] }, now: () => nowMs });
  cleanups.push(() => peers.stop());
  const events: string[] = [];
  peers.start({
    own: () => ({ configId: 'c', planSequence: null, orders: news.orders }),
    onHeardAgain: () => events.push('heard again'),
    onReport: () => events.push('report'),
    onOrders: () => undefined,
    onChange: () => undefined,
  });
  await vi.waitUntil(() => events.length >= 2, PATIENCE_MS);
  expect(new Set(events)).toEqual(new Set(['report']));
  const before = events.length;
  nowMs = SILENT_MS;
  await vi.waitUntil(() => events.length >= before + 3, PATIENCE_MS);
  const since = events.slice(events.indexOf('heard again'));
  expect(since.slice(0, 2)).toEqual(['heard again', 'report']);
  expect(events.filter((event) => event === 'heard again')).toHaveLength(1);
});

it('who ends says from then on that it makes no plans, however long it is asked', async () => {
  const peers = new Peers({ server: { peers: [] }, now: () => SILENT_MS });
  peers.start({
    own: () => ({ configId: 'c', planSequence: null, orders: news.orders }),
    onHeardAgain: () => undefined,
    onReport: () => undefined,
    onOrders: () => undefined,
    onChange: () => undefined,
  });
  const question = encodeQuestion({ instance: 'other', known: NOTHING_KNOWN });
  const leads = async () => decodeNews(await peers.answer(question, AbortSignal.abort())).claim.leads;
  expect(peers.decide(SILENT_MS)).toBe(true);
  expect(await leads()).toBe(true);
  await peers.stop();
  expect(await leads()).toBe(false);
});

it('a peer counts with the clusters that its Envoys have and the pools that its snapshots name, also after a restart, until it says else or is gone for an hour', async () => {
  const pools = { connected: ['n'], given: ['p', 'q'], named: ['p'] };
  const live = { engines: [], relief: noRelief };
  let told = encodeNews({ ...news, live, pools });
  const server = createServer((_request, response) => response.end(told));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const target = { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
  const peers = new Peers({ server: { peers: [{ xds: target, sync: target }] }, now: () => 0 });
  cleanups.push(() => server.close());
  expect(peers.lacksPools('n', ['r'], 0)).toBe(false);
  await peers.join();
  expect(peers.lacksPools('n', ['q', 'p'], 0)).toBe(false);
  expect(peers.lacksPools('n', ['p', 'r'], 0)).toBe(true);
  expect(peers.lacksPools('of another server', ['r'], 0)).toBe(false);
  expect([peers.namesPool('p', 0), peers.namesPool('q', 0)]).toEqual([true, false]);
  const counts = (nowMs: number) => [peers.lacksPools('n', ['r'], nowMs), peers.namesPool('p', nowMs)];
  expect([counts(3_600_000), counts(3_600_001)]).toEqual([
    [true, true],
    [false, false],
  ]);
  const again = { ...news, claim: { ...news.claim, instance: 'again' } };
  told = encodeNews(again);
  await peers.join();
  expect(counts(0)).toEqual([true, true]);
  // As a version says that does not tell of pools.
  told = encodeNews({ ...again, live });
  await peers.join();
  expect(counts(0)).toEqual([false, false]);
});
