import type { NodeIdentity } from '../../xds-server/xds/protocol/node.js';
import type { DeltaRequest, SotwRequest } from '../../xds-server/xds/protocol/session.js';
import type { Protocol } from '../../xds-server/xds/protocol/subscription.js';
import { BARRIER_TYPE, type Received, type TypeName, types } from './messages.js';
import { FRONTEND, type Server, type Wire } from './server.js';

/** What the two clients below have in common. */
abstract class Client<Request> {
  readonly #wire: Wire;
  #nodeId: string | undefined;
  #barriers = 0;
  #barrierNonce = '';

  constructor(server: Server, protocol: Protocol, nodeId: string) {
    this.#wire = server.connect(protocol);
    this.#nodeId = nodeId;
  }

  protected abstract complete(request: Partial<Request> & { typeUrl: string }): SotwRequest | DeltaRequest;

  /** Sends a request; what it leaves out is empty. The node goes with the first only. */
  request(type: TypeName | typeof BARRIER_TYPE | '', fields: Partial<Request> = {}): void {
    const node = this.#nodeId === undefined ? {} : { node: nodeNamed(this.#nodeId) };
    this.#nodeId = undefined;
    const typeUrl = type in types ? types[type as TypeName] : type;
    this.#wire.send(this.complete({ ...node, ...fields, typeUrl }));
  }

  /** The next response, which must be of this type. */
  async expect(type: TypeName): Promise<Received> {
    const received = await this.#wire.next();
    if (received.type !== type) throw new Error(`expected ${type}, got ${JSON.stringify(received)}`);
    return received;
  }

  /** The error that ended the stream. */
  async expectEnd(): Promise<Error> {
    return this.#wire.next().then(
      (received) => {
        throw new Error(`expected the end of the stream, got ${JSON.stringify(received)}`);
      },
      (error) => error as Error,
    );
  }

  /**
   * Everything sent so far has been handled, and nothing came of it that was not yet read. Also needed between a
   * request and a publication whose order matters: over sockets they travel apart.
   */
  async silence(): Promise<void> {
    const name = `b${this.#barriers++}`;
    this.barrier(name, this.#barrierNonce);
    const received = await this.#wire.next();
    if (received.type !== BARRIER_TYPE) throw new Error(`expected silence, got ${JSON.stringify(received)}`);
    this.#barrierNonce = received.nonce;
  }

  protected abstract barrier(name: string, nonce: string): void;

  protected requestBarrier(fields: Partial<Request>): void {
    this.request(BARRIER_TYPE, fields);
  }

  close(): Promise<void> {
    return this.#wire.close();
  }
}

export class SotwClient extends Client<SotwRequest> {
  #barrierNames: string[] = [];
  /** Version last accepted, by type. */
  readonly #accepted = new Map<TypeName, string>();

  constructor(server: Server, nodeId = 'n1') {
    super(server, 'sotw', nodeId);
  }

  protected complete(request: Partial<SotwRequest> & { typeUrl: string }): SotwRequest {
    return { versionInfo: '', resourceNames: [], responseNonce: '', ...request };
  }

  protected barrier(name: string, nonce: string): void {
    this.#barrierNames.push(name);
    this.requestBarrier({ resourceNames: this.#barrierNames, responseNonce: nonce });
  }

  /** Accepts a response; the request repeats the whole list of names. */
  ack(received: Received, resourceNames: readonly string[] = []): void {
    const type = received.type as TypeName;
    this.#accepted.set(type, received.version);
    this.request(type, { versionInfo: received.version, responseNonce: received.nonce, resourceNames });
  }

  /** Rejects a response; the version is the one accepted before. */
  nack(received: Received, resourceNames: readonly string[] = [], error = 'rejected by test'): void {
    const type = received.type as TypeName;
    const versionInfo = this.#accepted.get(type) ?? '';
    this.request(type, { versionInfo, responseNonce: received.nonce, resourceNames, error });
  }

  /** Asks for names (none: everything), reads the answer and accepts it. */
  async subscribe(type: TypeName, resourceNames: readonly string[] = []): Promise<Received> {
    this.request(type, { resourceNames });
    return this.take(type, resourceNames);
  }

  /** Reads the next response, which must be of this type, and accepts it. */
  async take(type: TypeName, resourceNames: readonly string[] = []): Promise<Received> {
    const received = await this.expect(type);
    this.ack(received, resourceNames);
    return received;
  }
}

export class DeltaClient extends Client<DeltaRequest> {
  constructor(server: Server, nodeId = 'n1') {
    super(server, 'delta', nodeId);
  }

  protected complete(request: Partial<DeltaRequest> & { typeUrl: string }): DeltaRequest {
    return { subscribe: [], unsubscribe: [], initialVersions: {}, responseNonce: '', ...request };
  }

  protected barrier(name: string, nonce: string): void {
    this.requestBarrier({ subscribe: [name], responseNonce: nonce });
  }

  ack(received: Received, fields: Partial<DeltaRequest> = {}): void {
    this.request(received.type as TypeName, { responseNonce: received.nonce, ...fields });
  }

  nack(received: Received, error = 'rejected by test'): void {
    this.ack(received, { error });
  }

  async subscribe(type: TypeName, subscribe: readonly string[] = []): Promise<Received> {
    this.request(type, { subscribe });
    return this.take(type);
  }

  async take(type: TypeName): Promise<Received> {
    const received = await this.expect(type);
    this.ack(received);
    return received;
  }
}

function nodeNamed(id: string): NodeIdentity {
  return {
    id,
    cluster: FRONTEND,
    region: '',
    metadata: {},
    userAgent: '',
    userAgentVersion: '',
  };
}
