import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { type ChatResult, chat } from './chat-request.js';
import type { Turn } from './conversations.js';
import { Transcript } from './transcript.js';

export interface OpenLoopOptions {
  /** Base URL of the frontend. */
  readonly url: string;
  readonly model: string;
  readonly timeoutMs: number;
  /** By time, in seconds from the start; ends when the load does. */
  readonly turns: Iterable<Turn>;
  /** Called when a turn is sent; what it returns hears how the request ended. */
  readonly onTurn: (turn: Turn) => OnResult;
}

/** Times in the result count from when the request was due, not from when it was sent. */
export type OnResult = (result: ChatResult) => void;

/** Sends every turn at its time, however the ones before it fare; resolves when all have ended or been stopped. */
export async function openLoop(options: OpenLoopOptions, signal: AbortSignal): Promise<void> {
  const pool = new Pool(options.url, { connections: null, pipelining: 1 });
  const transcripts = new Map<string, Transcript>();
  const underWay = new Set<Promise<void>>();
  const startedAt = performance.now();

  const send = async (turn: Turn) => {
    const onResult = options.onTurn(turn);
    const { conversationId } = turn;
    const transcript = transcripts.get(conversationId) ?? new Transcript();
    if (turn.last) transcripts.delete(conversationId);
    else transcripts.set(conversationId, transcript);
    const lateMs = Math.max(0, performance.now() - startedAt - turn.atSeconds * 1000);
    const result = await chat(pool, {
      model: options.model,
      sessionId: conversationId,
      messages: transcript.messagesFor(turn),
      outputTokens: turn.outputTokens,
      streamed: turn.streamed,
      timeoutMs: options.timeoutMs,
    });
    if (result.end === 'answered') transcript.answer(turn, result.content);
    onResult({
      ...result,
      elapsedMs: result.elapsedMs + lateMs,
      firstTokenMs: result.firstTokenMs === undefined ? undefined : result.firstTokenMs + lateMs,
    });
  };

  for (const turn of options.turns) {
    const waitMs = startedAt + turn.atSeconds * 1000 - performance.now();
    if (waitMs > 0) await sleep(waitMs, undefined, { signal }).catch(() => {});
    if (signal.aborted) break;
    const sent = send(turn).finally(() => underWay.delete(sent));
    underWay.add(sent);
  }
  await Promise.race([Promise.all(underWay), aborted(signal)]);
  await pool.destroy();
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
