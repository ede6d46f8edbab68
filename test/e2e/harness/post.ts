import { request } from 'node:http';
import { connect } from 'node:http2';
import type { Writable } from 'node:stream';

export interface Posted {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

export interface PostOptions {
  /** The body, written piece by piece with a pause between two, so that they arrive apart. */
  readonly pieces: readonly Uint8Array[];
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** Does not say how long the body is: chunked, or in HTTP/2 without content-length. */
  readonly isChunked?: boolean;
}

/** A POST whose framing is up to the caller, over HTTP/1.1 on a connection of its own. */
export function post(url: string, options: PostOptions): Promise<Posted> {
  return new Promise((resolve, reject) => {
    const headers = { ...headersOf(options), ...(options.isChunked && { 'transfer-encoding': 'chunked' }) };
    const call = request(url, { method: 'POST', agent: false, headers });
    call.setNoDelay(true);
    let answered = false;
    call.once('response', (response) => {
      answered = true;
      textOf(response).then(
        (body) => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
        reject,
      );
    });
    // A request that is refused early ends while its body is still being written.
    call.on('error', (error) => {
      if (!answered) reject(error);
    });
    void writeAll(call, options.pieces);
  });
}

/** The same over HTTP/2 without TLS. */
export function postHttp2(url: string, options: PostOptions): Promise<Posted> {
  const { origin, pathname } = new URL(url);
  const session = connect(origin);
  const posted = new Promise<Posted>((resolve, reject) => {
    session.once('error', reject);
    const call = session.request({ ':method': 'POST', ':path': pathname, ...headersOf(options) });
    call.once('error', reject);
    call.once('response', ({ ':status': status, ...headers }) => {
      textOf(call).then((body) => resolve({ status: status ?? 0, headers, body }), reject);
    });
    void writeAll(call, options.pieces);
  });
  return posted.finally(() => session.close());
}

function headersOf({ pieces, headers, isChunked = false }: PostOptions): Record<string, string | string[]> {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const given = Object.entries(headers ?? {}).map(([name, value]): [string, string | string[]] => [
    name,
    typeof value === 'string' ? value : [...value],
  ]);
  return {
    'content-type': 'application/json',
    ...(isChunked ? {} : { 'content-length': String(length) }),
    ...Object.fromEntries(given),
  };
}

async function textOf(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

async function writeAll(call: Writable, pieces: readonly Uint8Array[]): Promise<void> {
  for (const [index, piece] of pieces.entries()) {
    if (index > 0) await new Promise((resolve) => setImmediate(resolve));
    call.write(piece);
  }
  call.end();
}
