import { fromBinary } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import * as grpc from '@grpc/grpc-js';
import type { NodeView, ResourceSet } from '../../xds-server/xds/protocol/control-plane.js';
import { ControlPlane } from '../../xds-server/xds/protocol/control-plane.js';
import type { DeltaRequest, SotwRequest } from '../../xds-server/xds/protocol/session.js';
import type { Protocol, ResourceStatus } from '../../xds-server/xds/protocol/subscription.js';
import { XdsServer } from '../../xds-server/xds/transport/xds-server.js';
import {
  contentOf,
  decodeDelta,
  decodeSotw,
  encodeDelta,
  encodeSotw,
  type Received,
  type State,
  shortName,
  viewOf,
} from './messages.js';
import { silent } from './silent.js';

/** A stream of a client. */
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

/** Responses until somebody takes them. */
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
