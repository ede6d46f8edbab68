import { createServer, get, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { PATIENCE_MS } from '../../test/patience.js';
import { OpenCalls } from './open-calls.js';

describe('calls that wait for news', () => {
  let calls: OpenCalls;
  let port: number;
  let onCall: (response: ServerResponse) => void;
  const server = createServer((_, response) => onCall(response));
  const call = () => get({ port, host: '127.0.0.1', agent: false }).on('error', () => {});

  beforeEach(async () => {
    calls = new OpenCalls();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    ({ port } = server.address() as AddressInfo);
  });

  afterEach(async () => {
    vi.restoreAllMocks();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  it('leave nothing behind once they are answered', async () => {
    // What this makes stays for as long as the longest of its signals lives.
    const joined = vi.spyOn(AbortSignal, 'any');
    const signals: AbortSignal[] = [];
    for (let count = 0; count < 3; count++) {
      await new Promise((resolve) => {
        onCall = (response) => {
          signals.push(calls.untilClosed(response));
          response.once('close', resolve).end();
        };
        call().on('response', (response) => response.resume());
      });
    }
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, true]);
    expect(calls.size).toBe(0);
    expect(joined).not.toHaveBeenCalled();
  });

  it('end when the caller leaves', async () => {
    const signal = await new Promise<AbortSignal>((resolve) => {
      onCall = (response) => resolve(calls.untilClosed(response));
      const request = call();
      server.once('request', () => request.destroy());
    });
    await vi.waitUntil(() => signal.aborted, PATIENCE_MS);
    expect(calls.size).toBe(0);
  });

  it('end when the server stops, and at once when they come after that', async () => {
    const signals: AbortSignal[] = [];
    onCall = (response) => signals.push(calls.untilClosed(response));
    call();
    await vi.waitUntil(() => signals.length === 1, PATIENCE_MS);
    expect(signals[0]!.aborted).toBe(false);
    calls.endAll();
    expect(signals[0]!.aborted).toBe(true);
    call();
    await vi.waitUntil(() => signals.length === 2, PATIENCE_MS);
    expect(signals[1]!.aborted).toBe(true);
    expect(calls.size).toBe(0);
  });
});
