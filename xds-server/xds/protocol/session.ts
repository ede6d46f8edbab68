import { WardropError } from '../../errors.js';
import type { NodeIdentity } from './node.js';
import type { View } from './resource.js';
import { type Answer, type Protocol, type Rejection, Subscription } from './subscription.js';
import { isFullState, isKept, referencedType, removalWaitsFor, sendOrder } from './type-url.js';

interface CommonRequest {
  /** Only in the first request of a stream, as a rule. */
  readonly node?: NodeIdentity;
  readonly typeUrl: string;
  /** Nonce of the response that this request accepts or rejects; empty when it does neither. */
  readonly responseNonce: string;
  /** Why that response was rejected; absent when it was accepted. */
  readonly error?: string;
}

/** State of the world: names everything that the client wants. */
export interface SotwRequest extends CommonRequest {
  readonly versionInfo: string;
  readonly resourceNames: readonly string[];
}

/** Incremental: names what to add and what to drop. */
export interface DeltaRequest extends CommonRequest {
  readonly subscribe: readonly string[];
  readonly unsubscribe: readonly string[];
  /** First request of a type: what the client still holds from an earlier stream. */
  readonly initialVersions: Readonly<Record<string, string>>;
}

export interface Response extends Answer {
  readonly typeUrl: string;
  readonly nonce: string;
}

export interface SessionOptions {
  readonly protocol: Protocol;
  /** Finds what this node may see, undefined while that isn't known yet; throws a WardropError to refuse it. */
  readonly open: (node: NodeIdentity) => NumberedView | undefined;
  /** Whether the client, which has accepted it, is ready with what others follow. */
  readonly isReady: () => boolean;
  readonly send: (response: Response) => void;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly onAccept: () => void;
  readonly onReject: (typeUrl: string, rejection: Rejection) => void;
}

/** A view with the number of its publication, which grows. */
export interface NumberedView {
  readonly view: View;
  readonly number: number;
}

/** One stream of one client: routes requests to subscriptions and decides what may be sent when. */
export class Session {
  readonly #options: SessionOptions;
  node: NodeIdentity | undefined;
  readonly subscriptions = new Map<string, Subscription>();
  #view: View | undefined;
  #publication = 0;
  /** Responses since this publication. */
  #sent = 0;
  #isHoldingBack = false;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  get protocol(): Protocol {
    return this.#options.protocol;
  }

  get view(): View | undefined {
    return this.#view;
  }

  /** Handles a request and sends what it makes due. Throws a WardropError when the stream must end. */
  receive(request: SotwRequest | DeltaRequest): void {
    this.#identify(request.node);
    if (request.typeUrl === '') throw invalid('a request without type_url');
    const subscription = this.#subscription(request.typeUrl);
    const isStale = request.responseNonce !== '' && request.responseNonce !== subscription.lastNonce;
    // The very first request may carry the nonce of an earlier stream.
    const isFirst = subscription.lastNonce === '';
    if (!isStale) this.#judge(subscription, request);
    if ('resourceNames' in request) {
      // A stale request was sent before the client saw our last response; it will ask again when it has.
      if (!isStale || isFirst) subscription.setNames(request.resourceNames, request.versionInfo);
    } else {
      // Changes of a subscription are never repeated, so they count even with a stale nonce.
      subscription.change(request.subscribe, request.unsubscribe, request.initialVersions);
    }
    this.#pump();
  }

  /** The newest state; replaces whatever waits to be sent. */
  setView(numbered: NumberedView): void {
    this.#take(numbered);
    this.#pump();
  }

  /** Sends what was held back and may be sent by now. */
  goOn(): void {
    if (this.#isHoldingBack) this.#pump();
  }

  /** True when the client has accepted all that it wants of the newest state. */
  isSettled(): boolean {
    const view = this.#view;
    if (view === undefined) return false;
    return [...this.subscriptions].every(([typeUrl, subscription]) =>
      subscription.isSettled(view.get(typeUrl)),
    );
  }

  /** True when the client asked for this type and has accepted all that it wants of the newest state. */
  holds(typeUrl: string): boolean {
    return this.subscriptions.get(typeUrl)?.isSettled(this.#view?.get(typeUrl)) === true;
  }

  #identify(node: NodeIdentity | undefined): void {
    if (this.node === undefined) {
      if (node === undefined || node.id === '') throw invalid('a first request without node.id');
      this.#take(this.#options.open(node));
      this.node = node;
    } else if (node !== undefined && node.id !== '' && node.id !== this.node.id) {
      throw invalid(`node.id ${JSON.stringify(node.id)} on the stream of ${JSON.stringify(this.node.id)}`);
    }
  }

  #take(numbered: NumberedView | undefined): void {
    if (numbered === undefined) return;
    this.#view = numbered.view;
    this.#publication = numbered.number;
    this.#sent = 0;
  }

  #subscription(typeUrl: string): Subscription {
    let subscription = this.subscriptions.get(typeUrl);
    if (subscription === undefined) {
      subscription = new Subscription(this.#options.protocol, isFullState(typeUrl), isKept(typeUrl));
      this.subscriptions.set(typeUrl, subscription);
    }
    return subscription;
  }

  #judge(subscription: Subscription, { typeUrl, responseNonce, error }: CommonRequest): void {
    const now = this.#options.now();
    if (error === undefined) {
      if (subscription.accept(responseNonce, now)) this.#options.onAccept();
      return;
    }
    const rejection = subscription.reject(responseNonce, error, now);
    if (rejection !== undefined) this.#options.onReject(typeUrl, rejection);
  }

  #pump(): void {
    const view = this.#view;
    if (view === undefined) return;
    let isWaiting = false;
    this.#isHoldingBack = false;
    for (const typeUrl of this.#typesInOrder()) {
      const subscription = this.subscriptions.get(typeUrl);
      if (subscription === undefined) continue;
      const holdRemovals = (removalWaitsFor.get(typeUrl) ?? []).some(
        (referrer) => this.subscriptions.get(referrer)?.isSettled(view.get(referrer)) === false,
      );
      const heldBack = subscription.heldBack(view.get(typeUrl), this.#options.isReady, this.#options.now());
      const answer = subscription.take(view.get(typeUrl), { onlyDue: isWaiting, holdRemovals, heldBack });
      if (answer !== undefined) this.#send(typeUrl, subscription, answer);
      this.#isHoldingBack ||= heldBack.size > 0;
      isWaiting ||= subscription.isInFlight || heldBack.size > 0;
    }
  }

  #typesInOrder(): string[] {
    const others = [...this.subscriptions.keys()].filter((typeUrl) => !sendOrder.includes(typeUrl));
    return [...sendOrder, ...others];
  }

  #send(typeUrl: string, subscription: Subscription, answer: Answer): void {
    // A client that takes a new or changed cluster warms it until its endpoints come, changed or not.
    const referenced = this.subscriptions.get(referencedType.get(typeUrl) ?? '');
    for (const resource of subscription.changedIn(answer)) {
      for (const name of resource.references) referenced?.markDue(name);
    }
    // Unique on this stream, and the same on all streams that are sent the same of a publication: their responses are
    // equal byte for byte, so that they are encoded and held in memory once.
    const nonce = `${this.#publication}-${++this.#sent}`;
    subscription.markSent(answer, nonce, this.#options.now());
    this.#options.send({ ...answer, typeUrl, nonce });
  }
}

function invalid(what: string): WardropError {
  return new WardropError('WARDROP_XDS_REQUEST_INVALID', `the xDS client sent ${what}`);
}
