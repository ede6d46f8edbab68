import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it, vi } from 'vitest';
import { PATIENCE_MS } from '../../test/patience.js';
import type { TlsSettings } from '../config/config.js';
import { PeerLink } from './peer-link.js';
import { encodeNews } from './peer-news.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function linkTo(listener: RequestListener, tls?: TlsSettings): Promise<PeerLink> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const target = { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
  const link = new PeerLink({
    target,
    instance: 'i',
    onNews: () => undefined,
    now: Date.now,
    ...(tls && { tls }),
  });
  cleanups.push(() => link.stop());
  return link;
}

it('an answer without an end is given up at its largest size, and the reason is told', async () => {
  const piece = Buffer.alloc(4 << 20, 'x');
  let sent = 0;
  const link = await linkTo((_request, response) => {
    const send = (): void => {
      if (response.destroyed) return;
      sent += piece.length;
      response.write(piece, send);
    };
    send();
  });
  expect(await link.ask()).toBeUndefined();
  expect(link.problem).toMatch(/max size/);
  expect(sent).toBeLessThan(128 << 20);
});

it('an answer in small pieces without an end is given up in time', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  let hasBegun = false;
  const link = await linkTo((_request, response) => {
    response.write(' ');
    hasBegun = true;
  });
  const asked = link.ask();
  while (link.problem === null) {
    await new Promise((resolve) => setImmediate(resolve));
    if (hasBegun) await vi.advanceTimersByTimeAsync(100);
  }
  expect(await asked).toBeUndefined();
  expect(link.problem).toMatch(/in time/);
});

it('a peer without TLS is told of as such', async () => {
  const link = await linkTo((_request, response) => response.end(), { cert: '', key: '' });
  expect(await link.ask()).toBeUndefined();
  expect(link.problem).toBe('it speaks no TLS, as this server does');
});

it('an address at which a server met itself is asked again: another one may have it later', async () => {
  let instance = 'i';
  const link = await linkTo((_request, response) => {
    const claim = { instance, term: 1, leads: true, sinceMs: 1 };
    const known = { instance, reports: 0, state: 0, live: 0 };
    const orders = { drains: [], orders: [], actions: [] };
    response.end(encodeNews({ claim, known, configId: 'c', planSequence: null, orders, reports: [] }));
  });
  link.start();
  await vi.waitUntil(() => link.isSelf, PATIENCE_MS);
  instance = 'j';
  await vi.waitUntil(() => !link.isSelf, PATIENCE_MS);
  await vi.waitUntil(() => link.heardMs !== undefined, PATIENCE_MS);
});
