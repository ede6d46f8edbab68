import type { EngineUsage } from '../../../wire/usage-report.js';
import { lowerMedian } from '../../collections.js';
import type { Address, Engine } from '../../fleet/fleet.js';
import { refill } from '../saved.js';

/** A replica with fewer requests may have none but long ones. */
const LEAST_IN_FLIGHT = 8;
/** So many requests of an engine end for each of its replicas while none does of one of these. */
const ENDED_EACH = 20;
/** And it has them for so long: by then every Envoy that counts has reported what ended. */
const LEAST_MS = 3_000;
/** Once it has few requests left, a stuck replica is tried again after this long, twice as long each time in a row. */
const FIRST_OUT_MS = 10_000;
/** And after this long in any case. */
const LONGEST_OUT_MS = 300_000;
/** After this long in service it starts over. */
const FORGIVEN_MS = 60_000;

/** A replica that is left out. */
export interface Stuck {
  readonly sinceMs: number;
  /** What it had under way, none of which ended while so many of others of its engine did. */
  readonly inFlight: number;
  readonly endedElsewhere: number;
}

/** Requests of an engine that ended, and those of them that may have ended unanswered, some of them counted twice. */
interface Ended {
  all: number;
  unanswered: number;
}

/** What a replica with many requests under way has ended since then, and what its engine had before. */
interface Watched {
  readonly sinceMs: number;
  readonly before: Readonly<Ended>;
  ended: number;
}

/** How often a replica was stuck in a row, and when it last was. */
interface Past {
  readonly times: number;
  readonly lastMs: number;
}

/**
 * Finds replicas that take requests and end none of them: a process that hangs accepts connections, and its health page may be
 * well. No request fails before a limit ends it, so that filters have nothing to hold against it, and its engine as a whole is
 * merely slow. Told by counts, not by times: that all of its requests are longer than scores of others' is no chance.
 */
export class StuckReplicas {
  readonly #ended = new Map<string, Ended>();
  readonly #watched = new Map<Address, Watched>();
  readonly #stuck = new Map<Address, Stuck>();
  readonly #past = new Map<Address, Past>();

  /** Forgets all others. */
  keep(engineIds: ReadonlySet<string>, addresses: ReadonlySet<Address>): void {
    for (const id of this.#ended.keys()) if (!engineIds.has(id)) this.#ended.delete(id);
    for (const known of [this.#watched, this.#stuck, this.#past]) {
      for (const address of known.keys()) if (!addresses.has(address)) known.delete(address);
    }
  }

  addEngine(engineId: string, usage: Pick<EngineUsage, 'ended' | 'failures' | 'noResponse'>): void {
    const ended = this.#ended.get(engineId) ?? { all: 0, unanswered: 0 };
    this.#ended.set(engineId, ended);
    ended.all += usage.ended;
    ended.unanswered += usage.failures + usage.noResponse;
  }

  /** Takes requests of a replica that ended, however they did. */
  addReplica(address: Address, ended: number): void {
    const watched = this.#watched.get(address);
    if (watched !== undefined) watched.ended += ended;
  }

  /** Who is left out now, of those that may serve otherwise. `inFlight`: requests under way; undefined while nobody knows. */
  evaluate(
    engines: readonly Engine[],
    mayServe: (address: Address) => boolean,
    inFlight: ReadonlyMap<Address, number> | undefined,
    nowMs: number,
  ): ReadonlyMap<Address, Stuck> {
    for (const { id, endpoints } of engines) {
      const ended = this.#ended.get(id);
      if (endpoints.length < 2 || ended === undefined) continue;
      const counts = endpoints.map((address) => inFlight?.get(address) ?? 0);
      for (const [at, address] of endpoints.entries()) {
        if (!mayServe(address)) this.#forget(address);
        else if (inFlight === undefined) continue;
        else if (this.#stuck.has(address)) this.#mayReturn(address, counts[at]!, ended, nowMs);
        else this.#watch(address, counts[at]!, counts, ended, nowMs);
      }
    }
    return this.#stuck;
  }

  /** Of a process that ends, or begins anew, nothing is known, and one that is drained may be left with its longest requests. */
  #forget(address: Address): void {
    for (const known of [this.#watched, this.#stuck, this.#past]) known.delete(address);
  }

  #watch(address: Address, count: number, counts: readonly number[], ended: Ended, nowMs: number): void {
    if (count < LEAST_IN_FLIGHT || count < lowerMedian(counts)) {
      this.#watched.delete(address);
      return;
    }
    const watched = this.#watched.get(address);
    if (watched === undefined || watched.ended > 0) {
      this.#watched.set(address, { sinceMs: nowMs, before: { ...ended }, ended: 0 });
      return;
    }
    const endedElsewhere = ended.all - watched.before.all;
    if (nowMs - watched.sinceMs < LEAST_MS || endedElsewhere < ENDED_EACH * counts.length) return;
    const past = this.#past.get(address);
    const times = past === undefined || nowMs - past.lastMs > FORGIVEN_MS ? 0 : past.times;
    this.#past.set(address, { times: times + 1, lastMs: nowMs });
    this.#stuck.set(address, { sinceMs: nowMs, inFlight: count, endedElsewhere });
    this.#watched.set(address, { sinceMs: nowMs, before: { ...ended }, ended: 0 });
  }

  /**
   * Lets it serve again once it surely answers: more of its requests have ended than clients or limits can have ended. While it is
   * left with those that it is stuck with, they tell enough; without them it has to be tried.
   */
  #mayReturn(address: Address, count: number, ended: Ended, nowMs: number): void {
    const watched = this.#watched.get(address)!;
    const past = this.#past.get(address)!;
    const answers = watched.ended > ended.unanswered - watched.before.unanswered;
    const outMs = count < LEAST_IN_FLIGHT ? FIRST_OUT_MS * 2 ** (past.times - 1) : LONGEST_OUT_MS;
    if (!answers && nowMs - this.#stuck.get(address)!.sinceMs < Math.min(outMs, LONGEST_OUT_MS)) return;
    this.#stuck.delete(address);
    this.#watched.delete(address);
    this.#past.set(address, { ...past, lastMs: nowMs });
  }

  save() {
    return {
      ended: [...this.#ended].map(([id, ended]) => [id, { ...ended }] as const),
      watched: [...this.#watched].map(([address, watched]) => [address, { ...watched }] as const),
      stuck: [...this.#stuck],
      past: [...this.#past],
    };
  }

  restore(saved: SavedStuckReplicas): void {
    refill(this.#ended, saved.ended);
    refill(this.#watched, saved.watched);
    refill(this.#stuck, saved.stuck);
    refill(this.#past, saved.past);
  }
}

export type SavedStuckReplicas = ReturnType<StuckReplicas['save']>;
