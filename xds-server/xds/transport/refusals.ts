/** Somebody who was refused. */
export interface Refusal {
  /** Address without the port, which is another one each time. */
  readonly host: string;
  readonly reason: string;
}

/** Who is refused comes again within seconds: after so long without that it is over. */
const QUIET_MS = 60_000;
const MOST = 1_000;

/** Who was refused of late, and why. */
export class Refusals {
  readonly #last = new Map<string, Refusal & { readonly atMs: number }>();

  /** Notes one, and tells whether it is news. */
  note(peer: string, reason: string, nowMs: number): boolean {
    const host = peer.replace(/:\d+$/, '');
    const key = `${host} ${reason}`;
    const lastMs = this.#last.get(key)?.atMs ?? Number.NEGATIVE_INFINITY;
    if (this.#last.size >= MOST) this.#last.clear();
    this.#last.set(key, { host, reason, atMs: nowMs });
    return nowMs - lastMs > QUIET_MS;
  }

  list(nowMs: number): readonly Refusal[] {
    return [...this.#last.values()].filter(({ atMs }) => nowMs - atMs <= QUIET_MS);
  }
}
