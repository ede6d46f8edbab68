import { createSecureContext } from 'node:tls';
import * as grpc from '@grpc/grpc-js';
import type { Logger } from 'pino';
import { isAuthentic } from '../../bearer.js';
import { WardropError } from '../../errors.js';
import { splitAddress, targetText } from '../../fleet/address.js';
import type { Address } from '../../fleet/fleet.js';
import { listenError } from '../../listen-error.js';
import { now } from '../../steady-clock.js';
import { ControlPlane, type Nack, type NodeView, type ResourceSet } from '../protocol/control-plane.js';
import {
  type LoadReportOptions,
  type LoadReportRequest,
  LoadReportSession,
} from '../protocol/load-report-session.js';
import type { NodeIdentity } from '../protocol/node.js';
import type { DeltaRequest, SotwRequest } from '../protocol/session.js';
import type { ResourceStatus } from '../protocol/subscription.js';
import { decodeDeltaRequest, decodeSotwRequest, encodeDeltaResponse, encodeSotwResponse } from './codec.js';
import { decodeLoadReport, encodeLoadStatsResponse, LOAD_STATS_PATH } from './load-stats.js';
import { type Refusal, Refusals } from './refusals.js';
import { RenewableCredentials, type ServerTls } from './renewable-credentials.js';
import { type DiscoveryMethod, discoveryMethods } from './services.js';

export interface XdsServerOptions {
  /** Port 0 takes a free one. */
  readonly listen: Address;
  /** Absent: plaintext. */
  readonly tls?: ServerTls;
  /** Expected in `authorization: Bearer …` when given. */
  readonly token?: string;
  /** The node's frontend, or the error that the node is refused with. */
  readonly resolveFrontend: (node: NodeIdentity) => string | WardropError;
  /** Whether the filters of this Envoy hold the newest snapshot; default yes. See `ControlPlaneOptions.isReady`. */
  readonly isReady?: (node: NodeIdentity, frontendId: string) => boolean;
  readonly onNack?: (nack: Nack) => void;
  /** Absent: no load reports are taken. */
  readonly loadReports?: Omit<LoadReportOptions, 'resolveFrontend'>;
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>;
}

type Request = SotwRequest | DeltaRequest;
type Call<R = Request> = grpc.ServerDuplexStream<R, Buffer>;

/** What one stream's messages go to. */
interface Stream<R> {
  readonly receive: (request: R) => void;
  readonly close?: () => void;
}

const mebibyte = 2 ** 20;

const channelOptions: grpc.ServerOptions = {
  // A peer that vanished without a word is gone after 40 s.
  'grpc.keepalive_time_ms': 30_000,
  'grpc.keepalive_timeout_ms': 10_000,
  // Reconnecting delta clients list all that they hold, and a rejection may quote what it rejects.
  'grpc.max_receive_message_length': 64 * mebibyte,
  'grpc.max_send_message_length': -1,
};

const statusOf: Partial<Record<string, grpc.status>> = {
  WARDROP_NODE_UNKNOWN: grpc.status.INVALID_ARGUMENT,
  WARDROP_XDS_REQUEST_INVALID: grpc.status.INVALID_ARGUMENT,
  WARDROP_UNAUTHENTICATED: grpc.status.UNAUTHENTICATED,
};

/** The longest piece of a client's error text that goes to the log. */
const LOGGED_REASON_LENGTH = 1000;

/** Serves xDS over gRPC. All decisions are the control plane's; here are only streams. */
export class XdsServer {
  readonly #options: XdsServerOptions;
  readonly #plane: ControlPlane;
  readonly #server = new grpc.Server(channelOptions);
  /** Absent: plaintext. */
  #credentials: RenewableCredentials | undefined;
  readonly #calls = new Set<Pick<Call, 'end'>>();
  readonly #settledWaiters = new Set<() => void>();
  readonly #refusals = new Refusals();

  constructor(options: XdsServerOptions) {
    this.#options = options;
    this.#plane = new ControlPlane({
      now,
      resolveFrontend: options.resolveFrontend,
      ...(options.isReady && { isReady: options.isReady }),
      onConnect: ({ id, userAgentVersion }, frontendId, shortcomings) => {
        options.log.info({ nodeId: id, frontendId, userAgentVersion }, 'an Envoy connected');
        for (const shortcoming of shortcomings) options.log.warn({ nodeId: id, frontendId }, shortcoming);
      },
      onDisconnect: ({ id }, frontendId) =>
        options.log.info({ nodeId: id, frontendId }, 'an Envoy disconnected'),
      onAccept: () => this.#wakeWaiters(),
      onNack: (nack) => this.#reportNack(nack),
    });
    for (const method of discoveryMethods) {
      const decode = method.protocol === 'sotw' ? decodeSotwRequest : decodeDeltaRequest;
      this.#addMethod<Request>(method.path, decode, (call) => this.#serveDiscovery(call, method));
    }
    const { loadReports, resolveFrontend } = options;
    if (loadReports === undefined) return;
    this.#addMethod<LoadReportRequest>(LOAD_STATS_PATH, decodeLoadReport, (call) => {
      const session = new LoadReportSession({ ...loadReports, resolveFrontend }, (clusters) =>
        call.write(encodeLoadStatsResponse(clusters)),
      );
      return { receive: (request) => session.receive(request) };
    });
  }

  /** Binds the address and returns it with the port that was really taken. */
  async start(): Promise<Address> {
    const { listen, tls, log } = this.#options;
    if (tls !== undefined) {
      checkTls(tls);
      this.#credentials = new RenewableCredentials(tls);
    }
    const credentials = this.#credentials ?? grpc.ServerCredentials.createInsecure();
    const port = await new Promise<number>((resolve, reject) => {
      this.#server.bindAsync(listen, credentials, (error, bound) => {
        if (error === null) resolve(bound);
        else reject(listenError('xDS', listen, error));
      });
    });
    const bound = targetText({ host: splitAddress(listen).host, port });
    log.info({ listen: bound, tls: tls !== undefined }, 'serving xDS');
    return bound;
  }

  /** Shows another certificate from the next connection on, where there is TLS at all. */
  renew(tls: ServerTls): void {
    this.#credentials?.renew(tls);
  }

  /** Ends all streams cleanly, so that Envoys reconnect elsewhere, and frees the port; forced after `graceMs`. */
  async stop(graceMs = 1000): Promise<void> {
    // Streams first: a server with open streams never finishes its shutdown.
    for (const call of this.#calls) call.end();
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
        this.#server.forceShutdown();
        resolve();
      }, graceMs);
      this.#server.tryShutdown(() => {
        clearTimeout(timer);
        resolve();
      });
    });
    this.#wakeWaiters();
  }

  /** Replaces what the Envoys of a frontend see, and pushes what changed. */
  setResources(frontendId: string, set: ResourceSet): void {
    this.#plane.setResources(frontendId, set);
  }

  /** Sends what Envoys had to wait for and need not any more. */
  goOn(): void {
    this.#plane.goOn();
  }

  /** Forgets what Envoys of frontends that are not listed see; those that are connected keep what they have. */
  retain(frontendIds: ReadonlySet<string>): void {
    this.#plane.retain(frontendIds);
  }

  /**
   * Resolves to true once every connected Envoy of the frontend has accepted the newest resources (at once when none
   * is connected), to false after `timeoutMs`. Wait for it before a filter is told of new endpoints.
   */
  async settled(frontendId: string, timeoutMs: number): Promise<boolean> {
    if (this.#plane.isSettled(frontendId)) return true;
    return new Promise((resolve) => {
      const finish = (isSettled: boolean) => {
        clearTimeout(timer);
        this.#settledWaiters.delete(check);
        resolve(isSettled);
      };
      const check = () => {
        if (this.#plane.isSettled(frontendId)) finish(true);
      };
      const timer = setTimeout(() => finish(false), timeoutMs);
      this.#settledWaiters.add(check);
    });
  }

  /** Whether this node is connected and has accepted its newest clusters and endpoints. */
  hasClusters(nodeId: string): boolean {
    return this.#plane.hasClusters(nodeId);
  }

  /** Ids of nodes that are connected, sorted. */
  connectedNodes(): string[] {
    return this.#plane.connectedNodes();
  }

  /** Nodes of which `hasClusters` is true, sorted. */
  configuredNodes(): string[] {
    return this.#plane.configuredNodes();
  }

  /** Every connected Envoy with what it was sent, accepted and rejected. */
  nodes(): NodeView[] {
    return this.#plane.nodes();
  }

  /** Who was refused within the last minute. */
  refusals(): readonly Refusal[] {
    return this.#refusals.list(now());
  }

  /** Every resource that this node asked for or was sent, by type URL. */
  resourcesOf(nodeId: string): Record<string, readonly ResourceStatus[]> {
    return this.#plane.resourcesOf(nodeId);
  }

  #addMethod<R>(path: string, decode: (bytes: Buffer) => R, open: (call: Call<R>) => Stream<R>): void {
    const method: grpc.MethodDefinition<R, Buffer> = {
      path,
      requestStream: true,
      responseStream: true,
      requestDeserialize: decode,
      responseSerialize: (bytes: Buffer) => bytes,
      // A server uses neither.
      requestSerialize: unused,
      responseDeserialize: unused,
    };
    this.#server.addService({ [path]: method }, { [path]: (call: Call<R>) => this.#serve(call, open) });
  }

  #serveDiscovery(call: Call, { protocol, typeUrl }: DiscoveryMethod): Stream<Request> {
    const encode = protocol === 'sotw' ? encodeSotwResponse : encodeDeltaResponse;
    const connection = this.#plane.connect(protocol, (response) => call.write(encode(response)));
    return {
      receive: (request) => connection.receive(withType(request, typeUrl)),
      close: () => {
        connection.close();
        this.#wakeWaiters();
      },
    };
  }

  #serve<R>(call: Call<R>, open: (call: Call<R>) => Stream<R>): void {
    const { log } = this.#options;
    const peer = call.getPeer();
    if (!this.#isAuthentic(call.metadata)) {
      const error = new WardropError('WARDROP_UNAUTHENTICATED', 'the xDS token is missing or wrong');
      this.#logRefusal(peer, error);
      endWithError(call, error);
      return;
    }
    const stream = open(call);
    const close = () => {
      if (this.#calls.delete(call)) stream.close?.();
    };
    this.#calls.add(call);
    call.on('data', (request: R) => {
      if (!this.#calls.has(call)) return;
      try {
        stream.receive(request);
      } catch (error) {
        close();
        if (error instanceof WardropError) this.#logRefusal(peer, error);
        else log.error({ peer, err: error }, 'ended an xDS stream');
        endWithError(call, error);
      }
    });
    call.on('end', () => {
      close();
      call.end();
    });
    call.on('cancelled', close);
    call.on('close', close);
    call.on('error', close);
  }

  #isAuthentic(metadata: grpc.Metadata): boolean {
    const { token } = this.#options;
    if (token === undefined) return true;
    return metadata.get('authorization').some((value) => isAuthentic(String(value), token));
  }

  #logRefusal(peer: string, { code, message }: WardropError): void {
    if (this.#refusals.note(peer, message, now())) this.#options.log.warn({ peer, code }, message);
  }

  #reportNack(nack: Nack): void {
    const reason = nack.reason.slice(0, LOGGED_REASON_LENGTH);
    this.#options.log.error({ ...nack, reason }, 'an Envoy rejected its configuration');
    this.#options.onNack?.(nack);
    this.#wakeWaiters();
  }

  #wakeWaiters(): void {
    for (const check of [...this.#settledWaiters]) check();
  }
}

/** gRPC would report an unusable certificate as a failure to bind. */
function checkTls({ certificate, key, clientCa }: ServerTls): void {
  try {
    createSecureContext({ cert: certificate, key, ca: clientCa });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new WardropError(
      'WARDROP_CONFIG_INVALID',
      `cannot use the xDS server's certificate or key: ${reason}`,
    );
  }
}

/** On a service for one type the type may be left out, and no other may be asked for. */
function withType(request: Request, only: string | undefined): Request {
  if (only === undefined || request.typeUrl === only) return request;
  if (request.typeUrl === '') return { ...request, typeUrl: only };
  throw new WardropError(
    'WARDROP_XDS_REQUEST_INVALID',
    `the xDS client asked for ${request.typeUrl} on the service for ${only}`,
  );
}

function endWithError(call: Pick<Call, 'emit'>, error: unknown): void {
  const code = error instanceof WardropError ? statusOf[error.code] : undefined;
  const details = error instanceof Error ? error.message : String(error);
  call.emit('error', { code: code ?? grpc.status.INTERNAL, details });
}

function unused(): never {
  throw new Error('a server neither serializes requests nor deserializes responses');
}
