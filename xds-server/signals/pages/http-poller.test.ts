import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:https';
import { type AddressInfo, createServer as createNetServer, type Socket } from 'node:net';
import { afterEach, expect, it, vi } from 'vitest';
import { CertificateAuthority } from '../../../test/conformance/certificates.js';
import { noFault } from '../../../test/no-fault.js';
import { PATIENCE_MS } from '../../../test/patience.js';
import type { Upstream } from '../../fleet/upstream.js';
import { HttpPoller, type PollAnswer } from './http-poller.js';

const OPEN = 'Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\n';
const authority = new CertificateAuthority();
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function startEngine(): Promise<{ address: string; authorizations: (string | undefined)[] }> {
  const { certificate, key } = authority.issue('engines.example');
  const authorizations: (string | undefined)[] = [];
  const server = createServer({ cert: certificate, key }, (request, response) => {
    authorizations.push(request.headers.authorization);
    response.end('page');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, authorizations };
}

/** Says what it is told to, byte for byte, and then closes the connection if it is to. */
async function startRaw(said: string, closes: boolean): Promise<string> {
  const server = createNetServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      socket.write(said.replaceAll('\n', '\r\n'), 'latin1');
      if (closes) socket.end();
      cleanups.push(() => socket.destroy());
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The first answer. */
function ask(address: string, upstream: Upstream = {}, timeoutMs = PATIENCE_MS): Promise<PollAnswer> {
  return new Promise((resolve) => {
    const poller = new HttpPoller({
      intervalMs: 60_000,
      timeoutMs,
      maxBytes: 100,
      onFault: noFault,
      onAnswer: (_target, answer) => {
        resolve(answer);
        return undefined;
      },
    });
    cleanups.push(() => poller.stop());
    poller.setTargets([{ engineId: 'a', address, asked: address, path: '/', upstream }]);
  });
}

it('asks over TLS for the name that is configured, and shows the credentials', async () => {
  const { address, authorizations } = await startEngine();
  const answer = await ask(address, {
    tls: { sni: 'engines.example', ca: authority.certificate.toString() },
    auth: { header: 'authorization', value: 'Bearer s3cret' },
  });
  expect(answer).toEqual({ status: 200, body: 'page' });
  expect(authorizations).toEqual(['Bearer s3cret']);
});

it('takes no answer of a server whose certificate is for another name or by another authority', async () => {
  const { address, authorizations } = await startEngine();
  const otherName = { sni: 'other.example', ca: authority.certificate.toString() };
  const otherAuthority = { sni: 'engines.example', ca: new CertificateAuthority().certificate.toString() };
  for (const tls of [otherName, otherAuthority]) {
    expect(await ask(address, { tls })).toMatchObject({ failure: 'other' });
  }
  expect(authorizations).toEqual([]);
});

it.each<[string, string, boolean, object]>([
  ['one of HTTP/1.0 that ends with the connection', 'HTTP/1.0 200 OK\n\na 1\n', true, { body: 'a 1\r\n' }],
  ['one in chunks', 'HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n3\na 1\n0\n\n', false, { body: 'a 1' }],
  [
    'one of OpenMetrics',
    `HTTP/1.1 200 OK\n${OPEN}Content-Length: 10\n\na 1\n# EOF`,
    false,
    { body: 'a 1\r\n# EOF' },
  ],
  ['half of one of HTTP/1.0', 'HTTP/1.0 200 OK\n\na 1\nb 1', true, { detail: 'the page is cut off' }],
  ['half of one by its length', 'HTTP/1.1 200 OK\nContent-Length: 9\n\na 1', true, { failure: 'broken' }],
  [
    'half of one in chunks',
    'HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n3\na 1\n',
    true,
    { failure: 'broken' },
  ],
  [
    'half of one of OpenMetrics',
    `HTTP/1.1 200 OK\n${OPEN}Content-Length: 3\n\na 1`,
    false,
    { detail: 'the page is cut off' },
  ],
  ['one that never ends', 'HTTP/1.1 200 OK\nContent-Length: 99\n\na 1', false, { failure: 'timeout' }],
  ['none at all', '', false, { failure: 'timeout' }],
  [
    'one that is too long',
    `HTTP/1.1 200 OK\nContent-Length: 101\n\n${'a'.repeat(101)}`,
    false,
    { detail: /longer than 100/ },
  ],
  [
    'a compressed one',
    'HTTP/1.1 200 OK\nContent-Encoding: gzip\nContent-Length: 1\n\nx',
    false,
    { detail: /gzip/ },
  ],
  [
    'a redirect',
    'HTTP/1.1 307 No\nLocation: /metrics/\nContent-Length: 0\n\n',
    false,
    { status: 307, location: '/metrics/' },
  ],
  ['a refusal', 'HTTP/1.1 401 No\nContent-Length: 1\n\nx', false, { status: 401 }],
  ['endless headers', `HTTP/1.1 200 OK\nX: ${'x'.repeat(1e5)}\n\n`, false, { failure: 'other' }],
  ['no HTTP', 'SSH-2.0-OpenSSH_9.6\n', false, { failure: 'other' }],
])('takes of pages what is one: %s', async (_, said, closes, expected) => {
  const { detail, failure } = expected as { detail?: unknown; failure?: string };
  const timeoutMs = failure === 'timeout' ? 200 : PATIENCE_MS;
  const answer = await ask(await startRaw(said, closes), {}, timeoutMs);
  expect(answer).toMatchObject({
    ...expected,
    ...(detail instanceof RegExp && { detail: expect.stringMatching(detail) }),
  });
});

it('gives up on a page that comes byte by byte when its time is up, and keeps to it', async () => {
  const server = createNetServer((socket) => {
    socket.on('error', () => {});
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n');
    const timer = setInterval(() => socket.write('a'), 20);
    socket.once('close', () => clearInterval(timer));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => server.close());
  const answer = await ask(`127.0.0.1:${(server.address() as AddressInfo).port}`, {}, 200);
  expect(answer).toEqual({ failure: 'timeout', detail: 'no answer within 200 ms' });
});

it('of many targets that are due at the same time it asks a few at a time, and lets everything else have its turn in between', async () => {
  const address = await startRaw('HTTP/1.1 204 No Content\n\n', false);
  const targets = Array.from({ length: 300 }, (_, at) => ({
    ...{ engineId: `e${at}`, address, asked: address, path: '/' },
  }));
  const askedInTurns = [0];
  const count = () => {
    askedInTurns[askedInTurns.length - 1]!++;
  };
  subscribe('undici:request:create', count);
  cleanups.push(() => unsubscribe('undici:request:create', count));
  const poller = new HttpPoller({
    intervalMs: 60_000,
    timeoutMs: 60_000,
    maxBytes: 0,
    onAnswer: () => undefined,
    onFault: noFault,
  });
  cleanups.push(() => poller.stop());
  poller.setTargets(targets);
  // All are due when this is over.
  const endMs = performance.now() + 200;
  while (performance.now() < endMs);
  while (askedInTurns.reduce((sum, asked) => sum + asked) < targets.length) {
    await new Promise((resolve) => setImmediate(resolve));
    askedInTurns.push(0);
  }
  expect(Math.max(...askedInTurns)).toBeLessThanOrEqual(32);
});

it('keeps one connection to a target, and none to one that left', async () => {
  const open = new Set<Socket>();
  let connections = 0;
  let asked = 0;
  const server = createHttpServer((_request, response) => {
    asked++;
    response.end();
  });
  server.keepAliveTimeout = 600_000;
  server.on('connection', (socket) => {
    connections++;
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => server.close());
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const poller = new HttpPoller({
    intervalMs: 20,
    timeoutMs: PATIENCE_MS,
    maxBytes: 0,
    onAnswer: () => undefined,
    onFault: noFault,
  });
  cleanups.push(() => poller.stop());
  poller.setTargets([{ engineId: 'a', address, asked: address, path: '/' }]);
  await vi.waitUntil(() => asked > 10, PATIENCE_MS);
  expect([connections, open.size]).toEqual([1, 1]);
  poller.setTargets([]);
  await vi.waitUntil(() => open.size === 0, PATIENCE_MS);
});

it('a target whose answer could not be taken is asked again', async () => {
  const { address, authorizations } = await startEngine();
  const faults: unknown[] = [];
  const poller = new HttpPoller({
    intervalMs: 10,
    timeoutMs: PATIENCE_MS,
    maxBytes: 0,
    onAnswer: () => {
      throw new RangeError('Invalid time value');
    },
    onFault: (error) => faults.push(error),
  });
  cleanups.push(() => poller.stop());
  const upstream = { tls: { sni: 'engines.example', ca: authority.certificate.toString() } };
  poller.setTargets([{ engineId: 'a', address, asked: address, path: '/', upstream }]);
  await vi.waitUntil(() => faults.length > 2, PATIENCE_MS);
  expect(authorizations.length).toBeGreaterThan(2);
});
