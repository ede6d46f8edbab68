import type { EngineUsage } from '../../../wire/usage-report.js';
import { lowerMedian } from '../../collections.js';
import type { Address, Engine } from '../../fleet/fleet.js';
import { refill } from '../saved.js';

/** A replica with fewer requests may have none but long ones. */
const LEAST_IN_FLIGHT = 8;
/** So many requests of an engine are answered for each of its replicas while none does of one of these. */
const ENDED_EACH = 20;
/** And it has them for so long: by then every Envoy that counts has reported what ended. */
const LEAST_MS = 3_000;
/** By its own usual pace, so many of its requests would have ended meanwhile: others may be longer than those of the engine. */
const MISSED_ENDS = 20;
/** And it has got so many more: what it usually ends may go elsewhere now, and leave it with the longest. */
const MORE_IN_FLIGHT = 20;
/** And that takes so many times as long as any pause that it made before: its requests may come, and end, many at a time. */
const TIMES_PAUSE = 3;
/** What is usual is a mean over about this time. */
const USUAL_MS = 60_000;
/** A pause counts for less with every such time. */
const PAUSES_MS = 600_000;
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

/**
 * Requests of an engine that ended; those of them that may have ended unanswered, some of them counted twice; and those that surely
 * came to a good end, which is not known of all that did.
 */
interface Ended {
  all: number;
  unanswered: number;
  well: number;
}

/** What a replica with many requests under way has ended since then, and what its engine had before. */
interface Watched {
  readonly sinceMs: number;
  readonly before: Readonly<Ended>;
  readonly inFlight: number;
  /** How many it ended in a millisecond before. */
  readonly usualPerMs: number;
  ended: number;
}

/** Requests that a replica ended, the time in which it did, and how long it ended none at most; what is long ago counts less. */
interface Pace {
  readonly ended: number;
  readonly withinMs: number;
  readonly pauseMs: number;
  readonly atMs: number;
}

/** How often a replica was stuck in a row, and when it last was. */
interface Past {
  readonly times: number;
  readonly lastMs: number;
}

/**
 * Finds replicas that take requests and end none of them: a process that hangs accepts connections, and its health page may be
 * well. No request fails before a limit ends it, so that filters have nothing to hold against it, and its engine as a whole is
 * merely slow. Told by what its engine and itself usually end, and by what it gets all the same: neither many short requests of
 * others nor long ones of its own make a replica stuck.
 */
export class StuckReplicas {
  readonly #ended = new Map<string, Ended>();
  readonly #watched = new Map<Address, Watched>();
  readonly #stuck = new Map<Address, Stuck>();
  readonly #past = new Map<Address, Past>();
  readonly #paces = new Map<Address, Pace>();

  /** Forgets all others. `addresses`: those that stay with their engine; another's counts say nothing of them. */
  keep(engineIds: ReadonlySet<string>, addresses: ReadonlySet<Address>): void {
    for (const id of this.#ended.keys()) if (!engineIds.has(id)) this.#ended.delete(id);
    for (const known of [this.#watched, this.#stuck, this.#past, this.#paces]) {
      for (const address of known.keys()) if (!addresses.has(address)) known.delete(address);
    }
  }

  addEngine(
    engineId: string,
    usage: Pick<EngineUsage, 'ended' | 'failures' | 'noResponse' | 'wholeCount'>,
  ): void {
    const ended = this.#endedOf(engineId);
    ended.all += usage.ended;
    ended.unanswered += usage.failures + usage.noResponse;
    ended.well += usage.wholeCount;
  }

  /** Takes streamed answers of an engine that came to their end. */
  addStreams(engineId: string, completed: number): void {
    this.#endedOf(engineId).well += completed;
  }

  #endedOf(engineId: string): Ended {
    const ended = this.#ended.get(engineId) ?? { all: 0, unanswered: 0, well: 0 };
    this.#ended.set(engineId, ended);
    return ended;
  }

  /** Takes requests of a replica that ended since `fromMs`, however they did. */
  addReplica(address: Address, ended: number, fromMs: number, nowMs: number): void {
    const pace = this.#paceAt(address, nowMs);
    const watched = this.#watched.get(address);
    const endsPause = watched?.ended === 0 && ended > 0 && !this.#stuck.has(address);
    const pauseMs = endsPause ? Math.max(pace.pauseMs, fromMs - watched.sinceMs) : pace.pauseMs;
    this.#paces.set(address, { ...pace, ended: pace.ended + ended, pauseMs });
    if (watched !== undefined) watched.ended += ended;
  }

  #paceAt(address: Address, nowMs: number): Pace {
    const known = this.#paces.get(address);
    if (known === undefined) return { ended: 0, withinMs: 0, pauseMs: 0, atMs: nowMs };
    const sinceMs = nowMs - known.atMs;
    const left = Math.exp(-sinceMs / USUAL_MS);
    return {
      ended: known.ended * left,
      withinMs: known.withinMs * left + USUAL_MS * (1 - left),
      pauseMs: known.pauseMs * Math.exp(-sinceMs / PAUSES_MS),
      atMs: nowMs,
    };
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
      if (endpoints.length < 2) {
        for (const address of endpoints) this.#forget(address);
        continue;
      }
      if (ended === undefined) continue;
      const counts = endpoints.map((address) => inFlight?.get(address) ?? 0);
      for (const [at, address] of endpoints.entries()) {
        const count = inFlight === undefined ? undefined : counts[at]!;
        if (!mayServe(address)) this.#forget(address);
        else if (this.#stuck.has(address)) this.#mayReturn(address, count, ended, nowMs);
        else if (count !== undefined) this.#watch(address, count, counts, ended, nowMs);
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
    const pace = this.#paceAt(address, nowMs);
    if (watched === undefined || watched.ended > 0) {
      const usualPerMs = pace.ended / Math.max(pace.withinMs, LEAST_MS);
      const before = { ...ended };
      this.#watched.set(address, { sinceMs: nowMs, before, inFlight: count, usualPerMs, ended: 0 });
      return;
    }
    const forMs = nowMs - watched.sinceMs;
    const { before, usualPerMs } = watched;
    // Those that fail are quick, and say nothing of the others.
    const endedElsewhere = ended.all - before.all - (ended.unanswered - before.unanswered);
    if (forMs < LEAST_MS || forMs < TIMES_PAUSE * pace.pauseMs) return;
    if (forMs * usualPerMs < MISSED_ENDS || count < watched.inFlight + MORE_IN_FLIGHT) return;
    if (endedElsewhere < ENDED_EACH * counts.length) return;
    const past = this.#past.get(address);
    const times = past === undefined || nowMs - past.lastMs > FORGIVEN_MS ? 0 : past.times;
    this.#past.set(address, { times: times + 1, lastMs: nowMs });
    this.#stuck.set(address, { sinceMs: nowMs, inFlight: count, endedElsewhere });
    this.#watched.set(address, { ...watched, sinceMs: nowMs, before: { ...ended } });
  }

  /**
   * Lets it serve again once it surely answers: more of its requests have ended than clients or limits can have ended, also of
   * streams that had begun, as a server may begin all at once in front of an engine that hangs. While it is left with those that it
   * is stuck with, they tell enough; without them it has to be tried.
   */
  #mayReturn(address: Address, count: number | undefined, ended: Ended, nowMs: number): void {
    const watched = this.#watched.get(address)!;
    const past = this.#past.get(address)!;
    const { all, well } = watched.before;
    const answers = watched.ended > ended.all - all - (ended.well - well);
    const hasFew = count !== undefined && count < LEAST_IN_FLIGHT;
    const outMs = hasFew ? FIRST_OUT_MS * 2 ** (past.times - 1) : LONGEST_OUT_MS;
    if (!answers && nowMs - this.#stuck.get(address)!.sinceMs < Math.min(outMs, LONGEST_OUT_MS)) return;
    this.#stuck.delete(address);
    this.#watched.delete(address);
    this.#past.set(address, { ...past, lastMs: nowMs });
    // What it ended before is as usual as it was: it could end nothing since.
    const pace = this.#paces.get(address);
    if (pace !== undefined) this.#paces.set(address, { ...pace, atMs: nowMs });
  }

  save() {
    return {
      ended: [...this.#ended].map(([id, ended]) => [id, { ...ended }] as const),
      watched: [...this.#watched].map(([address, watched]) => [address, { ...watched }] as const),
      stuck: [...this.#stuck],
      past: [...this.#past],
      paces: [...this.#paces],
    };
  }

  restore(saved: SavedStuckReplicas): void {
    refill(this.#ended, saved.ended);
    refill(this.#watched, saved.watched);
    refill(this.#stuck, saved.stuck);
    refill(this.#past, saved.past);
    refill(this.#paces, saved.paces);
  }
}

export type SavedStuckReplicas = ReturnType<StuckReplicas['save']>;
