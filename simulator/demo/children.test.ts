import { mkdtempSync, rmSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { addressesFrom, requireFree } from './addresses.js';
import { Children } from './children.js';

const signal = new AbortController().signal;
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'wardrop-children-'));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function start(script: string): { children: Children; failure: Promise<Error> } {
  let children!: Children;
  const failure = new Promise<Error>((resolve) => {
    children = new Children(folder, resolve);
    children.start('a child', process.execPath, ['-e', script]);
  });
  return { children, failure };
}

describe('Children', () => {
  it('reports one that ends by itself, with the end of its log', async () => {
    const { failure } = start("console.log('line 1'); console.error('the reason'); process.exit(7)");
    const { message } = await failure;
    expect(message).toContain('a child ended by itself (status 7)');
    expect(message).toContain('  line 1\n  the reason');
  });

  it('reports one that cannot be started', async () => {
    const failure = await new Promise<Error>((resolve) => {
      new Children(folder, resolve).start('a child', join(folder, 'nothing'), []);
    });
    expect(failure.message).toContain('a child cannot be started');
  });

  it('does not report one that it stops itself', async () => {
    const { children, failure } = start('setInterval(() => {}, 1000)');
    await children.stopAll();
    expect(await Promise.race([failure, 'nothing'])).toBe('nothing');
  });

  it('takes one for ready when its URL answers with success', async () => {
    const statuses = [503, 404, 200];
    const server = createHttpServer((_, response) => response.writeHead(statuses.shift()!).end());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const children = new Children(folder, () => {});
    const child = children.start('a child', process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
    await child.ready(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, signal);
    expect(statuses).toEqual([]);
    await children.stopAll();
    server.close();
  });
});

describe('requireFree', () => {
  it('names the address that is taken, and what it is for', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const addresses = {
      ...addressesFrom(port),
      xds: '127.0.0.1:0',
      sync: '127.0.0.1:0',
      admin: `127.0.0.1:${port}`,
    };
    await expect(requireFree(addresses)).rejects.toThrow(
      new RegExp(`127\\.0\\.0\\.1:${port} \\(API of the control server\\).*--base-port`),
    );
    await new Promise((resolve) => server.close(resolve));
  });
});
