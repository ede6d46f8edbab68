/** So often a filter is given a snapshot before it is clear that it does not take it: an answer may get lost. */
const ENOUGH = 3;
/** It is given another one after this time all the same. */
const PAUSE_MS = 10_000;
const FORGOTTEN_MS = 30_000;
const MOST_NODES = 10_000;

interface Offer {
  times: number;
  offeredMs: number;
  askedMs: number;
}

/**
 * Filters that ask for a snapshot again and again and hold on to the one before, as those do that read another format. They
 * would ask ten times a second, and after an upgrade of the control server old filters do in every Envoy whose listener drains.
 */
export class VainOffers {
  /** By node, then by the version that is held: two filters of a node hold different ones. */
  readonly #nodes = new Map<string, Map<number, Offer>>();

  /** Notes that the filter, which holds `heldVersion`, is given another. */
  note(nodeId: string, heldVersion: number, nowMs: number): void {
    const offers = this.#nodes.get(nodeId) ?? this.#newNode(nodeId);
    for (const [version, { askedMs }] of offers) {
      if (nowMs - askedMs > FORGOTTEN_MS) offers.delete(version);
    }
    const times = (offers.get(heldVersion)?.times ?? 0) + 1;
    offers.set(heldVersion, { times, offeredMs: nowMs, askedMs: nowMs });
  }

  /** What an offer to the filter is: `new`, in `vain` by all that is known, or one to `retry` in spite of that. */
  worth(nodeId: string, heldVersion: number, nowMs: number): 'new' | 'vain' | 'retry' {
    const offer = this.#nodes.get(nodeId)?.get(heldVersion);
    if (offer === undefined || nowMs - offer.askedMs > FORGOTTEN_MS) return 'new';
    offer.askedMs = nowMs;
    if (offer.times < ENOUGH) return 'new';
    return nowMs - offer.offeredMs >= PAUSE_MS ? 'retry' : 'vain';
  }

  #newNode(nodeId: string): Map<number, Offer> {
    if (this.#nodes.size >= MOST_NODES) this.#nodes.clear();
    const offers = new Map<number, Offer>();
    this.#nodes.set(nodeId, offers);
    return offers;
  }
}
