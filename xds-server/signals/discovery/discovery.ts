import type { DiscoverySource } from '../../config/config.js';
import type { Address } from '../../fleet/fleet.js';
import { now } from '../../steady-clock.js';
import type { Lookup } from './lookup.js';

export interface DiscoveryOptions {
  readonly lookup: Lookup;
  /** Called after addresses have changed. */
  readonly onChange: () => void;
}

/** What is known from one source. */
export interface Discovered {
  /** Sorted; undefined before the first good answer. */
  readonly addresses: readonly Address[] | undefined;
  /** Of the last good answer; undefined before the first. */
  readonly answeredMs?: number | undefined;
  /** Why the last look failed; null after a good one. */
  readonly problem: string | null;
}

interface Watched {
  readonly source: DiscoverySource;
  addresses: readonly Address[] | undefined;
  answeredMs: number | undefined;
  problem: string | null;
  /** Addresses that the last answer lacked: one answer without an address does not remove it. */
  doubted: ReadonlySet<Address>;
  timer: NodeJS.Timeout | undefined;
  readonly first: Promise<void>;
}

/** After a failed look, and after one that lacked an address. */
const RETRY_SECONDS = 2;

/**
 * Looks for replicas again and again: in DNS as often as records live, in files every second. A source that fails or
 * answers with nothing changes nothing; an address goes when two answers in a row lack it.
 */
export class Discovery {
  readonly #options: DiscoveryOptions;
  readonly #watched = new Map<string, Watched>();
  #isStopped = false;

  constructor(options: DiscoveryOptions) {
    this.#options = options;
  }

  /** By engine id. */
  get discovered(): ReadonlyMap<string, Discovered> {
    return this.#watched;
  }

  /**
   * Watches these sources, by engine id, and no others. `known` are addresses that other sources told, for engines that
   * are new here. Resolves when every new source was looked at once, well or not.
   */
  async watch(
    sources: ReadonlyMap<string, DiscoverySource>,
    known: ReadonlyMap<string, readonly Address[]> = new Map(),
  ): Promise<void> {
    const before = new Map(known);
    for (const [id, watched] of this.#watched) {
      if (JSON.stringify(sources.get(id)) === JSON.stringify(watched.source)) continue;
      clearTimeout(watched.timer);
      this.#watched.delete(id);
      // Until the new source has answered, its replicas are the best guess.
      if (watched.addresses !== undefined) before.set(id, watched.addresses);
    }
    for (const [id, source] of sources) {
      if (this.#watched.has(id)) continue;
      let done = () => {};
      const first = new Promise<void>((resolve) => {
        done = resolve;
      });
      const watched: Watched = {
        source,
        addresses: before.get(id),
        answeredMs: undefined,
        problem: null,
        doubted: new Set(),
        timer: undefined,
        first,
      };
      this.#watched.set(id, watched);
      void this.#look(id, watched).then(done);
    }
    await Promise.all([...this.#watched.values()].map(({ first }) => first));
  }

  /** Looks no more; what is known stays. */
  stop(): void {
    this.#isStopped = true;
    for (const { timer } of this.#watched.values()) clearTimeout(timer);
  }

  async #look(id: string, watched: Watched): Promise<void> {
    let seconds = RETRY_SECONDS;
    let hasChanged = false;
    try {
      const answer = await this.#options.lookup(watched.source);
      if (answer.addresses.length === 0) throw new Error('the answer is empty');
      watched.answeredMs = now();
      watched.problem = null;
      hasChanged = accept(watched, [...new Set(answer.addresses)].sort());
      if (watched.doubted.size === 0) seconds = answer.secondsToLive;
    } catch (error) {
      watched.problem = (error as Error).message;
    }
    // The source may be gone meanwhile.
    if (this.#isStopped || this.#watched.get(id) !== watched) return;
    watched.timer = setTimeout(() => void this.#look(id, watched), seconds * 1_000);
    if (hasChanged) this.#options.onChange();
  }
}

/** Takes an answer; true when it changes the addresses. */
function accept(watched: Watched, answer: readonly Address[]): boolean {
  const before = watched.addresses ?? [];
  const missing = before.filter((address) => !answer.includes(address));
  const kept = missing.filter((address) => !watched.doubted.has(address));
  const after = [...answer, ...kept].sort();
  watched.doubted = new Set(kept);
  watched.addresses = after;
  return after.join() !== before.join();
}
