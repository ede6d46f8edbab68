import { createSocket, type Socket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';

/** What a name server says of a name; `nothing`: it has the name, but no records that are asked for. */
export type DnsAnswer =
  | { readonly a?: readonly string[]; readonly srv?: readonly { name: string; port: number }[] }
  | 'nothing'
  | 'no such name'
  | 'server failure'
  | 'refused'
  | 'garbage'
  | 'silence';

const CODES = { nothing: 0, 'no such name': 3, 'server failure': 2, refused: 5 } as const;
const HEADER_SIZE = 12;
const TYPE_A = 1;
const TYPE_SRV = 33;
const TTL_SECONDS = 1;
/** Points to the name in the question. */
const SAME_NAME = [0xc0, HEADER_SIZE];

/** A name server on loopback, of RFC 1035 what a resolver needs. Names that it was told nothing of do not exist. */
export class DnsServer {
  readonly answers = new Map<string, DnsAnswer>();
  readonly #socket: Socket = createSocket('udp4');

  static async start(): Promise<DnsServer> {
    const server = new DnsServer();
    server.#socket.on('message', (query, { port, address }) => {
      const response = server.#answer(query);
      if (response !== undefined) server.#socket.send(response, port, address);
    });
    await new Promise<void>((resolve) => server.#socket.bind(0, '127.0.0.1', resolve));
    return server;
  }

  /** Asks this server, once. */
  resolver(): Resolver {
    const resolver = new Resolver({ timeout: 300, tries: 1 });
    resolver.setServers([`127.0.0.1:${this.#socket.address().port}`]);
    return resolver;
  }

  async stop(): Promise<void> {
    await new Promise<void>((resolve) => this.#socket.close(() => resolve()));
  }

  #answer(query: Buffer): Buffer | undefined {
    const labels: string[] = [];
    let at = HEADER_SIZE;
    for (; query[at]! > 0; at += query[at]! + 1)
      labels.push(query.toString('latin1', at + 1, at + 1 + query[at]!));
    const type = query.readUInt16BE(at + 1);
    const question = query.subarray(HEADER_SIZE, at + 5);
    const answer = this.answers.get(labels.join('.').toLowerCase()) ?? 'no such name';
    if (answer === 'silence') return undefined;
    if (answer === 'garbage') return Buffer.concat([query.subarray(0, 2), Buffer.alloc(20, 0xff)]);
    const records = typeof answer === 'string' ? [] : recordsOf(answer, type);
    const header = Buffer.alloc(HEADER_SIZE);
    query.copy(header, 0, 0, 2);
    // A response, recursion wanted and available.
    header.writeUInt16BE(0x8180 | (typeof answer === 'string' ? CODES[answer] : 0), 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(records.length, 6);
    return Buffer.concat([header, question, ...records]);
  }
}

function recordsOf({ a = [], srv = [] }: Exclude<DnsAnswer, string>, type: number): Buffer[] {
  if (type === TYPE_A) return a.map((ip) => record(type, Buffer.from(ip.split('.').map(Number))));
  if (type !== TYPE_SRV) return [];
  return srv.map(({ name, port }) => {
    const fixed = Buffer.alloc(6);
    fixed.writeUInt16BE(port, 4);
    const labels = name.split('.').map((label) => Buffer.from([label.length, ...Buffer.from(label)]));
    return record(type, Buffer.concat([fixed, ...labels, Buffer.from([0])]));
  });
}

function record(type: number, data: Buffer): Buffer {
  const head = Buffer.alloc(10);
  head.writeUInt16BE(type, 0);
  head.writeUInt16BE(1, 2);
  head.writeUInt32BE(TTL_SECONDS, 4);
  head.writeUInt16BE(data.length, 8);
  return Buffer.concat([Buffer.from(SAME_NAME), head, data]);
}
