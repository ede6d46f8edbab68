/** What a control server says of its part in a fleet. */
export interface Claim {
  /** Names the process; another one after every start. */
  readonly instance: string;
  /** Grows with every take-over. */
  readonly term: number;
  /** Whether its plans are the fleet's. */
  readonly leads: boolean;
  /** Since when they are, by its clock in milliseconds since the epoch; 0 while they are not. */
  readonly sinceMs: number;
}

/** A server that has not answered for this long is taken for gone. */
export const SILENT_MS = 3_000;

interface HeardClaim extends Claim {
  readonly heardMs: number;
}

/**
 * Which of several control servers makes the plans: every server decides for itself from what the others say. One follows
 * whoever leads, takes over when nobody is heard to lead for `SILENT_MS`, and gives way to a leader with a higher term, in the
 * same term to one that has led for longer. Servers that cannot hear each other both lead, and once they can, the one that took
 * over last; of those that never heard each other, the older one, which Envoys know.
 */
export class Leadership {
  readonly #instance: string;
  /** By peer, as it is addressed. */
  readonly #heard = new Map<string, HeardClaim>();
  #term = 0;
  /** 0 while it does not lead. */
  #sinceMs = 0;
  /** Peer that is followed. */
  #leader: string | undefined;
  /** Since when nobody else is heard to lead. */
  #vacantSinceMs: number;

  /** `hasCompany`: another server runs, so that there is no hurry to lead. */
  constructor(instance: string, hasCompany: boolean, nowMs: number) {
    this.#instance = instance;
    this.#vacantSinceMs = hasCompany ? nowMs : Number.NEGATIVE_INFINITY;
  }

  get claim(): Claim {
    return { instance: this.#instance, term: this.#term, leads: this.#sinceMs > 0, sinceMs: this.#sinceMs };
  }

  /** The peer whose plans count; undefined when they are our own, and while nobody leads. */
  get leader(): string | undefined {
    return this.#leader;
  }

  hear(peer: string, claim: Claim, nowMs: number): void {
    this.#heard.set(peer, { ...claim, heardMs: nowMs });
    if (claim.leads) this.#vacantSinceMs = nowMs;
  }

  /** Leads no more, as this server ends; it may be asked for some time yet. */
  resign(): void {
    this.#sinceMs = 0;
  }

  /** Decides anew; true when this server leads. */
  decide(nowMs: number): boolean {
    const best = this.#bestRival(nowMs);
    const { claim } = this;
    if (best !== undefined && !(claim.leads && outranks(claim, best[1]))) {
      this.#sinceMs = 0;
      this.#leader = best[0];
    } else if (!claim.leads) {
      this.#leader = undefined;
      if (nowMs - this.#vacantSinceMs >= SILENT_MS) {
        this.#sinceMs = nowMs;
        this.#term = 1 + Math.max(this.#term, ...[...this.#heard.values()].map(({ term }) => term));
      }
    }
    return this.#sinceMs > 0;
  }

  /** The peer with the best claim of those that are heard to lead. */
  #bestRival(nowMs: number): readonly [string, Claim] | undefined {
    let best: readonly [string, HeardClaim] | undefined;
    for (const entry of this.#heard) {
      const [, claim] = entry;
      if (!claim.leads || nowMs - claim.heardMs >= SILENT_MS) continue;
      if (best === undefined || outranks(claim, best[1])) best = entry;
    }
    return best;
  }
}

function outranks(a: Claim, b: Claim): boolean {
  if (a.term !== b.term) return a.term > b.term;
  return a.sinceMs === b.sinceMs ? a.instance < b.instance : a.sinceMs < b.sinceMs;
}
