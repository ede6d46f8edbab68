import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { CertificateAuthority } from '../../test/conformance/certificates.js';
import type { Upstream } from '../fleet/upstream.js';
import { HttpPoller, type PollAnswer } from './http-poller.js';

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

/** The first answer. */
function ask(address: string, upstream: Upstream): Promise<PollAnswer> {
  return new Promise((resolve) => {
    const poller = new HttpPoller({
      intervalMs: 60_000,
      timeoutMs: 5_000,
      maxBytes: 100,
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
