import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import { ENDPOINTS_TYPE } from '../../xds-server/xds/protocol/type-url.js';

const ADS_PATH = '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources';
/** A stream on which the server only writes. */
export const RAW_PATH = '/wardrop.bench.Raw/Write';

/** Enough of a response's end to hold type and nonce. */
const TAIL_BYTES = 160;

export interface StreamOptions {
  readonly address: string;
  readonly nodeId: string;
  readonly frontendId: string;
  /** Assignments to subscribe to. */
  readonly names: readonly string[];
  /** A response has arrived in full; the time is monotonic, in milliseconds. */
  readonly onResponse: (atMs: number) => void;
  readonly onRaw?: (atMs: number) => void;
}

/** One connection as an Envoy has it, which takes responses without decoding them, and acknowledges. */
export class StreamClient {
  readonly #session: ClientHttp2Session;
  readonly #ads: ClientHttp2Stream;

  constructor(options: StreamOptions) {
    const session = connect(`http://${options.address}`, {
      settings: { initialWindowSize: 4 * 2 ** 20 },
    });
    session.on('error', () => {});
    session.once('connect', () => session.setLocalWindowSize(8 * 2 ** 20));
    this.#session = session;
    this.#ads = open(session, ADS_PATH);
    const again = Buffer.concat([
      ...options.names.map((name) => field(3, Buffer.from(name))),
      field(4, Buffer.from(ENDPOINTS_TYPE)),
    ]);
    readFrames(this.#ads, (head, tail) => {
      options.onResponse(monotonicMs());
      // The version comes first, the nonce last.
      const version = head.subarray(2, 2 + head[1]!);
      const nonce = tail.subarray(tail.lastIndexOf(NONCE_TAG) + 2);
      this.#ads.write(frame([field(1, version), again, field(5, nonce)]));
    });
    const node = Buffer.concat([
      field(1, Buffer.from(options.nodeId)),
      field(2, Buffer.from(options.frontendId)),
    ]);
    this.#ads.write(frame([field(2, node), again]));
    if (options.onRaw !== undefined) {
      const { onRaw } = options;
      const raw = open(session, RAW_PATH);
      readFrames(raw, () => onRaw(monotonicMs()));
      raw.write(frame([field(1, Buffer.from(options.frontendId))]));
    }
  }

  close(): void {
    this.#session.destroy();
  }
}

export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Field 5 of a response, and of a request. */
const NONCE_TAG = 0x2a;

function open(session: ClientHttp2Session, path: string): ClientHttp2Stream {
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
  });
  stream.on('error', () => {});
  return stream;
}

/** Tells the first and the last bytes of every gRPC message, and keeps nothing else. */
function readFrames(stream: ClientHttp2Stream, onMessage: (head: Buffer, tail: Buffer) => void): void {
  let head = Buffer.alloc(0);
  let tail = Buffer.alloc(0);
  let left = 0;
  stream.on('data', (chunk: Buffer) => {
    let rest = chunk;
    while (rest.length > 0) {
      if (left === 0) {
        const taken = rest.subarray(0, 5 - head.length);
        head = Buffer.concat([head, taken]);
        rest = rest.subarray(taken.length);
        if (head.length < 5) return;
        left = head.readUInt32BE(1);
        head = Buffer.alloc(0);
        tail = Buffer.alloc(0);
      }
      const part = rest.subarray(0, left);
      rest = rest.subarray(part.length);
      left -= part.length;
      if (head.length < TAIL_BYTES) head = Buffer.concat([head, part.subarray(0, TAIL_BYTES)]);
      tail = Buffer.concat([tail, part]).subarray(-TAIL_BYTES);
      if (left > 0) continue;
      onMessage(head, tail);
      head = Buffer.alloc(0);
    }
  });
}

function field(number: number, bytes: Uint8Array): Buffer {
  const length: number[] = [];
  let rest = bytes.length;
  while (rest >= 0x80) {
    length.push((rest & 0x7f) | 0x80);
    rest >>= 7;
  }
  return Buffer.concat([Buffer.from([(number << 3) | 2, ...length, rest]), bytes]);
}

function frame(parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const header = Buffer.alloc(5);
  header.writeUInt32BE(body.length, 1);
  return Buffer.concat([header, body]);
}
