import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { EventLoopLag } from '../event-loop-lag.js';
import { DelayLine } from './delay-line.js';
import type { Sequence } from './engine-core.js';
import { VllmMetrics } from './metrics.js';
import * as openai from './openai.js';
import type { EngineParameters } from './parameters.js';
import { RealTimeEngine } from './real-time-engine.js';
import { answerWords, blockIds, promptTokens } from './tokens.js';

const MAX_BODY_BYTES = 16 * 2 ** 20;

export interface EngineServerOptions {
  /** Sent as `x-engine` with every response. */
  readonly id: string;
  /** Names that are served; the first one is on the metrics page. */
  readonly models: readonly [string, ...string[]];
  readonly parameters: EngineParameters;
  /**
   * Network delay in milliseconds one way, by the peer's source address; others have none. It is spent before a
   * request is looked at and before each write of its response, order preserved.
   */
  readonly oneWayDelayMs: ReadonlyMap<string, number>;
}

/** One direction each of the emulated network to one peer. */
interface Path {
  readonly request: DelayLine;
  readonly response: DelayLine;
}

/** An answer under way. */
interface Answer {
  readonly head: openai.AnswerHead;
  readonly words: readonly string[];
  readonly chat: openai.ChatRequest;
  readonly exchange: Exchange;
}

/**
 * An engine behind vLLM's HTTP interface. Like servers on Starlette, it sends the headers of a stream as soon as the
 * request is queued, before there is a token: from then on no proxy can retry it elsewhere.
 */
export class EngineServer {
  readonly #options: EngineServerOptions;
  readonly #engine: RealTimeEngine;
  readonly #metrics: VllmMetrics;
  readonly #lag = new EventLoopLag();
  readonly #answers = new Map<Sequence, Answer>();
  readonly #paths = new Map<string, Path>();
  readonly #server: Server;
  #requests = 0;

  constructor(options: EngineServerOptions) {
    this.#options = options;
    this.#engine = new RealTimeEngine(options.parameters, (sequence, at) => this.#onToken(sequence, at));
    this.#metrics = new VllmMetrics(this.#engine.core, options.models[0]);
    // Idle connections are the peer's to close: closing them here would race with its next request.
    this.#server = createServer({ keepAliveTimeout: 0 }, (request, response) =>
      this.#receive(request, response),
    );
  }

  async listen(host: string, port: number): Promise<AddressInfo> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ host, port, backlog: 4096 }, resolve);
    });
    return this.#server.address() as AddressInfo;
  }

  /** Breaks all connections off. */
  async close(): Promise<void> {
    this.#engine.close();
    this.#lag.close();
    for (const { request, response } of this.#paths.values()) {
      request.close();
      response.close();
    }
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #receive(request: IncomingMessage, response: ServerResponse): void {
    const path = this.#pathTo(request.socket.remoteAddress ?? '');
    const exchange = new Exchange(response, path.response, this.#options.id);
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= MAX_BODY_BYTES) chunks.push(chunk);
    });
    request.on('end', () =>
      path.request.push(() => {
        try {
          if (bytes > MAX_BODY_BYTES)
            throw new openai.ApiError(413, 'BadRequestError', 'The body is too large');
          this.#route(request, Buffer.concat(chunks), exchange);
        } catch (error) {
          if (!(error instanceof openai.ApiError)) throw error;
          exchange.json(error.status, error.body());
        }
      }),
    );
  }

  #route({ method = '', url = '' }: IncomingMessage, body: Buffer, exchange: Exchange): void {
    const path = url.split('?', 1)[0];
    switch (`${method} ${path}`) {
      case 'POST /v1/chat/completions':
        this.#chat(openai.parseChatRequest(body.toString()), exchange);
        return;
      case 'GET /v1/models':
        exchange.json(200, openai.modelsBody(this.#options.models, this.#options.parameters.maxModelTokens));
        return;
      case 'GET /health':
        exchange.send(200, 'text/plain', '');
        return;
      case 'GET /metrics':
        void this.#metrics.page().then((page) => exchange.send(200, this.#metrics.contentType, page));
        return;
      case 'GET /simulator/lag':
        exchange.json(200, JSON.stringify(this.#lag.read()));
        return;
      case 'DELETE /simulator/lag':
        this.#lag.reset();
        exchange.send(204, 'text/plain', '');
        return;
      default:
        throw new openai.ApiError(404, 'NotFoundError', `There is no ${method} ${path}`);
    }
  }

  #chat(chat: openai.ChatRequest, exchange: Exchange): void {
    const { models, parameters } = this.#options;
    if (!models.includes(chat.model)) {
      throw new openai.ApiError(404, 'NotFoundError', `The model \`${chat.model}\` does not exist.`);
    }
    const { core } = this.#engine;
    const prompt = promptTokens(chat.messages);
    const size = { promptTokens: prompt.length, outputTokens: chat.outputTokens };
    if (!core.fits(size)) {
      throw openai.badRequest(
        `This model's maximum context length is ${parameters.maxModelTokens} tokens. However, you requested ` +
          `${prompt.length + chat.outputTokens} tokens (${prompt.length} in the messages, ${chat.outputTokens} in the ` +
          'completion). Please reduce the length of the messages or completion.',
      );
    }
    if (exchange.gone) return;
    const words = answerWords(prompt, chat.outputTokens);
    const sequence = this.#engine.submit({
      ...size,
      blockIds: blockIds(prompt, words, parameters.blockTokens),
    });
    if (!sequence) throw new openai.ApiError(503, 'ServiceUnavailableError', 'The queue is full');
    const id = `chatcmpl-${this.#options.id}-${this.#requests++}`;
    const head = { id, created: Math.floor(Date.now() / 1000), model: chat.model };
    this.#answers.set(sequence, { head, words, chat, exchange });
    exchange.onGone(() => this.#abort(sequence));
    if (chat.stream) exchange.begin(200, 'text/event-stream; charset=utf-8');
  }

  #abort(sequence: Sequence): void {
    if (!this.#answers.delete(sequence)) return;
    this.#engine.core.abort(sequence);
    this.#metrics.onAbort();
  }

  #onToken(sequence: Sequence, at: number): void {
    this.#metrics.onToken(sequence, at);
    const { head, words, chat, exchange } = this.#answers.get(sequence)!;
    const { generated, finished, cachedTokens, request } = sequence;
    if (finished) this.#answers.delete(sequence);
    const usage = { promptTokens: request.promptTokens, cachedTokens, completionTokens: generated };
    if (!chat.stream) {
      if (finished) exchange.json(200, openai.completionBody(head, words.join(''), chat.finishReason, usage));
      return;
    }
    let events = openai.tokenEvent(head, words[generated - 1]!, finished ? chat.finishReason : null);
    if (generated === 1) events = openai.roleEvent(head) + events;
    if (!finished) {
      exchange.write(events);
      return;
    }
    if (chat.includeUsage) events += openai.usageEvent(head, usage);
    exchange.end(events + openai.DONE_EVENT);
  }

  #pathTo(peer: string): Path {
    let path = this.#paths.get(peer);
    if (!path) {
      const delayMs = this.#options.oneWayDelayMs.get(peer) ?? 0;
      path = { request: new DelayLine(delayMs), response: new DelayLine(delayMs) };
      this.#paths.set(peer, path);
    }
    return path;
  }
}

/** The response to one request, behind the emulated network. */
class Exchange {
  readonly #response: ServerResponse;
  readonly #line: DelayLine;

  constructor(response: ServerResponse, line: DelayLine, engineId: string) {
    this.#response = response;
    this.#line = line;
    response.setHeader('x-engine', engineId);
  }

  /** The peer has closed the connection. */
  get gone(): boolean {
    return this.#response.destroyed;
  }

  /** Calls back when the peer leaves before the response is complete. */
  onGone(callback: () => void): void {
    this.#response.once('close', () => {
      if (!this.#response.writableFinished) callback();
    });
  }

  begin(status: number, contentType: string): void {
    this.#later(() => this.#response.writeHead(status, { 'content-type': contentType }).flushHeaders());
  }

  write(text: string): void {
    this.#later(() => this.#response.write(text));
  }

  end(text: string): void {
    this.#later(() => this.#response.end(text));
  }

  json(status: number, body: string): void {
    this.send(status, 'application/json', body);
  }

  send(status: number, contentType: string, body: string): void {
    const headers = { 'content-type': contentType, 'content-length': Buffer.byteLength(body) };
    this.#later(() => this.#response.writeHead(status, headers).end(body));
  }

  #later(action: () => void): void {
    this.#line.push(() => {
      if (!this.gone) action();
    });
  }
}
