import { type Decision, decisionOf } from '../../wire/decision.js';
import type { Headers } from './pairs.js';

const utf8 = new TextEncoder();

export interface LocalReply {
  readonly status: number;
  readonly details: string;
  readonly headers: Headers;
  readonly body: string;
}

/** What a stream needs of its VM. */
export interface StreamVm {
  /** What routes grant where the filter says nothing. */
  readonly routeRetries: number | undefined;
  /** Calls the filter in the context of the stream. */
  enter(stream: Stream, callback: string, ...args: number[]): number;
  forget(stream: Stream): void;
}

/** One request. */
export class Stream {
  readonly context: number;
  requestHeaders: Headers;
  responseHeaders: Headers = [];
  responseTrailers: Headers = [];
  readonly properties = new Map<string, Uint8Array>();
  /** What the filter has set for access logs. */
  readonly filterState = new Map<string, string>();
  /** What the filter has stopped of the body. */
  buffered: Uint8Array = new Uint8Array();
  /** The piece of the response's body that arrives now. */
  responsePiece: Uint8Array = new Uint8Array();
  /** What the filter said to the request headers: 0 go on, 1 stop. */
  action = -1;
  resumed = false;
  reply: LocalReply | undefined;
  readonly #vm: StreamVm;

  constructor(vm: StreamVm, context: number, headers: Headers) {
    this.#vm = vm;
    this.context = context;
    this.requestHeaders = headers;
  }

  /** Whether the request goes to an engine. */
  get forwarded(): boolean {
    return this.reply === undefined && (this.action === 0 || this.resumed);
  }

  header(name: string): string | undefined {
    return this.requestHeaders.find(([other]) => other === name)?.[1];
  }

  /** What the response, or the filter's own answer, tells of the decision. */
  get decision(): Decision {
    return decisionOf(Object.fromEntries(this.reply?.headers ?? this.responseHeaders));
  }

  /** The endpoints that the filter lists. */
  get endpoints(): string[] {
    return this.header('x-gateway-destination-endpoint')?.split(',') ?? [];
  }

  /** How often Envoy may retry. */
  get retries(): number {
    return Number(this.header('x-envoy-max-retries') ?? this.#vm.routeRetries);
  }

  /** A piece of the request's body arrives; pieces add up while the filter stops them. */
  send(piece: string | Uint8Array, ended = false): this {
    const bytes = typeof piece === 'string' ? utf8.encode(piece) : piece;
    this.buffered = Buffer.concat([this.buffered, bytes]);
    const action = this.#vm.enter(this, 'proxy_on_request_body', this.buffered.length, ended ? 1 : 0);
    if (action === 0) {
      this.action = 0;
      this.buffered = new Uint8Array();
    }
    return this;
  }

  /** The request's body ends with trailers. */
  sendTrailers(): this {
    if (this.#vm.enter(this, 'proxy_on_request_trailers', 1) === 0) this.action = 0;
    return this;
  }

  /** Response headers arrive; the served endpoint is the one that the attempt count leads to unless told. */
  respond(
    status: number,
    options: {
      attempts?: number;
      address?: string;
      details?: string;
      headers?: Headers;
      ended?: boolean;
    } = {},
  ): this {
    const attempts = options.attempts ?? 1;
    const address = options.address ?? this.endpoints[attempts - 1];
    if (address !== undefined) this.properties.set('upstream\0address', utf8.encode(address));
    this.properties.set('response\0code_details', utf8.encode(options.details ?? 'via_upstream'));
    this.responseHeaders = [
      [':status', `${status}`],
      ['x-envoy-attempt-count', `${attempts}`],
      ...(options.headers ?? []),
    ];
    const count = this.responseHeaders.length;
    this.#vm.enter(this, 'proxy_on_response_headers', count, options.ended ? 1 : 0);
    return this;
  }

  /** A piece of the response's body arrives. */
  responseBody(piece: string | Uint8Array, ended = false): this {
    this.responsePiece = typeof piece === 'string' ? utf8.encode(piece) : piece;
    this.#vm.enter(this, 'proxy_on_response_body', this.responsePiece.length, ended ? 1 : 0);
    return this;
  }

  /** The response's body ends with trailers. */
  endWithTrailers(trailers: Headers = []): this {
    this.responseTrailers = trailers;
    this.#vm.enter(this, 'proxy_on_response_trailers', trailers.length);
    return this;
  }

  /** The stream is over, whatever its state; `details` say why if its answer is not complete. */
  end(details?: string): void {
    if (details) this.properties.set('response\0code_details', utf8.encode(details));
    this.#vm.enter(this, 'proxy_on_log');
    this.vanish();
  }

  /** The context is destroyed without the log callback: the filter finds out on one of its next ticks. */
  vanish(): void {
    this.#vm.forget(this);
  }
}
