import { request } from 'node:http';

export interface Posted {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

export interface PostOptions {
  /** The body, written piece by piece with a pause between two, so that they arrive apart. */
  readonly pieces: readonly Uint8Array[];
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** Transfer-encoding instead of content-length. */
  readonly isChunked?: boolean;
}

/** A POST whose framing is up to the caller, on a connection of its own. */
export function post(url: string, options: PostOptions): Promise<Posted> {
  const { pieces, headers = {}, isChunked = false } = options;
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  return new Promise((resolve, reject) => {
    const call = request(url, {
      method: 'POST',
      agent: false,
      headers: {
        'content-type': 'application/json',
        ...(isChunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': length }),
        ...headers,
      },
    });
    call.setNoDelay(true);
    let answered = false;
    call.once('response', (response) => {
      answered = true;
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        body += chunk;
      });
      response.once('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
      );
      response.once('error', reject);
    });
    // A request that is refused early ends while its body is still being written.
    call.on('error', (error) => {
      if (!answered) reject(error);
    });
    void writeAll(call, pieces);
  });
}

async function writeAll(call: ReturnType<typeof request>, pieces: readonly Uint8Array[]): Promise<void> {
  for (const [index, piece] of pieces.entries()) {
    if (index > 0) await new Promise((resolve) => setImmediate(resolve));
    call.write(piece);
  }
  call.end();
}
