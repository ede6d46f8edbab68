import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import { encodeDisplaced } from '../../wire/displaced-writer.js';
import {
  INLINE_SNAPSHOT_VERSION,
  SYNC_NODE_HEADER,
  SYNC_PATH,
  SYNC_READY_PATH,
  SYNC_SNAPSHOT_HEADER,
} from '../../wire/names.js';
import type { UsageReport } from '../../wire/usage-report.js';
import { decodeUsageReport } from '../../wire/usage-report-reader.js';
import { isAuthentic } from '../bearer.js';
import { sum } from '../collections.js';
import { type ErrorCode, WardropError } from '../errors.js';
import { splitAddress, targetText } from '../fleet/address.js';
import type { Address } from '../fleet/fleet.js';
import { listenError } from '../listen-error.js';
import { ADMIN_QUESTION_PATH, type AdminAnswer } from '../peers/admin-question.js';
import { PEER_PATH } from '../peers/peer-news.js';
import { now } from '../steady-clock.js';
import { type Caller, callerOf } from './caller.js';
import { DisplacedBoard } from './displaced-board.js';
import { Holds } from './hold.js';
import { readBody, sendBytes, sendJson, TooLarge } from './http-body.js';
import { OpenCalls } from './open-calls.js';
import { RefusedCalls } from './refused-calls.js';
import type { SnapshotBoard } from './snapshot-board.js';
import { VainOffers } from './vain-offers.js';

/** PEM texts. With `clientCa`, callers must show a certificate of this authority. */
interface SyncTls {
  readonly cert: string;
  readonly key: string;
  readonly clientCa?: string;
}

export interface SyncServerOptions {
  /** Port 0 takes a free one. */
  readonly listen: Address;
  /** Absent: plain HTTP. */
  readonly tls?: SyncTls;
  /** Expected in `authorization: Bearer …` when given. */
  readonly token?: string;
  readonly board: SnapshotBoard;
  readonly isFrontend: (id: string) => boolean;
  /**
   * Whether an Envoy that began with a snapshot of its bootstrap has by now the clusters that other snapshots name;
   * default always.
   */
  readonly hasClusters?: (nodeId: string) => boolean;
  /** Whether an Envoy lacks the cluster of one of these pools, so that requests to it would fail; default never. */
  readonly lacksPools?: (nodeId: string, poolIds: readonly string[]) => boolean;
  /**
   * Takes a report, and tells whether the frontend is to be asked for the next one as soon as possible. `bytes` as the filter
   * has sent it.
   */
  readonly onReport: (frontendId: string, nodeId: string, report: UsageReport, bytes: Uint8Array) => boolean;
  /** Answers another control server, whose question is text; absent: there are no others. */
  readonly onPeer?: (question: string, signal: AbortSignal) => Promise<string>;
  /** Answers what another control server wants to know of the admin API. */
  readonly onAdminQuestion?: (question: string) => Promise<AdminAnswer>;
  /** Status of every answer to a filter, for metrics. */
  readonly onAnswer?: (status: number) => void;
  readonly log: Pick<Logger, 'info' | 'warn'>;
  /** Longest time that a call waits for news, in milliseconds; default: as `Holds` says. */
  readonly holdMs?: number | undefined;
}

/** Who has called within this time calls again. */
const CALLING_MS = 2_000;

const statusOf: Partial<Record<ErrorCode, number>> = {
  WARDROP_UNAUTHENTICATED: 401,
  WARDROP_NODE_UNKNOWN: 404,
  WARDROP_REPORT_INVALID: 400,
  WARDROP_PEER_INVALID: 400,
  WARDROP_SNAPSHOT_INVALID: 409,
};

/**
 * Takes usage reports and hands out snapshots: `POST /v1/sync` answers 200 with a snapshot as soon as there is another
 * one than the caller holds, 304 when there is none in time, 503 while there is none at all. Instead of 304, a caller may get
 * the keys that other Envoys of its frontend have displaced. `GET /ready` tells Envoys whether to call here, and other control
 * servers ask for news.
 */
export class SyncServer {
  readonly #options: SyncServerOptions;
  readonly #server: Server;
  readonly #openCalls = new OpenCalls();
  readonly #refused = new RefusedCalls();
  readonly #offers = new VainOffers();
  readonly #displaced = new DisplacedBoard(now);
  readonly #holds = new Holds();

  constructor(options: SyncServerOptions) {
    this.#options = options;
    const handle = (request: IncomingMessage, response: ServerResponse) =>
      void this.#answer(request, response);
    const { tls } = options;
    this.#server =
      tls === undefined
        ? createServer(handle)
        : createTlsServer({ ...contextOf(tls), requestCert: tls.clientCa !== undefined }, handle);
    this.#server.requestTimeout = 10_000;
    // Longer than Envoys wait between two calls, so that no call meets a connection that is just being closed.
    this.#server.keepAliveTimeout = 120_000;
  }

  /** Binds the address and returns it with the port that was really taken. */
  async start(): Promise<Address> {
    const { listen, tls, log } = this.#options;
    const { host, port } = splitAddress(listen);
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (error) => {
        reject(listenError('sync', listen, error));
      });
      this.#server.listen(port, host, resolve);
    });
    const bound = targetText({ host, port: (this.#server.address() as AddressInfo).port });
    log.info({ listen: bound, tls: tls !== undefined }, 'serving sync');
    return bound;
  }

  /** Shows another certificate from the next connection on, where there is TLS at all. */
  renew(tls: SyncTls): void {
    if (this.#server instanceof TlsServer) this.#server.setSecureContext(contextOf(tls));
  }

  /** Answers all calls that wait and frees the port. */
  async stop(): Promise<void> {
    this.#openCalls.endAll();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeIdleConnections();
      setTimeout(() => this.#server.closeAllConnections(), 500).unref();
    });
  }

  /** Nodes whose reports are all refused, and what is wrong with them. */
  unreadNodes(nowMs: number): ReadonlyMap<string, string> {
    return this.#refused.unread(nowMs);
  }

  /** Tells the Envoys that call here what one that calls another control server has displaced. */
  addDisplaced(frontendId: string, nodeId: string, hashes: readonly bigint[]): void {
    this.#displaced.add(frontendId, nodeId, hashes);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === 'GET' && request.url === SYNC_READY_PATH) {
      response.writeHead(this.#options.board.hasAny ? 200 : 503).end();
      return;
    }
    try {
      const { onPeer, onAdminQuestion } = this.#options;
      if (request.url === PEER_PATH && onPeer !== undefined) {
        await this.#tellPeer(request, response, onPeer);
        return;
      }
      if (request.url === ADMIN_QUESTION_PATH && onAdminQuestion !== undefined) {
        await this.#tellReasons(request, response, onAdminQuestion);
        return;
      }
      await this.#sync(request, response);
    } catch (error) {
      this.#refuse(request, response, error);
    }
    // Who has left was not answered.
    if (response.headersSent) this.#options.onAnswer?.(response.statusCode);
  }

  async #tellPeer(
    request: IncomingMessage,
    response: ServerResponse,
    onPeer: NonNullable<SyncServerOptions['onPeer']>,
  ): Promise<void> {
    this.#authenticate(request);
    const question = await readBody(request);
    const news = await onPeer(question.toString(), this.#openCalls.untilClosed(response));
    response.writeHead(200, { 'content-type': 'application/json' }).end(news);
  }

  async #tellReasons(
    request: IncomingMessage,
    response: ServerResponse,
    onAdminQuestion: NonNullable<SyncServerOptions['onAdminQuestion']>,
  ): Promise<void> {
    this.#authenticate(request);
    const { status, type, body } = await onAdminQuestion((await readBody(request)).toString());
    response.writeHead(status, { 'content-type': type }).end(body);
  }

  async #sync(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { board } = this.#options;
    this.#authenticate(request);
    if (request.method !== 'POST' || request.url !== SYNC_PATH) throw new NotFound();
    const caller = callerOf(request.headers, this.#options.isFrontend);
    const body = await readBody(request);
    const startedMs = performance.now();
    const { vms, displaced } = decodeUsageReport(body);
    const isUrgent = this.#options.onReport(caller.frontendId, caller.nodeId, { vms }, body);
    this.#holds.noteReport(performance.now() - startedMs);
    this.#displaced.add(caller.frontendId, caller.nodeId, displaced ?? []);
    board.noteHolder(caller.frontendId, caller.nodeId, caller.version);
    const worth = this.#offers.worth(caller.nodeId, caller.version, now());
    if (worth === 'new') this.#refused.accept(caller.nodeId, now());
    // One that has none yet may be another filter each time, of an Envoy that is started again and again.
    else this.#tellVain(caller, worth === 'vain' && caller.version !== 0);

    if (caller.version === INLINE_SNAPSHOT_VERSION && this.#options.hasClusters?.(caller.nodeId) === false) {
      sendJson(response, 503, { message: 'this Envoy has not taken its clusters over xDS yet' });
      return;
    }
    const signal = this.#openCalls.untilClosed(response);
    const waitMs = this.#holdMs(isUrgent);
    // With none at all it would refuse every request.
    const mayTake = () => caller.version === 0 || !this.#lacksPools(caller);
    const snapshot = await board.newerThan(caller.frontendId, caller.version, waitMs, signal, mayTake);
    if (snapshot !== undefined) {
      this.#offers.note(caller.nodeId, caller.version, now());
      sendBytes(response, snapshot.bytes, { [SYNC_SNAPSHOT_HEADER]: String(snapshot.version) });
    } else if (board.current(caller.frontendId) !== undefined) {
      const { frontendId, nodeId, knowsDisplaced } = caller;
      const news =
        knowsDisplaced === undefined ? undefined : this.#displaced.after(frontendId, nodeId, knowsDisplaced);
      if (news === undefined) response.writeHead(304).end();
      else sendBytes(response, encodeDisplaced(news));
    } else {
      sendJson(response, 503, { message: 'there is no plan yet' }, { 'retry-after': '1' });
    }
  }

  /** Of a filter that does not take what it is given: with `isOver` it gets nothing. */
  #tellVain({ nodeId, version }: Caller, isOver: boolean): void {
    const problem = `it was given others and holds on to version ${version}, as a filter of another version does`;
    if (isOver) throw new WardropError('WARDROP_SNAPSHOT_INVALID', problem);
    if (this.#refused.refuse(nodeId, problem, now())) {
      this.#options.log.warn({ nodeId }, `a filter takes no snapshot: ${problem}`);
    }
  }

  #lacksPools({ nodeId, frontendId }: Caller): boolean {
    const { board, lacksPools } = this.#options;
    return lacksPools?.(nodeId, board.poolIds(frontendId)) === true;
  }

  #holdMs(isUrgent: boolean): number {
    const callers = sum(this.#options.board.envoysSince(now() - CALLING_MS).values());
    const { holdMs = this.#holds.ms(callers) } = this.#options;
    return isUrgent ? Math.min(holdMs, this.#holds.urgentMs(callers)) : holdMs;
  }

  #authenticate({ headers }: IncomingMessage): void {
    const { token } = this.#options;
    if (token !== undefined && !isAuthentic(headers.authorization, token)) {
      throw new WardropError('WARDROP_UNAUTHENTICATED', 'the sync token is missing or wrong');
    }
  }

  #refuse(request: IncomingMessage, response: ServerResponse, error: unknown): void {
    if (request.socket.destroyed) return;
    const status = error instanceof NotFound ? 404 : error instanceof TooLarge ? 413 : statusOfError(error);
    const message = error instanceof Error ? error.message : String(error);
    const code = error instanceof WardropError ? error.code : undefined;
    const host = String(request.socket.remoteAddress);
    const nodeId = String(request.headers[SYNC_NODE_HEADER] ?? host).slice(0, 256);
    // Whoever has no token may say any name, each time another one.
    const isStranger = code === 'WARDROP_UNAUTHENTICATED' || error instanceof NotFound;
    const isOfFilter = code === 'WARDROP_REPORT_INVALID' || code === 'WARDROP_SNAPSHOT_INVALID';
    const problem = isOfFilter ? message : undefined;
    if (this.#refused.refuse(isStranger ? host : nodeId, problem, now())) {
      const reason = code === undefined ? { ...(status === 500 && { err: error }) } : { code };
      const details = { nodeId, host, status, ...reason };
      this.#options.log.warn(details, `refused a sync call: ${message}`);
    }
    sendJson(response, status, { ...(code === undefined ? {} : { code }), message });
  }
}

function contextOf({ cert, key, clientCa }: SyncTls) {
  return { cert, key, minVersion: 'TLSv1.2' as const, ...(clientCa !== undefined && { ca: clientCa }) };
}

class NotFound extends Error {
  override readonly message = `there is only POST ${SYNC_PATH} here`;
}

function statusOfError(error: unknown): number {
  return (error instanceof WardropError ? statusOf[error.code] : undefined) ?? 500;
}
