import type { IncomingHttpHeaders } from 'node:http';
import { Client } from 'undici';
import type { Address } from '../../fleet/fleet.js';
import type { Upstream } from '../../fleet/upstream.js';
import type { ProbeFailure } from '../readiness/replica-health.js';
import { StallWatch } from './stall-watch.js';

export interface PollTarget {
  readonly engineId: string;
  /** The replica that it is about. */
  readonly address: Address;
  /** Where it is asked. */
  readonly asked: Address;
  readonly path: string;
  /** Plain HTTP when absent. */
  readonly upstream?: Upstream;
}

/** A body is given byte by byte (Latin-1), which is all that metric names and numbers need. */
export type PollAnswer =
  | {
      readonly status: number;
      readonly body: string;
      /** Where it sends callers, which is not followed. */
      readonly location?: string;
    }
  | { readonly failure: PollFailure; readonly detail: string };

/** `unasked`: this process had nothing left to ask with, which says nothing of who was to be asked. */
export type PollFailure = ProbeFailure | 'unasked';

export interface PollerOptions {
  /** Milliseconds between two requests to a target, give or take 20 %. */
  readonly intervalMs: number;
  /** Milliseconds from connecting to the end of the body. */
  readonly timeoutMs: number;
  /** Longest body that is read, in bytes, a longer one being a failure; 0 when bodies do not matter. */
  readonly maxBytes: number;
  /** Takes an answer; a number is the milliseconds to the next request instead of `intervalMs`. */
  readonly onAnswer: (target: PollTarget, answer: PollAnswer) => number | undefined;
  /** Takes what `onAnswer` throws; the target is asked again as if nothing had happened. */
  readonly onFault: (error: unknown) => void;
}

/** What is thrown away of a body that does not matter; more of it costs the connection. */
const DUMPED_BYTES = 64 * 1024;
/** First requests are spread over this time. */
const START_SPREAD_MS = 50;
const JITTER = 0.2;
/** So many that are due at the same time are asked before everything else has its turn. */
const MOST_AT_ONCE = 32;
/** What the system says when this process, or the whole machine, has too many open files or no memory. */
const OWN_LACK = new Set<unknown>(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM']);
/** After a stall of our own, the request is repeated this soon. */
const STALL_RETRY_MS = 100;

/** What an overdue request ends with: one for all, as an error of its own for each would cost more than asking. */
const OVERDUE = new Error('no answer in time');

interface Polled {
  readonly key: string;
  readonly target: PollTarget;
  /** Lasts as long as the target, whether it can be reached or not. */
  readonly client: Client;
  timer: NodeJS.Timeout | undefined;
}

/** Asks every target again and again over one kept connection each, on a schedule that never gets into step. */
export class HttpPoller {
  readonly #options: PollerOptions;
  readonly #stalls = new StallWatch();
  readonly #polled = new Map<string, Polled>();
  #due: Polled[] = [];

  constructor(options: PollerOptions) {
    this.#options = options;
  }

  /** Replaces the targets; those that stay keep their schedule. */
  setTargets(targets: readonly PollTarget[]): void {
    const wanted = new Map(targets.map((target) => [keyOf(target), target]));
    for (const polled of this.#polled.values()) if (!wanted.has(polled.key)) void this.#leave(polled);
    for (const [key, target] of wanted) {
      if (this.#polled.has(key)) continue;
      const polled = { key, target, client: this.#clientOf(target), timer: undefined };
      this.#polled.set(key, polled);
      this.#schedule(polled, Math.random() * START_SPREAD_MS);
    }
  }

  async stop(): Promise<void> {
    this.#stalls.stop();
    await Promise.all([...this.#polled.values()].map((polled) => this.#leave(polled)));
  }

  #leave({ key, client, timer }: Polled): Promise<void> {
    clearTimeout(timer);
    this.#polled.delete(key);
    return client.destroy();
  }

  #clientOf({ asked, upstream }: PollTarget): Client {
    const { timeoutMs } = this.#options;
    const tls = upstream?.tls;
    const secured = tls && {
      servername: tls.sni,
      ...(tls.ca !== undefined && { ca: tls.ca }),
      ...tls.client,
    };
    const connect = { timeout: timeoutMs, ...secured };
    return new Client(`${tls === undefined ? 'http' : 'https'}://${asked}`, { pipelining: 1, connect });
  }

  #schedule(polled: Polled, delayMs: number): void {
    polled.timer = setTimeout(() => {
      this.#due.push(polled);
      if (this.#due.length === 1) setImmediate(() => this.#askDue());
    }, delayMs);
  }

  #askDue(): void {
    for (const polled of this.#due.splice(0, MOST_AT_ONCE)) void this.#poll(polled);
    if (this.#due.length > 0) setImmediate(() => this.#askDue());
  }

  async #poll(polled: Polled): Promise<void> {
    // The target may leave at any time, and even be back with a schedule of its own.
    const isGone = () => this.#polled.get(polled.key) !== polled;
    if (isGone()) return;
    const startedMs = performance.now();
    const answer = await this.#ask(polled);
    if (isGone()) return;
    const isLate = 'failure' in answer && answer.failure === 'timeout';
    if (isLate && this.#stalls.hasStalledSince(startedMs)) {
      this.#schedule(polled, STALL_RETRY_MS);
      return;
    }
    const { intervalMs } = this.#options;
    const jittered = intervalMs * (1 - JITTER + 2 * JITTER * Math.random());
    this.#schedule(polled, this.#take(polled.target, answer) ?? jittered);
  }

  #take(target: PollTarget, answer: PollAnswer): number | undefined {
    const { onAnswer, onFault } = this.#options;
    try {
      return onAnswer(target, answer);
    } catch (error) {
      onFault(error);
      return undefined;
    }
  }

  async #ask({ target: { path, upstream }, client }: Polled): Promise<PollAnswer> {
    const { timeoutMs, maxBytes } = this.#options;
    const overdue = new AbortController();
    const timer = setTimeout(() => overdue.abort(OVERDUE), timeoutMs);
    try {
      const { statusCode, headers, body } = await client.request({
        path,
        method: 'GET',
        ...(upstream?.auth && { headers: { [upstream.auth.header]: upstream.auth.value } }),
        signal: overdue.signal,
      });
      const location = headers.location && { location: String(headers.location) };
      if (maxBytes === 0 || statusCode !== 200) {
        await body.dump({ limit: DUMPED_BYTES });
        return { status: statusCode, body: '', ...location };
      }
      return await readPage(headers, body, maxBytes);
    } catch (error) {
      return failureOf(error, timeoutMs);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** A target whose key differs begins a schedule of its own. */
function keyOf({ engineId, address, asked, path, upstream }: PollTarget): string {
  return JSON.stringify([engineId, address, asked, path, upstream]);
}

async function readPage(
  headers: IncomingHttpHeaders,
  body: AsyncIterable<Buffer>,
  maxBytes: number,
): Promise<PollAnswer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > maxBytes) return { failure: 'other', detail: `the page is longer than ${maxBytes} bytes` };
    chunks.push(chunk);
  }
  const text = Buffer.concat(chunks).toString('latin1');
  const flaw = flawOf(headers, text);
  return flaw === undefined ? { status: 200, body: text } : { failure: 'other', detail: flaw };
}

/** What keeps a page from being read as it was meant; undefined when nothing does. */
function flawOf(headers: IncomingHttpHeaders, text: string): string | undefined {
  const encoding = String(headers['content-encoding'] ?? 'identity');
  if (encoding !== 'identity') return `the page is encoded (${encoding}), which was not asked for`;
  // Every line ends with one, the last one too. Where only the end of the connection ends a page, half of one looks whole.
  const isEndUnknown = headers['content-length'] === undefined && headers['transfer-encoding'] === undefined;
  const isOpenMetrics = String(headers['content-type']).startsWith('application/openmetrics-text');
  const isCutOff =
    (isEndUnknown && !text.endsWith('\n')) || (isOpenMetrics && !/^# EOF\n?$/m.test(text.slice(-7)));
  return isCutOff ? 'the page is cut off' : undefined;
}

function failureOf(error: unknown, timeoutMs: number): PollAnswer {
  const { code, name, message } = error as { code?: unknown; name?: string; message?: string };
  const detail = message || String(code ?? name);
  if (error === OVERDUE || (typeof code === 'string' && code.endsWith('_TIMEOUT'))) {
    return { failure: 'timeout', detail: `no answer within ${timeoutMs} ms` };
  }
  if (OWN_LACK.has(code))
    return { failure: 'unasked', detail: `the control server itself lacks open files or memory (${code})` };
  if (code === 'ECONNREFUSED') return { failure: 'refused', detail: 'connection refused' };
  if (code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'EPIPE')
    return { failure: 'broken', detail };
  return { failure: 'other', detail };
}
