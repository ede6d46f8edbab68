import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { decodeUsageReport } from '../../../wire/usage-report-reader.js';
import { WardropError } from '../../errors.js';
import type { Orders } from '../../fleet/operations.js';
import { mergedOrders } from '../../peers/merged-orders.js';
import type { ToldReport } from '../../peers/peer-news.js';
import type { Peers } from '../../peers/peers.js';
import type { Signals } from '../../signals/signals.js';
import type { SyncServer } from '../../sync/sync-server.js';
import type { Intake } from './intake.js';

export interface PeerIntakeOptions {
  readonly peers: Peers;
  readonly intake: Intake;
  readonly signals: Signals;
  readonly sync: Pick<SyncServer, 'addDisplaced'>;
  readonly isFrontend: (id: string) => boolean;
  readonly log: Pick<Logger, 'info'>;
  /** Operators ordered something at a peer. */
  readonly onOrders: () => void;
  readonly now: () => number;
}

/** What peers tell, on its way to signals. */
export class PeerIntake {
  readonly #options: PeerIntakeOptions;
  readonly #unread = new Map<string, string>();

  constructor(options: PeerIntakeOptions) {
    this.#options = options;
  }

  /** Why reports that peers tell of cannot be read, by node. */
  get unread(): ReadonlyMap<string, string> {
    return this.#unread;
  }

  /** Tells signals when not everything is heard: Envoys call peers that are silent. */
  look(nowMs: number): void {
    const { peers, signals } = this.#options;
    const told = new Set(peers.envoys(nowMs).map(({ nodeId }) => nodeId));
    for (const nodeId of this.#unread.keys()) if (!told.has(nodeId)) this.#unread.delete(nodeId);
    const isPartial = peers.unheard(nowMs).length + this.#unread.size > 0;
    // They may know otherwise from before a restart.
    if (isPartial !== signals.isPartial) signals.notePartial(isPartial, nowMs);
  }

  /** A peer may have been stopped for a while: reports that waited for it tell of a time before, as if we had been stopped. */
  noteHoldUp(): void {
    const { signals, now } = this.#options;
    signals.noteHoldUp(now());
  }

  /** Takes a report that came to a peer. */
  acceptReport({ kind, frontendId, nodeId, bytes }: ToldReport): void {
    const { intake, signals, sync, isFrontend, now } = this.#options;
    if (!isFrontend(frontendId)) return;
    try {
      const { vms, displaced } = decodeUsageReport(bytes);
      this.#unread.delete(nodeId);
      if (kind === 'load-report') signals.acceptLoadReport(frontendId, nodeId, { vms }, now());
      else intake.acceptReport(frontendId, nodeId, { vms });
      sync.addDisplaced(frontendId, nodeId, displaced ?? []);
    } catch (error) {
      if (!(error instanceof WardropError)) throw error;
      this.#unread.set(nodeId, error.message);
    }
  }

  /** Takes over what operators ordered at a peer. */
  acceptOrders(orders: Orders): void {
    const { signals, log, onOrders, now } = this.#options;
    const { orders: own } = signals;
    if (isDeepStrictEqual(orders, own)) return;
    const merged = mergedOrders(own, signals.currentOrders(orders, now()));
    if (isDeepStrictEqual(merged, own)) return;
    signals.takeOrders(merged, now());
    log.info({ actions: merged.actions.slice(-3) }, 'operator actions of another control server');
    onOrders();
  }
}
