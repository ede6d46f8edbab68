import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { TlsSettings } from '../../config/config.js';
import { answerFromAdmin } from '../../peers/admin-question.js';
import type { Peers } from '../../peers/peers.js';
import { now } from '../../steady-clock.js';
import type { SnapshotBoard } from '../../sync/snapshot-board.js';
import { SyncServer } from '../../sync/sync-server.js';
import { frontendOf, type Nack, XdsServer } from '../../xds/index.js';
import type { LiveConfig } from '../live-config/live-config.js';
import { FirstClusters } from './first-clusters.js';
import { hasFreshFilter } from './fresh-filters.js';
import type { Intake } from './intake.js';

export interface EnvoySocketsOptions {
  readonly live: LiveConfig;
  readonly intake: Intake;
  readonly board: SnapshotBoard;
  readonly peers: Peers;
  /** Pools of the plan that was in force before this server started. */
  readonly poolsBefore: readonly string[];
  readonly onNack: (nack: Nack) => void;
  /** A filter was answered, with this status. */
  readonly onSync: (status: number) => void;
  readonly log: Logger;
}

/** Where Envoys call. */
export interface EnvoySockets {
  readonly xds: XdsServer;
  readonly sync: SyncServer;
  /** Shows other certificates from now on. */
  readonly renew: (tls: TlsSettings) => void;
  /** Gives no more filters, waits until those that were just given have snapshots, and frees the ports. */
  readonly stop: () => Promise<void>;
}

/** Longest that it is waited for, in milliseconds: Envoy has to compile a filter before it calls. */
const LONGEST_WAIT_MS = 5_000;
const LOOK_MS = 50;

/** Not listening yet. Addresses and token are those of the start. */
export function envoySockets(options: EnvoySocketsOptions): EnvoySockets {
  const xds = xdsServer(options);
  const sync = syncServer(options, xds);
  const renew = (tls: TlsSettings) => {
    xds.renew(xdsTls(tls));
    sync.renew(tls);
  };
  const stop = async () => {
    const nodes = xds.nodes();
    await xds.stop();
    const endMs = now() + LONGEST_WAIT_MS;
    while (now() < endMs && hasFreshFilter(nodes, options.board, now())) await sleep(LOOK_MS);
    await sync.stop();
  };
  return { xds, sync, renew, stop };
}

function xdsServer({ live, intake, board, onNack, log }: EnvoySocketsOptions): XdsServer {
  const { token, tls, xdsListen } = live.current.server;
  return new XdsServer({
    listen: xdsListen,
    ...(token !== undefined && { token }),
    ...(tls !== undefined && { tls: xdsTls(tls) }),
    resolveFrontend: (node) => frontendOf(node, live.current.fleet.frontends),
    isReady: ({ id }, frontendId) => board.isHolder(frontendId, id),
    onNack,
    loadReports: {
      clusters: () => live.current.fleet.pools.map(({ id }) => id),
      open: (frontendId, nodeId) => intake.openLoadReports(frontendId, nodeId),
    },
    log,
  });
}

function syncServer(
  { live, intake, board, peers, poolsBefore, onSync, log }: EnvoySocketsOptions,
  xds: XdsServer,
): SyncServer {
  const { token, tls, syncListen, adminListen } = live.current.server;
  const first = new FirstClusters(poolsBefore, now);
  const hasClusters = (nodeId: string) => xds.hasClusters(nodeId) || peers.hasClusters(nodeId);
  return new SyncServer({
    listen: syncListen,
    ...(token !== undefined && { token }),
    ...(tls !== undefined && { tls }),
    board,
    isFrontend: (id) => live.hasFrontend(id),
    hasClusters,
    lacksPools: (nodeId, poolIds) =>
      first.isMissing(poolIds, () => hasClusters(nodeId)) ||
      (peers.lacksPools(nodeId, poolIds, now()) && !xds.connectedNodes().includes(nodeId)),
    onReport: (frontendId, nodeId, report, bytes) => {
      peers.tell('report', frontendId, nodeId, () => bytes);
      return intake.acceptReport(frontendId, nodeId, report);
    },
    ...(!peers.isAlone && {
      onPeer: (question, signal) => peers.answer(question, signal),
      onAdminQuestion: (question) => answerFromAdmin(adminListen, question),
    }),
    onAnswer: onSync,
    log,
  });
}

function xdsTls({ cert, key, clientCa }: TlsSettings) {
  return {
    certificate: Buffer.from(cert),
    key: Buffer.from(key),
    ...(clientCa === undefined ? {} : { clientCa: Buffer.from(clientCa) }),
  };
}
