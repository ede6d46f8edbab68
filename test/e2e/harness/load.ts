import { Agent, request } from 'undici';
import { sleep } from './process.js';

export interface Result {
  readonly key: string;
  readonly atMs: number;
  /** 0 when no response headers arrived. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
  /** Set when the connection failed, or broke after the headers. */
  readonly error: string | undefined;
}

export interface RequestOptions {
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly agent?: Agent;
  readonly path?: string;
  readonly stream?: boolean;
  /** Default `demo-8b`. */
  readonly model?: string;
  /** Sends a later turn of the conversation: its messages hold an answer. */
  readonly later?: boolean;
}

const HELLO = { role: 'user', content: 'hello' };

/** One chat completion through an Envoy. Never throws. */
export async function chat(url: string, options: RequestOptions = {}): Promise<Result> {
  const { key = '', agent, path = '/v1/chat/completions', stream = false, model = 'demo-8b' } = options;
  const atMs = Date.now();
  let status = 0;
  let headers: Result['headers'] = {};
  try {
    const response = await request(`${url}${path}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(key ? { 'x-session-id': key } : {}),
        ...options.headers,
      },
      body: JSON.stringify({
        model,
        stream,
        max_tokens: 32,
        messages: options.later ? [HELLO, { role: 'assistant', content: 'hi' }, HELLO] : [HELLO],
      }),
      ...(agent ? { dispatcher: agent } : {}),
    });
    status = response.statusCode;
    headers = response.headers;
    return { key, atMs, status, headers, body: await response.body.text(), error: undefined };
  } catch (error) {
    return { key, atMs, status, headers, body: '', error: String(error) };
  }
}

/** A machine that is too busy for longer lowers the rate. */
const LONGEST_BURST_MS = 100;

/** Sends later turns of conversations at a constant rate, whatever the answers do, until `stop`; keys are taken in turn. */
export class OpenLoop {
  readonly results: Result[] = [];
  /** For how long this process was too late to send; what was due then is left out. */
  heldUpMs = 0;
  readonly #pending = new Set<Promise<void>>();
  readonly #agent = new Agent({ connections: null, pipelining: 1 });
  readonly #sending: Promise<void>;
  #running = true;
  #sent = 0;

  constructor(url: string, requestsPerSecond: number, keys: readonly string[], options: RequestOptions = {}) {
    this.#sending = this.#run(url, requestsPerSecond, keys, options);
  }

  /** Ends the load and waits for what is under way. */
  async stop(): Promise<readonly Result[]> {
    this.#running = false;
    await this.#sending;
    await Promise.all(this.#pending);
    await this.#agent.close();
    return this.results;
  }

  async #run(url: string, rps: number, keys: readonly string[], options: RequestOptions): Promise<void> {
    let startMs = performance.now();
    let lookedMs = startMs;
    while (this.#running) {
      const nowMs = performance.now();
      // What fell into the time in which this process did not run would come as one burst, which nobody asked for.
      const heldUpMs = Math.max(0, nowMs - lookedMs - LONGEST_BURST_MS);
      startMs += heldUpMs;
      this.heldUpMs += heldUpMs;
      lookedMs = nowMs;
      const due = Math.floor(((nowMs - startMs) / 1000) * rps);
      for (; this.#sent < due; this.#sent++) this.#send(url, keys[this.#sent % keys.length]!, options);
      await sleep(5);
    }
  }

  #send(url: string, key: string, options: RequestOptions): void {
    const sending = chat(url, { later: true, ...options, key, agent: this.#agent }).then((result) => {
      this.results.push(result);
      this.#pending.delete(sending);
    });
    this.#pending.add(sending);
  }
}

export function keysOf(count: number, prefix = 'conversation'): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
}
