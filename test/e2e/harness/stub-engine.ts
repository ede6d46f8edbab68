import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import { networkInterfaces } from 'node:os';
import { freePorts } from '../../free-ports.js';

/** One request that reached an engine. */
export interface Attempt {
  readonly atMs: number;
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  /** Of the body, as it arrived. */
  readonly sha256: string;
}

export type Behaviour = (request: Attempt, response: ServerResponse) => void | Promise<void>;

/** An engine that answers at once, names itself in `x-stub` and keeps what it was asked. WebSockets get back what they send. */
export class StubEngine {
  readonly name: string;
  readonly attempts: Attempt[] = [];
  behaviour: Behaviour = answerOk;
  readonly #tls: ServerOptions | undefined;
  readonly #host: string;
  #server: Server | undefined;
  #port = 0;

  /** `tls`: certificate, key and whom it trusts; plain HTTP without. `host`: where it listens. */
  constructor(name: string, tls?: ServerOptions, host = '127.0.0.1') {
    this.name = name;
    this.#tls = tls;
    this.#host = host;
  }

  get address(): string {
    return `${this.#host.includes(':') ? `[${this.#host}]` : this.#host}:${this.#port}`;
  }

  /** Listens on a free port, or again on the one that it had, which nobody else draws meanwhile. */
  async start(): Promise<this> {
    this.#port ||= (await freePorts(1))[0]!;
    const serve = (request: IncomingMessage, response: ServerResponse) => void this.#serve(request, response);
    const server = this.#tls ? createTlsServer(this.#tls, serve) : createServer(serve);
    server.keepAliveTimeout = 60_000;
    server.on('upgrade', (_request, socket) => {
      socket.on('error', () => {});
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nx-stub: ${this.name}\r\n\r\n`,
      );
      socket.pipe(socket);
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.#port, this.#host, resolve);
    });
    this.#server = server;
    return this;
  }

  /** Stops as a killed process does: open connections are reset. */
  async kill(): Promise<void> {
    const server = this.#server;
    if (!server) return;
    this.#server = undefined;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
  }

  /** Attempts on model paths, health probes and the like left out. */
  get requests(): readonly Attempt[] {
    return this.attempts.filter((attempt) => attempt.path.startsWith('/v1/chat'));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await bodyOf(request);
    if (body === undefined) return;
    const attempt: Attempt = {
      atMs: Date.now(),
      method: request.method ?? '',
      path: request.url ?? '',
      headers: request.headers,
      body: body.toString(),
      sha256: createHash('sha256').update(body).digest('hex'),
    };
    response.setHeader('x-stub', this.name);
    if (attempt.path === '/health') {
      response.end();
      return;
    }
    this.attempts.push(attempt);
    await this.behaviour(attempt, response);
  }
}

/** Undefined when it was cut off. */
async function bodyOf(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer);
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks);
}

/** The loopback address of IPv6, on machines that have one. */
export const loopback6 = Object.values(networkInterfaces()).some((each) =>
  each?.some(({ address }) => address === '::1'),
)
  ? '::1'
  : '127.0.0.1';

export function answerOk(_request: Attempt, response: ServerResponse): void {
  response.setHeader('content-type', 'application/json');
  response.end('{"object":"chat.completion","choices":[]}');
}
