import type { SnapshotView } from '../../wire/snapshot-view.js';
import { encodeSnapshot } from '../../wire/snapshot-writer.js';

/** What a snapshot says, apart from when and under which version it was issued. */
export type SnapshotContent = Omit<SnapshotView, 'version' | 'issuedAtMs'>;

export interface Snapshot {
  readonly version: number;
  readonly bytes: Uint8Array;
}

/** An Envoy and the snapshot that it said it holds. */
export interface Holder {
  readonly frontendId: string;
  readonly nodeId: string;
  readonly version: number;
  readonly atMs: number;
}

/** Every filter calls within this time. */
const CALLING_MS = 2_000;
/** Envoys that have not called for this long are not waited for, and are forgotten after the longer time. */
const GONE_AFTER_MS = 5_000;
const FORGOTTEN_AFTER_MS = 3_600_000;
/** Greater versions are no server's, whatever its clock says; above it is room for as many snapshots as will ever be. */
const MOST_BELIEVED = 2 ** 52;

const holderKey = (frontendId: string, nodeId: string) => `${frontendId} ${nodeId}`;

interface Entry {
  readonly content: SnapshotContent;
  /** As text, to tell quickly whether it changed. */
  readonly text: string;
  readonly snapshot: Snapshot;
}

/**
 * The newest snapshot of each frontend, and those who wait for it. Versions only grow, also over restarts: they are
 * taken from the clock, but always exceed every version that was issued, restored or reported before.
 */
export class SnapshotBoard {
  readonly #now: () => number;
  readonly #entries = new Map<string, Entry>();
  readonly #waiters = new Set<() => void>();
  readonly #holders = new Map<string, Holder>();
  #lastVersion: number;

  /** `now` in milliseconds since the epoch; `lastVersion` from before a restart. */
  constructor(now: () => number, lastVersion = 0) {
    this.#now = now;
    this.#lastVersion = lastVersion;
  }

  get lastVersion(): number {
    return this.#lastVersion;
  }

  /** Issues a snapshot unless the frontend has the same already; true when it did. */
  publish(content: SnapshotContent): boolean {
    const text = JSON.stringify(content);
    if (this.#entries.get(content.frontendId)?.text === text) return false;
    this.#issue(content, text);
    return true;
  }

  /** Forgets frontends that are not listed. */
  retain(frontendIds: ReadonlySet<string>): void {
    for (const id of this.#entries.keys()) if (!frontendIds.has(id)) this.#entries.delete(id);
  }

  /** Whether there is a snapshot of any frontend. */
  get hasAny(): boolean {
    return this.#entries.size > 0;
  }

  current(frontendId: string): Snapshot | undefined {
    return this.#entries.get(frontendId)?.snapshot;
  }

  /** Pools that the present snapshot names. */
  poolIds(frontendId: string): readonly string[] {
    return this.#entries.get(frontendId)?.content.pools.map(({ id }) => id) ?? [];
  }

  /** Notes which version an Envoy says it holds; the newest, while a filter of a former listener calls, too. */
  noteHolder(frontendId: string, nodeId: string, version: number): void {
    const atMs = this.#now();
    const key = holderKey(frontendId, nodeId);
    if (!this.#holders.has(key)) {
      for (const [other, holder] of this.#holders) {
        if (holder.atMs < atMs - FORGOTTEN_AFTER_MS) this.#holders.delete(other);
      }
    }
    const holder = this.#holders.get(key);
    if (holder !== undefined && holder.version > version && holder.atMs > atMs - CALLING_MS) return;
    this.#holders.set(key, { frontendId, nodeId, version, atMs });
  }

  /** Envoys that have called within the last hour. */
  holders(): readonly Holder[] {
    return [...this.#holders.values()];
  }

  /** Whether this Envoy calls and holds the present snapshot. */
  isHolder(frontendId: string, nodeId: string): boolean {
    const holder = this.#holders.get(holderKey(frontendId, nodeId));
    if (holder === undefined || holder.atMs < this.#now() - CALLING_MS) return false;
    return holder.version === this.current(frontendId)?.version;
  }

  /** How many Envoys have called since then, by the id of their frontend. */
  envoysSince(atMs: number): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const holder of this.#holders.values()) {
      if (holder.atMs > atMs) counts.set(holder.frontendId, (counts.get(holder.frontendId) ?? 0) + 1);
    }
    return counts;
  }

  /** Whether all Envoys of the frontend that call at all hold its present snapshot. */
  isTaken(frontendId: string): boolean {
    const snapshot = this.current(frontendId);
    const since = this.#now() - GONE_AFTER_MS;
    return this.holders().every(
      (holder) =>
        holder.frontendId !== frontendId || holder.atMs < since || holder.version === snapshot?.version,
    );
  }

  /**
   * The frontend's snapshot as soon as it is not the one that is held; undefined when that does not happen before
   * `timeoutMs` or the abort. A caller that holds a newer version than was ever issued gets the present content anew, under
   * one that is newer still if it can be true. One for which `mayTake` says no is not given; that is asked again with the next
   * snapshot, and at the end.
   */
  async newerThan(
    frontendId: string,
    heldVersion: number,
    timeoutMs: number,
    signal: AbortSignal,
    mayTake: () => boolean = () => true,
  ): Promise<Snapshot | undefined> {
    const entry = this.#entries.get(frontendId);
    if (entry !== undefined && heldVersion > entry.snapshot.version && heldVersion <= MOST_BELIEVED) {
      this.#lastVersion = Math.max(this.#lastVersion, heldVersion);
      this.#issue(entry.content, entry.text);
    }
    const find = () => {
      const snapshot = this.current(frontendId);
      return snapshot?.version === heldVersion || !mayTake() ? undefined : snapshot;
    };
    const found = find();
    if (found !== undefined || signal.aborted) return found;
    return new Promise((resolve) => {
      const finish = (snapshot: Snapshot | undefined) => {
        clearTimeout(timer);
        signal.removeEventListener('abort', abort);
        this.#waiters.delete(look);
        resolve(snapshot);
      };
      const look = () => {
        const snapshot = find();
        if (snapshot !== undefined) finish(snapshot);
      };
      const abort = () => finish(undefined);
      const timer = setTimeout(() => finish(find()), timeoutMs);
      signal.addEventListener('abort', abort);
      this.#waiters.add(look);
    });
  }

  #issue(content: SnapshotContent, text: string): void {
    const issuedAtMs = this.#now();
    const version = Math.max(this.#lastVersion + 1, issuedAtMs);
    this.#lastVersion = version;
    const bytes = encodeSnapshot({ ...content, version, issuedAtMs });
    this.#entries.set(content.frontendId, { content, text, snapshot: { version, bytes } });
    for (const look of [...this.#waiters]) look();
  }
}
