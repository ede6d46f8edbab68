import type { IncomingMessage, ServerResponse } from 'node:http';

/** A report of 64 VMs with 1000 pairs of a pool and an engine each is below this. */
const MAX_REPORT_BYTES = 8 * 2 ** 20;

export class TooLarge extends Error {
  override readonly message = `the report is longer than ${MAX_REPORT_BYTES} bytes`;
}

/** All of the body of a request; rejects with `TooLarge`. */
export function readBody(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= MAX_REPORT_BYTES) chunks.push(chunk);
      else {
        request.pause();
        reject(new TooLarge());
      }
    });
    request.once('end', () => resolve(Buffer.concat(chunks)));
    request.once('error', reject);
    request.once('close', () => reject(new Error('the call was cut off')));
  });
}

export function sendBytes(
  response: ServerResponse,
  bytes: Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(200, {
    'content-type': 'application/octet-stream',
    'content-length': bytes.length,
    ...headers,
  });
  response.end(bytes);
}

export function sendJson(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): void {
  // The request may not have been read to its end; the connection cannot be used again then.
  if (!response.req.complete) response.setHeader('connection', 'close');
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(`${JSON.stringify(body)}\n`);
}
