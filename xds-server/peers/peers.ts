import { randomBytes } from 'node:crypto';
import type { ServerSettings, TlsSettings } from '../config/config.js';
import { WardropError } from '../errors.js';
import { targetText } from '../fleet/address.js';
import type { Orders } from '../fleet/operations.js';
import type { AdminAnswer, AdminQuestion } from './admin-question.js';
import { Leadership } from './leadership.js';
import { PeerBoard } from './peer-board.js';
import { PEER_HOLD_MS, PeerLink } from './peer-link.js';
import {
  decodeQuestion,
  encodeNews,
  type LiveState,
  type PeerNews,
  type PoolReach,
  type ToldReport,
} from './peer-news.js';

/** A start waits this long for a peer that may know more than the state file. */
const JOIN_WAIT_MS = 1_500;
/** Envoys that called a peer which is silent, and have not called here for this long, are taken for gone. */
const UNHEARD_MS = 3_600_000;
/** Envoys that a peer has not told of for this long are gone, or call another server. */
const MOVED_MS = 10_000;

/** What of this server goes with every answer. */
export interface OwnNews {
  readonly configId: string;
  readonly planSequence: number | null;
  readonly orders: Orders;
}

/** Whose plan is in force at the leading peer, and how things are there. */
export interface Followed {
  readonly address: string;
  /** Its state file. */
  readonly state: string;
  /** Undefined before it has published anything. */
  readonly live: LiveState | undefined;
}

/** A peer as the admin API shows it. */
export interface PeerView {
  readonly address: string;
  /** Null before it ever answered. */
  readonly instance: string | null;
  readonly leads: boolean;
  readonly term: number | null;
  readonly ageSeconds: number | null;
  readonly isSilent: boolean;
  /** Why it gave no good answer when it was last asked. */
  readonly problem: string | null;
  readonly planSequence: number | null;
  readonly hasSameConfig: boolean | null;
  /** Envoys that call it, by its last word; while it is silent, those of them that have not called here since. */
  readonly envoys: readonly string[];
}

export interface PeersOptions {
  readonly server: Pick<ServerSettings, 'peers' | 'token' | 'tls'>;
  readonly now: () => number;
}

export interface PeersEvents {
  readonly own: () => OwnNews;
  /** A peer that was silent is heard again; what it tells next has waited for it. */
  readonly onHeardAgain: () => void;
  readonly onReport: (report: ToldReport) => void;
  readonly onOrders: (orders: Orders) => void;
  /** A peer said something else than reports and orders. */
  readonly onChange: () => void;
}

interface LastNews extends Pick<PeerNews, 'claim' | 'configId' | 'planSequence'> {
  readonly state: string | undefined;
  readonly live: LiveState | undefined;
  readonly configured: ReadonlySet<string>;
  readonly pools: PoolReach | undefined;
}

/** An Envoy that calls a peer. */
interface ToldNode {
  readonly frontendId: string;
  readonly nodeId: string;
  readonly peer: string;
  readonly atMs: number;
}

/**
 * The other control servers of the fleet. Every one tells the others of each usage report that it gets, so that all of them know
 * the whole demand; one of them makes the plans, and the others publish these. Without peers this server just leads.
 */
export class Peers {
  readonly instance = randomBytes(8).toString('hex');
  readonly board: PeerBoard;
  readonly #options: PeersOptions;
  readonly #links: readonly PeerLink[];
  readonly #news = new Map<string, LastNews>();
  /** By node of a frontend. */
  readonly #nodes = new Map<string, ToldNode>();
  #leadership: Leadership;
  #events: PeersEvents | undefined;

  constructor(options: PeersOptions) {
    this.#options = options;
    const { server, now } = options;
    this.board = new PeerBoard(this.instance, now);
    this.#leadership = new Leadership(this.instance, false, now());
    this.#links = server.peers.map(
      ({ sync: target }) =>
        new PeerLink({
          target,
          ...(server.token !== undefined && { token: server.token }),
          ...(server.tls !== undefined && { tls: server.tls }),
          instance: this.instance,
          onNews: (news) => this.#take(targetText(target), news),
          now,
        }),
    );
  }

  get isAlone(): boolean {
    return this.#links.every(({ isSelf }) => isSelf);
  }

  /** Asks all peers once, and returns the state of one that runs: it knows better than a file how things are. */
  async join(): Promise<string | undefined> {
    const asked = Promise.all(this.#links.map((link) => link.ask()));
    await Promise.race([asked, new Promise((resolve) => setTimeout(resolve, JOIN_WAIT_MS).unref())]);
    const heard = [...this.#news.values()];
    this.#leadership = new Leadership(this.instance, heard.length > 0, this.#options.now());
    for (const [peer, { claim }] of this.#news) this.#leadership.hear(peer, claim, this.#options.now());
    const known = heard.filter(({ state }) => state !== undefined);
    return (known.find(({ claim }) => claim.leads) ?? known[0])?.state;
  }

  start(events: PeersEvents): void {
    this.#events = events;
    for (const link of this.#links) link.start();
  }

  /** Shows and wants other certificates from now on. */
  renew(tls: TlsSettings): void {
    for (const link of this.#links) link.renew(tls);
  }

  /** Asks no more, and makes no plans; who asks is answered. */
  async stop(): Promise<void> {
    this.#leadership.resign();
    await Promise.all(this.#links.map((link) => link.stop()));
  }

  /** What another server hears of this one; a promise that takes as long as there are no news. */
  async answer(body: string, signal: AbortSignal): Promise<string> {
    const { known } = decodeQuestion(body);
    await this.board.news(known, PEER_HOLD_MS, signal);
    return encodeNews({
      claim: this.#leadership.claim,
      ...this.#events!.own(),
      ...this.board.after(known),
    });
  }

  /** Decides anew who makes the plans; true when this server does. */
  decide(nowMs: number): boolean {
    for (const [key, { peer, atMs }] of this.#nodes) {
      const isSilent = this.#links.find(({ address }) => address === peer)!.isSilent(nowMs);
      if (nowMs - atMs > (isSilent ? UNHEARD_MS : MOVED_MS)) this.#nodes.delete(key);
    }
    return this.#leadership.decide(nowMs);
  }

  /** What there is to publish when another server makes the plans. */
  get followed(): Followed | undefined {
    const { leader } = this.#leadership;
    const news = leader === undefined ? undefined : this.#news.get(leader);
    if (leader === undefined || news?.state === undefined) return undefined;
    return { address: leader, state: news.state, live: news.live };
  }

  get leader(): string | undefined {
    return this.#leadership.leader;
  }

  /**
   * Asks the server that makes the plans.
   *
   * @throws {WardropError} WARDROP_NOT_READY when it does not answer
   */
  async askLeader(question: AdminQuestion): Promise<AdminAnswer> {
    const { leader } = this;
    try {
      return await this.#links.find(({ address }) => address === leader)!.askAdmin(question);
    } catch (error) {
      const what = `the control server at ${leader}, which makes the plans, does not answer`;
      throw new WardropError('WARDROP_NOT_READY', `${what}: ${(error as Error).message}`, { cause: error });
    }
  }

  get claim() {
    return this.#leadership.claim;
  }

  /** Tells peers of a report of an Envoy that calls this server itself. */
  tell(kind: ToldReport['kind'], frontendId: string, nodeId: string, bytes: () => Uint8Array): void {
    if (this.isAlone) return;
    this.#nodes.delete(`${frontendId} ${nodeId}`);
    this.board.addReport({ kind, frontendId, nodeId, bytes: bytes() });
  }

  /** Envoys that call a peer, as far as it is heard. */
  envoys(nowMs: number): readonly ToldNode[] {
    return [...this.#nodes.values()].filter(({ atMs }) => nowMs - atMs <= MOVED_MS);
  }

  /** Envoys that called a peer which is silent now, and have not turned up here: nobody tells of their requests. */
  unheard(nowMs: number): readonly ToldNode[] {
    const silent = new Set(this.#links.flatMap((link) => (link.isSilent(nowMs) ? [link.address] : [])));
    return [...this.#nodes.values()].filter(({ peer }) => silent.has(peer));
  }

  /** Whether a peer has given this Envoy its clusters. */
  hasClusters(nodeId: string): boolean {
    return [...this.#news.values()].some(({ configured }) => configured.has(nodeId));
  }

  /** Whether this Envoy has xDS from a peer that has not given it the clusters of all of these pools. */
  lacksPools(nodeId: string, poolIds: readonly string[], nowMs: number): boolean {
    return this.#reaches(nowMs).some(
      ({ connected, given }) => connected.includes(nodeId) && poolIds.some((id) => !given.includes(id)),
    );
  }

  /** Whether filters that call a peer may have a snapshot that names this pool. */
  namesPool(poolId: string, nowMs: number): boolean {
    return this.#reaches(nowMs).some(({ named }) => named.includes(poolId));
  }

  /** Of peers that are silent, too: their Envoys go on with what they have, and may not have come over. */
  #reaches(nowMs: number): PoolReach[] {
    return this.#links.flatMap(({ address, heardMs = Number.NEGATIVE_INFINITY }) => {
      const pools = this.#news.get(address)?.pools;
      return pools === undefined || nowMs - heardMs > UNHEARD_MS ? [] : [pools];
    });
  }

  views(nowMs: number, configId: string): readonly PeerView[] {
    return this.#links
      .filter(({ isSelf }) => !isSelf)
      .map((link) => {
        const news = this.#news.get(link.address);
        const isSilent = link.isSilent(nowMs);
        return {
          address: link.address,
          instance: news?.claim.instance ?? null,
          leads: !isSilent && news?.claim.leads === true,
          term: news?.claim.term ?? null,
          ageSeconds: link.heardMs === undefined ? null : (nowMs - link.heardMs) / 1_000,
          isSilent,
          problem: link.problem,
          planSequence: news?.planSequence ?? null,
          hasSameConfig: news === undefined ? null : news.configId === configId,
          envoys: [...this.#nodes.values()]
            .filter(({ peer }) => peer === link.address)
            .map(({ nodeId }) => nodeId),
        };
      });
  }

  #take(peer: string, news: PeerNews): void {
    const nowMs = this.#options.now();
    const before = this.#news.get(peer);
    const isSame = before?.claim.instance === news.claim.instance;
    const { claim, configId, planSequence } = news;
    this.#news.set(peer, {
      claim,
      configId,
      planSequence,
      state: news.state ?? (isSame ? before.state : undefined),
      live: news.live ?? (isSame ? before.live : undefined),
      configured: news.configured === undefined && isSame ? before.configured : new Set(news.configured),
      // Its Envoys have the same after a restart, until it says something else.
      pools: news.live === undefined ? before?.pools : news.pools,
    });
    this.#leadership.hear(peer, claim, nowMs);
    if (this.#links.find(({ address }) => address === peer)!.isSilent(nowMs)) this.#events?.onHeardAgain();
    for (const report of news.reports) {
      const { frontendId, nodeId } = report;
      this.#nodes.set(`${frontendId} ${nodeId}`, { frontendId, nodeId, peer, atMs: nowMs });
      this.#events?.onReport(report);
    }
    this.#events?.onOrders(news.orders);
    if (
      !isSame ||
      before.claim.leads !== claim.leads ||
      news.state !== undefined ||
      news.live !== undefined
    ) {
      this.#events?.onChange();
    }
  }
}
