import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { sendPieces } from './send-pieces.js';

let answer: (response: ServerResponse) => Promise<void>;
let answered: Promise<void>;
const server = createServer((_request, response) => {
  answered = answer(response);
});

beforeEach(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});

afterEach(async () => {
  vi.restoreAllMocks();
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

async function ask(): Promise<IncomingMessage> {
  const { port } = server.address() as AddressInfo;
  const [message] = await once(get({ host: '127.0.0.1', port, agent: false }), 'response');
  return message as IncomingMessage;
}

/** As if each piece took so long. */
function taking(ms: number): void {
  let nowMs = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => {
    nowMs += ms;
    return nowMs;
  });
}

function* pieces(count: number, piece: string, onPiece?: () => void): Generator<string> {
  for (let at = 0; at < count; at++) {
    onPiece?.();
    yield piece;
  }
}

it('lets the event loop go on again and again while a long text is made', async () => {
  taking(10);
  let turns = 0;
  const turn = () => {
    turns++;
    timer = setImmediate(turn);
  };
  let timer = setImmediate(turn);
  const seen = new Set<number>();
  answer = (response) =>
    sendPieces(
      response,
      pieces(100, 'abc', () => seen.add(turns)),
    );
  expect(await text(await ask())).toBe('abc'.repeat(100));
  clearImmediate(timer);
  await answered;
  expect(seen.size).toBeGreaterThanOrEqual(30);
});

it('sends what is made at once with its length', async () => {
  taking(0);
  answer = (response) => sendPieces(response, pieces(3, 'ä'));
  const message = await ask();
  expect(message.headers['content-length']).toBe('6');
  expect(await text(message)).toBe('äää');
});

it('makes no more than a reader takes, and nothing for one that has left', async () => {
  taking(20);
  let made = 0;
  const big = 'x'.repeat(1024 * 1024);
  answer = (response) =>
    sendPieces(
      response,
      pieces(1_000, big, () => made++),
    );
  const message = await ask();
  await once(message, 'readable');
  message.destroy();
  await answered;
  expect(made).toBeLessThan(500);
});

it('an error before anything is sent is left to whoever asked for it', async () => {
  answer = async (response) => {
    await sendPieces(response, failing()).catch((error) => response.end(String(error)));
  };
  expect(await text(await ask())).toBe('Error: no');
});

// biome-ignore lint/correctness/useYield: it fails before
function* failing(): Generator<string> {
  throw new Error('no');
}
