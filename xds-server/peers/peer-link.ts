import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, type Dispatcher, request } from 'undici';
import type { TlsSettings } from '../config/config.js';
import { type HostPort, targetText } from '../fleet/address.js';
import { ADMIN_QUESTION_PATH, type AdminAnswer, type AdminQuestion } from './admin-question.js';
import { SILENT_MS } from './leadership.js';
import { NOTHING_KNOWN } from './peer-board.js';
import { decodeNews, encodeQuestion, type Known, PEER_PATH, type PeerNews } from './peer-news.js';

/** So long a peer waits for news before it answers. */
export const PEER_HOLD_MS = 500;
const TIMEOUT_MS = 2_000;
/** For the whole of an answer, which may be large; and how large, as anything may listen at a wrong address. */
const ANSWER_TIMEOUT_MS = 10_000;
const MOST_ANSWER_BYTES = 64 << 20;
/** Reasons may take many solves. */
const REASONS_TIMEOUT_MS = 60_000;
/** Between two questions, so that many small news come together; longer while the peer does not answer. */
const PAUSE_MS = 50;
const FAILED_PAUSE_MS = 500;
/** While it meets itself: another server may have the address one day. */
const SELF_PAUSE_MS = 2_000;

export interface PeerLinkOptions {
  readonly target: HostPort;
  readonly token?: string;
  readonly tls?: TlsSettings;
  /** Names this process. */
  readonly instance: string;
  readonly onNews: (news: PeerNews) => void;
  readonly now: () => number;
}

/** Asks one peer again and again for what it knows. */
export class PeerLink {
  /** `host:port`. */
  readonly address: string;
  readonly #options: PeerLinkOptions;
  #agent: Agent;
  readonly #stopping = new AbortController();
  #known: Known = NOTHING_KNOWN;
  readonly #createdMs: number;
  #heardMs: number | undefined;
  #problem: string | null = null;
  /** The peer is this server itself. */
  #isSelf = false;
  #running: Promise<void> = Promise.resolve();

  constructor(options: PeerLinkOptions) {
    this.#options = options;
    this.#createdMs = options.now();
    const { target, tls } = options;
    this.address = targetText(target);
    this.#agent = agentOf(tls);
  }

  /** Shows and wants other certificates from the next connection on. */
  renew(tls: TlsSettings): void {
    const before = this.#agent;
    this.#agent = agentOf(tls);
    // What is under way on its connections ends as it would.
    void before.close();
  }

  get isSelf(): boolean {
    return this.#isSelf;
  }

  /** When it last answered; undefined when never. */
  get heardMs(): number | undefined {
    return this.#heardMs;
  }

  /** Why it last gave no good answer; null when it did. */
  get problem(): string | null {
    return this.#problem;
  }

  isSilent(nowMs: number): boolean {
    return nowMs - (this.#heardMs ?? this.#createdMs) >= SILENT_MS;
  }

  /** Asks once; undefined when there is no good answer. */
  async ask(): Promise<PeerNews | undefined> {
    const { instance, onNews, now } = this.#options;
    try {
      const response = await this.#post(
        PEER_PATH,
        encodeQuestion({ instance, known: this.#known }),
        TIMEOUT_MS,
      );
      const text = await textOf(response.body);
      if (response.statusCode !== 200)
        throw new Error(`status ${response.statusCode}: ${text.slice(0, 200)}`);
      const news = decodeNews(text);
      this.#isSelf = news.claim.instance === instance;
      if (this.#isSelf) return undefined;
      onNews(news);
      this.#known = news.known;
      this.#heardMs = now();
      this.#problem = null;
      return news;
    } catch (error) {
      this.#problem = reasonOf(error);
      return undefined;
    }
  }

  /** Asks its admin API; throws when it does not answer. */
  async askAdmin(question: AdminQuestion): Promise<AdminAnswer> {
    const { statusCode, headers, body } = await this.#post(
      ADMIN_QUESTION_PATH,
      JSON.stringify(question),
      REASONS_TIMEOUT_MS,
    );
    return { status: statusCode, type: String(headers['content-type']), body: await body.text() };
  }

  #post(path: string, body: string, timeoutMs: number) {
    const { token, tls } = this.#options;
    return request(`${tls === undefined ? 'http' : 'https'}://${this.address}${path}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      body,
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      dispatcher: this.#agent,
      signal: this.#stopping.signal,
    });
  }

  /** Begins with what the peer tells one that knows nothing. */
  start(): void {
    this.#known = NOTHING_KNOWN;
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.#agent.destroy();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const news = await this.ask();
      const pauseMs = this.#isSelf ? SELF_PAUSE_MS : news === undefined ? FAILED_PAUSE_MS : PAUSE_MS;
      // Rejects when it is stopped, which ends the loop.
      await sleep(pauseMs, undefined, { signal }).catch(() => {});
    }
  }
}

/** Throws when it takes too long: what comes in small pieces lets every other limit of time begin anew. */
async function textOf(body: Dispatcher.ResponseData['body']): Promise<string> {
  const timer = setTimeout(() => body.destroy(new Error('no end of an answer in time')), ANSWER_TIMEOUT_MS);
  try {
    return await body.text();
  } finally {
    clearTimeout(timer);
  }
}

function agentOf(tls: TlsSettings | undefined): Agent {
  return new Agent({
    // One for news, which are waited for, and one for questions.
    connections: 2,
    maxResponseSize: MOST_ANSWER_BYTES,
    connect: { timeout: TIMEOUT_MS, ...(tls && tlsOf(tls)) },
  });
}

function tlsOf({ cert, key, clientCa, peerCa }: TlsSettings) {
  return {
    ...(peerCa !== undefined && { ca: peerCa }),
    // Whoever wants to see the certificates of Envoys wants to see ours.
    ...(clientCa !== undefined && { cert, key }),
  };
}

function reasonOf(error: unknown): string {
  const { code, message } = error as { code?: string; message?: string };
  if (code === 'ECONNREFUSED') return 'nobody listens there';
  if (code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT') return 'no answer in time';
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER') return 'it speaks no TLS, as this server does';
  // A server with TLS says no more to one without.
  if (code === 'UND_ERR_SOCKET') return `it ended the connection (${message}); both need TLS, or neither`;
  return message || String(error);
}
