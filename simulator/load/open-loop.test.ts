import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { EngineServer } from '../engine/http-server.js';
import { engineKinds } from '../engine/parameters.js';
import type { ChatResult } from './chat-request.js';
import type { Turn } from './conversations.js';
import { openLoop } from './open-loop.js';

const closing: (() => Promise<unknown> | unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function engine(): Promise<string> {
  const parameters = { ...engineKinds['sim-100']!, stepBaseSeconds: 0.0005 };
  const server = new EngineServer({ id: 'a', models: ['m'], parameters, oneWayDelayMs: new Map() });
  const { port } = await server.listen('127.0.0.1', 0);
  closing.push(() => server.close());
  return `http://127.0.0.1:${port}`;
}

async function stub(answer: Parameters<typeof createServer>[1]): Promise<string> {
  const server: Server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const turn = (index: number, atSeconds: number, change: Partial<Turn> = {}): Turn => ({
  conversationId: 'c',
  index,
  atSeconds,
  messageTokens: 50,
  outputTokens: 8,
  streamed: index % 2 === 0,
  last: false,
  ...change,
});

async function run(url: string, turns: Turn[], timeoutMs = 10_000): Promise<ChatResult[]> {
  const results = new Map<Turn, ChatResult>();
  await openLoop(
    { url, model: 'm', timeoutMs, turns, onTurn: (sent) => (result) => results.set(sent, result) },
    new AbortController().signal,
  );
  return turns.map((sent) => results.get(sent)!);
}

describe('openLoop', () => {
  it('plays a conversation whose turns find the ones before them in the cache', async () => {
    // Each is answered long before the next is due.
    const results = await run(
      await engine(),
      [0, 2, 4].map((at, index) => turn(index, at)),
    );
    expect(results.map(({ end, status }) => [end, status])).toEqual(Array(3).fill(['answered', 200]));
    expect(results.map(({ content }) => content.length)).toEqual([32, 32, 32]);
    // A message of 50 tokens after its role, the role of the answer, and 8 tokens of each answer before.
    expect(results.map(({ promptTokens }) => promptTokens)).toEqual([52, 112, 172]);
    expect(results.map(({ cachedTokens }) => cachedTokens)).toEqual([0, 48, 112]);
    expect(results.map(({ firstTokenMs }) => firstTokenMs !== undefined)).toEqual([true, false, true]);
  });

  it('sends turns when they are due, whether or not earlier ones are answered', async () => {
    const held: (() => void)[] = [];
    const url = await stub((_, response) => {
      held.push(() => response.writeHead(429).end('{}'));
      if (held.length === 3) for (const answer of held) answer();
    });
    const results = await run(
      url,
      [0, 0.01, 0.02].map((at, index) => turn(index, at)),
    );
    expect(results.map(({ end }) => end)).toEqual(['shed', 'shed', 'shed']);
  });

  it('tells refusals, errors, broken answers and time-outs apart', async () => {
    const url = await stub((request, response) => {
      let body = '';
      request.on('data', (chunk) => {
        body += chunk;
      });
      request.on('end', () => {
        const { max_tokens } = JSON.parse(body) as { max_tokens: number };
        if (max_tokens === 1) response.writeHead(503).end('full');
        if (max_tokens === 2) response.writeHead(200).end('data: {"choices":[]}\n\n');
        if (max_tokens === 3) response.writeHead(200).flushHeaders();
        if (max_tokens === 4) response.destroy();
      });
    });
    const asking = (...outputTokens: number[]) =>
      outputTokens.map((tokens) =>
        turn(0, 0, { conversationId: `c${tokens}`, outputTokens: tokens, last: true }),
      );
    const results = await run(url, asking(1, 2, 4));
    expect(results.map(({ end, status }) => [end, status])).toEqual([
      ['error', 503],
      ['error', 200],
      ['error', undefined],
    ]);
    expect(results[0]!.detail).toBe('503 full');
    // Long enough for the headers.
    const [late] = await run(url, asking(3), 2_000);
    expect([late!.end, late!.status]).toEqual(['timeout', 200]);
    expect(late!.elapsedMs).toBeGreaterThanOrEqual(1_999);
  });

  it('ends at once when it is stopped', async () => {
    const url = await stub(() => {});
    const stopping = new AbortController();
    const turns = [turn(0, 0), turn(1, 1e6)];
    const onTurn = () => {
      setTimeout(() => stopping.abort(), 20);
      return () => {};
    };
    await openLoop({ url, model: 'm', timeoutMs: 1e6, turns, onTurn }, stopping.signal);
    expect(stopping.signal.aborted).toBe(true);
  });
});
