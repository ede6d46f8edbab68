import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import * as grpc from '@grpc/grpc-js';
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '../../xds-server/gen/envoy/service/discovery/v3/discovery_pb.js';
import type { NodeView, ResourceSet } from '../../xds-server/xds/protocol/control-plane.js';
import { ControlPlane } from '../../xds-server/xds/protocol/control-plane.js';
import type { NodeIdentity } from '../../xds-server/xds/protocol/node.js';
import {
  type Collection,
  createCollection,
  createResource,
  type View,
} from '../../xds-server/xds/protocol/resource.js';
import type { DeltaRequest, SotwRequest } from '../../xds-server/xds/protocol/session.js';
import type { Protocol, ResourceStatus } from '../../xds-server/xds/protocol/subscription.js';
import {
  CLUSTER_TYPE,
  ENDPOINTS_TYPE,
  LISTENER_TYPE,
  ROUTE_TYPE,
  RUNTIME_TYPE,
} from '../../xds-server/xds/protocol/type-url.js';
import { XdsServer } from '../../xds-server/xds/transport/xds-server.js';
import { silent } from './silent.js';

/** Short names of types in scenarios. */
export const types = {
  cds: CLUSTER_TYPE,
  eds: ENDPOINTS_TYPE,
  lds: LISTENER_TYPE,
  rds: ROUTE_TYPE,
  rtds: RUNTIME_TYPE,
  unknown: 'type.googleapis.com/nobody.knows.This',
} as const;
export type TypeName = keyof typeof types;

/** Resources by type and name; the value stands for the content. */
export type State = Readonly<Partial<Record<TypeName, Readonly<Record<string, string>>>>>;

/** A response as a scenario sees it. */
export interface Received {
  readonly type: string;
  readonly version: string;
  readonly nonce: string;
  readonly resources: Readonly<Record<string, string>>;
  /** Versions of single resources; only the delta protocol tells them. */
  readonly versions: Readonly<Record<string, string>>;
  readonly removed: readonly string[];
}

export interface Wire {
  send(request: SotwRequest | DeltaRequest): void;
  /** The next response; an error when the stream ended instead. */
  next(): Promise<Received>;
  close(): Promise<void>;
}

/** A server to be tested: the bare control plane, or one behind real sockets. */
export interface Server {
  publish(state: State): void;
  connect(protocol: Protocol): Wire;
  nodes(): NodeView[];
  resourcesOf(nodeId: string): Record<string, readonly ResourceStatus[]>;
  stop(): Promise<void>;
}

export const FRONTEND = 'west';

/**
 * A type that answers at once, whatever else is going on. Streams keep their order, so that an answer of this type
 * proves that nothing was sent before it: silence without waiting.
 */
const BARRIER_TYPE = 'type.googleapis.com/test.Barrier';
const BARRIERS = 100;

export function viewOf(state: State): View {
  const view = new Map<string, Collection>(
    Object.entries(state).map(([type, resources]) => [
      types[type as TypeName],
      createCollection(Object.entries(resources).map(([name, content]) => testResource(type, name, content))),
    ]),
  );
  for (const type of Object.values(types)) {
    if (type !== types.unknown && !view.has(type)) view.set(type, createCollection([]));
  }
  const barriers = Array.from({ length: BARRIERS }, (_, i) => testResource('barrier', `b${i}`, ''));
  return view.set(BARRIER_TYPE, createCollection(barriers));
}

/** A cluster refers to the endpoints of the same name, a listener to the route of the same name. */
function testResource(type: string, name: string, content: string) {
  const any = create(AnySchema, { typeUrl: type, value: Buffer.from(`${name}=${content}`) });
  return createResource(name, toBinary(AnySchema, any), ['cds', 'lds'].includes(type) ? [name] : []);
}

function contentOf(anys: readonly { readonly value: Uint8Array }[]): Record<string, string> {
  const pairs = anys.map(({ value }) => Buffer.from(value).toString().split('=') as [string, string]);
  const content = Object.fromEntries(pairs);
  if (Object.keys(content).length !== pairs.length) throw new Error('a name came twice in one response');
  return content;
}

const shortName = (typeUrl: string) =>
  Object.entries(types).find(([, url]) => url === typeUrl)?.[0] ?? typeUrl;

/** The control plane alone: requests and responses are plain calls. */
export function inMemoryServer(): Server {
  const plane = new ControlPlane({ now: () => 0, resolveFrontend: () => FRONTEND });
  return {
    publish: (state) => plane.setResources(FRONTEND, resourceSet(state)),
    nodes: () => plane.nodes(),
    resourcesOf: (nodeId) => plane.resourcesOf(nodeId),
    stop: async () => {},
    connect(protocol) {
      const inbox = new Inbox();
      const connection = plane.connect(protocol, (response) => {
        const anys = response.resources.map((resource) => fromBinary(AnySchema, resource.any));
        inbox.put({
          type: shortName(response.typeUrl),
          version: response.version,
          nonce: response.nonce,
          resources: contentOf(anys),
          versions: Object.fromEntries(response.resources.map(({ name, version }) => [name, version])),
          removed: response.removed,
        });
      });
      return {
        next: () => inbox.next(),
        close: async () => connection.close(),
        send(request) {
          try {
            connection.receive(request);
          } catch (error) {
            inbox.fail(error as Error);
          }
        },
      };
    },
  };
}

/** The same behind gRPC on loopback. */
export async function socketServer(): Promise<Server> {
  const server = new XdsServer({ listen: '127.0.0.1:0', resolveFrontend: () => FRONTEND, log: silent });
  const address = await server.start();
  const client = new grpc.Client(address, grpc.credentials.createInsecure());
  return {
    publish: (state) => server.setResources(FRONTEND, resourceSet(state)),
    nodes: () => server.nodes(),
    resourcesOf: (nodeId) => server.resourcesOf(nodeId),
    connect: (protocol) => {
      const method = protocol === 'sotw' ? 'StreamAggregatedResources' : 'DeltaAggregatedResources';
      return socketWire(client, `/envoy.service.discovery.v3.AggregatedDiscoveryService/${method}`);
    },
    async stop() {
      client.close();
      await server.stop();
    },
  };
}

export interface SocketWire extends Wire {
  /** gRPC status that the stream ended with. */
  readonly status: Promise<grpc.status>;
  /** Breaks the stream off. */
  cancel(): void;
}

/** A stream of the method at `path`, which tells the protocol. */
export function socketWire(client: grpc.Client, path: string, metadata = new grpc.Metadata()): SocketWire {
  const inbox = new Inbox();
  const call = client.makeBidiStreamRequest<SotwRequest | DeltaRequest, Received>(
    path,
    (request) => ('resourceNames' in request ? encodeSotw(request) : encodeDelta(request)),
    path.includes('/Stream') ? decodeSotw : decodeDelta,
    metadata,
  );
  const status = new Promise<grpc.status>((resolve) => call.on('status', ({ code }) => resolve(code)));
  call.on('data', (response: Received) => inbox.put(response));
  call.on('error', (error) => inbox.fail(error));
  return {
    status,
    send: (request) => call.write(request),
    next: () => inbox.next(),
    cancel: () => call.cancel(),
    close: async () => {
      call.end();
      await status;
    },
  };
}

function resourceSet(state: State): ResourceSet {
  const view = viewOf(state);
  return { viewOf: () => view };
}

function nodeMessage(node: NodeIdentity | undefined) {
  if (node === undefined) return {};
  return { node: { id: node.id, cluster: node.cluster, metadata: node.metadata } };
}

function encodeSotw(request: SotwRequest): Buffer {
  const message = create(DiscoveryRequestSchema, {
    ...nodeMessage(request.node),
    typeUrl: request.typeUrl,
    versionInfo: request.versionInfo,
    resourceNames: [...request.resourceNames],
    responseNonce: request.responseNonce,
    ...(request.error !== undefined && { errorDetail: { code: 3, message: request.error } }),
  });
  return Buffer.from(toBinary(DiscoveryRequestSchema, message));
}

function decodeSotw(bytes: Uint8Array): Received {
  const message = fromBinary(DiscoveryResponseSchema, bytes);
  return {
    type: shortName(message.typeUrl),
    version: message.versionInfo,
    nonce: message.nonce,
    resources: contentOf(message.resources),
    versions: {},
    removed: [],
  };
}

function encodeDelta(request: DeltaRequest): Buffer {
  const message = create(DeltaDiscoveryRequestSchema, {
    ...nodeMessage(request.node),
    typeUrl: request.typeUrl,
    resourceNamesSubscribe: [...request.subscribe],
    resourceNamesUnsubscribe: [...request.unsubscribe],
    initialResourceVersions: { ...request.initialVersions },
    responseNonce: request.responseNonce,
    ...(request.error !== undefined && { errorDetail: { code: 3, message: request.error } }),
  });
  return Buffer.from(toBinary(DeltaDiscoveryRequestSchema, message));
}

function decodeDelta(bytes: Uint8Array): Received {
  const message = fromBinary(DeltaDiscoveryResponseSchema, bytes);
  return {
    type: shortName(message.typeUrl),
    version: message.systemVersionInfo,
    nonce: message.nonce,
    resources: contentOf(message.resources.map((resource) => resource.resource!)),
    versions: Object.fromEntries(message.resources.map(({ name, version }) => [name, version])),
    removed: message.removedResources,
  };
}

class Inbox {
  readonly #items: Received[] = [];
  readonly #waiting: { resolve(item: Received): void; reject(error: Error): void }[] = [];
  #error: Error | undefined;

  put(item: Received): void {
    const waiting = this.#waiting.shift();
    if (waiting === undefined) this.#items.push(item);
    else waiting.resolve(item);
  }

  fail(error: Error): void {
    this.#error = error;
    for (const { reject } of this.#waiting) reject(error);
  }

  next(): Promise<Received> {
    const item = this.#items.shift();
    if (item !== undefined) return Promise.resolve(item);
    if (this.#error !== undefined) return Promise.reject(this.#error);
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }
}

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
