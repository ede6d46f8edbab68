import { WardropError } from '../../errors.js';
import type { NodeIdentity } from './node.js';
import type { View } from './resource.js';
import { type DeltaRequest, type NumberedView, type Response, Session, type SotwRequest } from './session.js';
import type { Mark, Protocol, Rejection, ResourceStatus, Subscription } from './subscription.js';
import { CLUSTER_TYPE, ENDPOINTS_TYPE } from './type-url.js';

/** What the Envoys of one frontend may see. Equal nodes must get the very same view, so that they share it. */
export interface ResourceSet {
  viewOf(node: NodeIdentity): View;
  /** In words, what this node's view lacks because of what the node is; default nothing. */
  shortcomingsOf?(node: NodeIdentity): readonly string[];
}

/** A client refused a response. Loud by design: the client goes on with its last good configuration. */
export interface Nack extends Rejection {
  readonly nodeId: string;
  readonly frontendId: string;
  readonly typeUrl: string;
}

export interface ControlPlaneOptions {
  /** The node's frontend, or the error that the node is refused with. */
  readonly resolveFrontend: (node: NodeIdentity) => string | WardropError;
  /**
   * Whether a client that has accepted what other resources follow is ready with it, so that it gets these, too; default yes.
   * Call `goOn` after it has changed, and every now and then.
   */
  readonly isReady?: (node: NodeIdentity, frontendId: string) => boolean;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly onConnect?: (node: NodeIdentity, frontendId: string, shortcomings: readonly string[]) => void;
  readonly onDisconnect?: (node: NodeIdentity, frontendId: string) => void;
  readonly onAccept?: () => void;
  readonly onNack?: (nack: Nack) => void;
}

/** One connected client, as an operator sees it. */
export interface NodeView {
  readonly nodeId: string;
  readonly frontendId: string;
  readonly protocol: Protocol;
  readonly userAgent: string;
  readonly userAgentVersion: string;
  readonly connectedAtMs: number;
  /** In words, what this client must do without, because of its version or build. */
  readonly shortcomings: readonly string[];
  /** By type URL. */
  readonly types: Readonly<Record<string, TypeView>>;
}

/** `synced`: the newest state is accepted. `stale`: an answer or the next push is outstanding. */
export type TypeStatus = 'synced' | 'stale' | 'rejected' | 'not-sent';

export interface TypeView {
  readonly status: TypeStatus;
  /** Names asked for, sorted; `*` stands for all. */
  readonly subscribed: readonly string[];
  readonly sent: Mark | null;
  readonly acknowledged: Mark | null;
  /** When the response was sent that has no answer yet; null when none is outstanding. */
  readonly unansweredSinceMs: number | null;
  /** The last rejection, even when later versions were accepted. */
  readonly rejection: Rejection | null;
  readonly rejections: number;
}

interface Client {
  readonly session: Session;
  readonly connectedAtMs: number;
  frontendId: string | undefined;
}

/** An open stream; `close` must be called exactly when it ends. */
export interface Connection {
  receive(request: SotwRequest | DeltaRequest): void;
  close(): void;
}

/** The management server without its sockets: who is connected, what they may see, and what they made of it. */
export class ControlPlane {
  readonly #options: ControlPlaneOptions;
  readonly #sets = new Map<string, ResourceSet>();
  readonly #clients = new Set<Client>();
  #publications = 0;

  constructor(options: ControlPlaneOptions) {
    this.#options = options;
  }

  /** Opens a stream; `send` is called during `receive` of this and `setResources` of the whole. */
  connect(protocol: Protocol, send: (response: Response) => void): Connection {
    const options = this.#options;
    const session: Session = new Session({
      protocol,
      send,
      now: options.now,
      open: (node) => this.#open(client, node),
      isReady: () => options.isReady?.(session.node!, client.frontendId!) ?? true,
      onAccept: () => options.onAccept?.(),
      onReject: (typeUrl, rejection) =>
        options.onNack?.({
          nodeId: session.node!.id,
          frontendId: client.frontendId!,
          typeUrl,
          ...rejection,
        }),
    });
    const client: Client = { session, connectedAtMs: options.now(), frontendId: undefined };
    this.#clients.add(client);
    return {
      receive: (request) => session.receive(request),
      close: () => {
        this.#clients.delete(client);
        if (session.node !== undefined) options.onDisconnect?.(session.node, client.frontendId!);
      },
    };
  }

  #open(client: Client, node: NodeIdentity): NumberedView | undefined {
    const found = this.#options.resolveFrontend(node);
    if (found instanceof WardropError) throw found;
    client.frontendId = found;
    this.#options.onConnect?.(node, found, this.#shortcomingsOf(node, found));
    const set = this.#sets.get(found);
    return set && { view: set.viewOf(node), number: this.#publications };
  }

  /** Replaces what a frontend's clients see, and sends them what changed. */
  setResources(frontendId: string, set: ResourceSet): void {
    this.#sets.set(frontendId, set);
    const number = ++this.#publications;
    for (const { session } of this.#clientsOf(frontendId)) {
      session.setView({ view: set.viewOf(session.node!), number });
    }
  }

  /** Sends what clients had to wait for and need not any more. */
  goOn(): void {
    for (const { session } of this.#clients) session.goOn();
  }

  /** Forgets what clients of frontends that are not listed see; those that are connected keep what they have. */
  retain(frontendIds: ReadonlySet<string>): void {
    for (const id of this.#sets.keys()) if (!frontendIds.has(id)) this.#sets.delete(id);
  }

  /** True when every connected client of the frontend has accepted the newest state; also when there is none. */
  isSettled(frontendId: string): boolean {
    return this.#clientsOf(frontendId).every(({ session }) => session.isSettled());
  }

  /** True when a connected client of this node has accepted its newest clusters and endpoints. */
  hasClusters(nodeId: string): boolean {
    return [...this.#clients].some(
      ({ session }) =>
        session.node?.id === nodeId && session.holds(CLUSTER_TYPE) && session.holds(ENDPOINTS_TYPE),
    );
  }

  /** Ids of nodes that are connected, sorted. */
  connectedNodes(): string[] {
    return [...new Set([...this.#clients].flatMap(({ session }) => session.node?.id ?? []))].sort();
  }

  /** Nodes of which `hasClusters` is true, sorted. */
  configuredNodes(): string[] {
    const ids = [...this.#clients].flatMap(({ session }) =>
      session.node !== undefined && session.holds(CLUSTER_TYPE) && session.holds(ENDPOINTS_TYPE)
        ? [session.node.id]
        : [],
    );
    return [...new Set(ids)].sort();
  }

  /** Connected clients that have introduced themselves, sorted by id. */
  nodes(): NodeView[] {
    return [...this.#clients]
      .flatMap((client) => this.#nodeView(client) ?? [])
      .sort((a, b) =>
        a.nodeId < b.nodeId ? -1 : a.nodeId > b.nodeId ? 1 : a.connectedAtMs - b.connectedAtMs,
      );
  }

  /** Every resource that this node's streams asked for or were sent, by type URL. */
  resourcesOf(nodeId: string): Record<string, readonly ResourceStatus[]> {
    const sessions = [...this.#clients]
      .map(({ session }) => session)
      .filter(({ node }) => node?.id === nodeId);
    return Object.fromEntries(
      sessions.flatMap(({ subscriptions, view }) =>
        [...subscriptions].map(([typeUrl, subscription]) => [
          typeUrl,
          subscription.resources(view?.get(typeUrl)),
        ]),
      ),
    );
  }

  #shortcomingsOf(node: NodeIdentity, frontendId: string): readonly string[] {
    return this.#sets.get(frontendId)?.shortcomingsOf?.(node) ?? [];
  }

  #nodeView({ session, connectedAtMs, frontendId }: Client): NodeView | undefined {
    const { node, view } = session;
    if (node === undefined || frontendId === undefined) return undefined;
    const types = Object.fromEntries(
      [...session.subscriptions].map(([typeUrl, subscription]) => [
        typeUrl,
        typeView(typeUrl, subscription, view),
      ]),
    );
    return {
      nodeId: node.id,
      frontendId,
      protocol: session.protocol,
      userAgent: node.userAgent,
      userAgentVersion: node.userAgentVersion,
      connectedAtMs,
      shortcomings: this.#shortcomingsOf(node, frontendId),
      types,
    };
  }

  #clientsOf(frontendId: string): Client[] {
    return [...this.#clients].filter((client) => client.frontendId === frontendId && client.session.node);
  }
}

function typeView(typeUrl: string, subscription: Subscription, view: View | undefined): TypeView {
  return {
    status: statusOf(subscription, subscription.isSettled(view?.get(typeUrl))),
    subscribed: [...(subscription.wildcard ? ['*'] : []), ...[...subscription.names].sort()],
    sent: subscription.sent ?? null,
    acknowledged: subscription.acknowledged ?? null,
    unansweredSinceMs: subscription.unansweredSinceMs ?? null,
    rejection: subscription.rejection ?? null,
    rejections: subscription.rejections,
  };
}

function statusOf(subscription: Subscription, isSettled: boolean): TypeStatus {
  if (subscription.isRefused) return 'rejected';
  if (!isSettled) return 'stale';
  return subscription.sent === undefined && subscription.isEmpty ? 'not-sent' : 'synced';
}
