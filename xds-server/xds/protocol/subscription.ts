import { byName } from '../../collections.js';
import { type Collection, type Resource, versionOf } from './resource.js';

export type Protocol = 'sotw' | 'delta';

/** The content of one response, before it has a nonce. */
export interface Answer {
  readonly version: string;
  readonly resources: readonly Resource[];
  /** Names that are gone or never were; only the delta protocol can say so. */
  readonly removed: readonly string[];
}

/** A response that was sent, or the client's verdict on it. */
export interface Mark {
  readonly version: string;
  readonly atMs: number;
}

export interface Rejection extends Mark {
  readonly reason: string;
}

/** One resource, as the client is known to have it. */
export interface ResourceStatus {
  readonly name: string;
  /** Of the newest state; null when there is none of this name. */
  readonly version: string | null;
  /** `stale`: an answer or the next push is outstanding. `missing`: asked for, and there is none. */
  readonly status: 'synced' | 'stale' | 'rejected' | 'missing';
}

/** Longest that a client is not given what follows something else. */
const MOST_HELD_BACK_MS = 10_000;

export interface TakeOptions {
  /** Only what the client asked for itself; changes wait for an earlier type. */
  readonly onlyDue: boolean;
  /** Keep what is gone, because something else may still refer to it. */
  readonly holdRemovals: boolean;
  /** Names that must wait; see `heldBack`. */
  readonly heldBack: ReadonlySet<string>;
}

interface InFlight extends Answer {
  readonly nonce: string;
}

/** What the client is known to have, as far as it was told: a delta client that reconnects names only versions. */
type Held = Pick<Resource, 'version'> & Partial<Resource>;

/**
 * One client's interest in one type: what it asked for, what it was sent, and what it said about that. At most one
 * response is unanswered at a time; what changes meanwhile is read from the newest collection when the answer comes,
 * so that a slow client skips states and costs no memory.
 */
export class Subscription {
  wildcard = false;
  readonly names = new Set<string>();
  sent: Mark | undefined;
  acknowledged: Mark | undefined;
  /** The last rejection, kept after later acceptances. */
  rejection: Rejection | undefined;
  rejections = 0;

  /** An empty first request means everything; once names were given, empty means nothing. */
  #wildcardByDefault: boolean;
  readonly #known = new Map<string, Held>();
  /** Names of which the client has accepted some version, on this stream or before. */
  readonly #accepted = new Set<string>();
  #heldBackSinceMs: number | undefined;
  /** Names to answer even though nothing changed: just subscribed, or needed again after what refers to them. */
  readonly #due = new Set<string>();
  /** Names in the last rejected response. Unchanged content isn't offered again, except with changed content. */
  readonly #refused = new Set<string>();
  /** The next answer is due even when it is empty. */
  #answerDue = false;
  /** Version that a reconnecting client says it holds. */
  #resumedVersion: string | undefined;
  #inFlight: InFlight | undefined;
  #lastNonce = '';

  constructor(
    readonly protocol: Protocol,
    readonly fullState: boolean,
    /** What the client has and what is gone stays with it. */
    readonly kept: boolean,
  ) {
    this.#wildcardByDefault = fullState;
  }

  /** When the response was sent that the client has not answered yet. */
  get unansweredSinceMs(): number | undefined {
    return this.#inFlight === undefined ? undefined : this.sent?.atMs;
  }

  get isInFlight(): boolean {
    return this.#inFlight !== undefined;
  }

  /** True when the last response of this type was rejected and nothing better was accepted since. */
  get isRefused(): boolean {
    return this.#refused.size > 0;
  }

  /** True while the client is known to hold nothing of this type. */
  get isEmpty(): boolean {
    return this.#known.size === 0;
  }

  /** Nonce of the last response of this type; empty before the first. */
  get lastNonce(): string {
    return this.#lastNonce;
  }

  /** State of the world: the request repeats the whole list of names. */
  setNames(requested: readonly string[], heldVersion: string): void {
    const names = new Set(requested);
    const isResumed = this.#lastNonce === '' && heldVersion !== '';
    if (isResumed && names.size === 0) this.#resumedVersion = heldVersion;
    if (names.size > 0) this.#wildcardByDefault = false;
    const wildcard = names.delete('*') || (names.size === 0 && this.#wildcardByDefault);
    this.#update(wildcard, names);
    // It may have any of them, and does not say which.
    if (isResumed) for (const name of names) this.#accepted.add(name);
  }

  /** Delta: the request tells what to add and what to drop. */
  change(
    subscribe: readonly string[],
    unsubscribe: readonly string[],
    heldVersions: Readonly<Record<string, string>>,
  ): void {
    const names = new Set(this.names);
    const isFirst = this.#lastNonce === '' && names.size === 0 && !this.wildcard;
    let wildcard = this.wildcard || (isFirst && subscribe.length === 0 && this.#wildcardByDefault);
    if (subscribe.length > 0) this.#wildcardByDefault = false;
    for (const name of unsubscribe) {
      if (name === '*') wildcard = false;
      // Still wanted by the wildcard: the client forgot it with this request and must be told what it is now.
      else if (names.delete(name) && wildcard) this.#due.add(name);
    }
    for (const name of subscribe) {
      if (name === '*') wildcard = true;
      else names.add(name);
    }
    const hadWildcard = this.wildcard;
    this.#update(wildcard, names);
    // A client may name what it already has, to be told again.
    for (const name of subscribe) if (name !== '*') this.#due.add(name);
    for (const [name, version] of Object.entries(heldVersions)) {
      if (!this.wants(name)) continue;
      this.#accepted.add(name);
      if (!this.#known.has(name)) this.#known.set(name, { version });
    }
    if (wildcard && !hadWildcard && this.#known.size > 0) this.#answerDue = false;
  }

  #update(wildcard: boolean, names: ReadonlySet<string>): void {
    if (wildcard && !this.wildcard) this.#answerDue = true;
    this.wildcard = wildcard;
    for (const name of names) if (!this.names.has(name)) this.#due.add(name);
    this.names.clear();
    for (const name of names) this.names.add(name);
    // What was unsubscribed is forgotten, so that subscribing to it again is answered.
    for (const set of [this.#known, this.#accepted, this.#due, this.#refused]) {
      for (const name of set.keys()) if (!this.wants(name)) set.delete(name);
    }
  }

  wants(name: string): boolean {
    return this.wildcard || this.names.has(name);
  }

  /** The client needs this again although it has not changed. */
  markDue(name: string): void {
    if (this.wants(name)) this.#due.add(name);
  }

  /** True when the client has accepted all that it wants of this collection. */
  isSettled(collection: Collection | undefined): boolean {
    if (this.#inFlight !== undefined || this.#refused.size > 0) return false;
    if (collection === undefined) return true;
    const canRemove = this.fullState || this.protocol === 'delta';
    if (canRemove && this.#gone(collection).length > 0) return false;
    for (const resource of this.#wanted(collection)) if (this.#differs(resource)) return false;
    return true;
  }

  /** Every resource that the client asked for or holds, with what it made of it; sorted by name. */
  resources(collection: Collection | undefined): ResourceStatus[] {
    const wanted = collection === undefined ? [] : [...this.#wanted(collection)].map(({ name }) => name);
    const names = new Set([...wanted, ...this.names, ...this.#known.keys()]);
    return [...names].sort().map((name) => {
      const version = collection?.resources.get(name)?.version ?? null;
      return { name, version, status: this.#statusOf(name, version) };
    });
  }

  #statusOf(name: string, version: string | null): ResourceStatus['status'] {
    if (this.#refused.has(name)) return 'rejected';
    const known = this.#known.get(name)?.version ?? null;
    if (version === null && (known === null || this.kept)) return 'missing';
    const isUnderWay = this.#inFlight?.resources.some((resource) => resource.name === name) === true;
    return known === version && !isUnderWay ? 'synced' : 'stale';
  }

  /**
   * What the client has in another version, and is not given before it is ready with what that follows: it may go on with the
   * one that it has. Nothing waits for ever.
   */
  heldBack(collection: Collection | undefined, isReady: () => boolean, nowMs: number): ReadonlySet<string> {
    const held = (collection?.followers ?? []).filter((resource) => {
      const first = collection?.resources.get(resource.follows!);
      if (first === undefined || !this.wants(first.name) || !this.#accepted.has(resource.name)) return false;
      const hasFirst = !this.#differs(first) && !this.isInFlight && !this.#refused.has(first.name);
      return this.#differs(resource) && !(hasFirst && isReady());
    });
    if (held.length === 0) this.#heldBackSinceMs = undefined;
    else this.#heldBackSinceMs ??= nowMs;
    const isOver = nowMs - (this.#heldBackSinceMs ?? nowMs) > MOST_HELD_BACK_MS;
    return new Set(isOver ? [] : held.map(({ name }) => name));
  }

  /** What to send now, if anything; the caller sends it and reports with `markSent`. */
  take(collection: Collection | undefined, options: TakeOptions): Answer | undefined {
    if (collection === undefined || this.#inFlight !== undefined) return undefined;
    this.#resume(collection);
    // Everything is due to a client that has just asked for everything.
    const onlyDue = options.onlyDue && !this.#answerDue;
    if (this.protocol === 'delta') return this.#deltaAnswer(collection, { ...options, onlyDue });
    if (this.fullState) return this.#fullAnswer(collection, { ...options, onlyDue });
    return this.#changedAnswer(collection, { ...options, onlyDue });
  }

  /** Resources of an answer that the client doesn't have in this version; ask before `markSent`. */
  changedIn(answer: Answer): Resource[] {
    return answer.resources.filter((resource) => this.#differs(resource));
  }

  markSent(answer: Answer, nonce: string, atMs: number): void {
    if (this.protocol === 'sotw' && this.fullState) this.#known.clear();
    for (const resource of answer.resources) this.#known.set(resource.name, resource);
    for (const name of answer.removed) this.#known.delete(name);
    this.#inFlight = { ...answer, nonce };
    this.#lastNonce = nonce;
    this.sent = { version: answer.version, atMs };
  }

  /** The client accepted the response with this nonce; false when no such response awaits a verdict. */
  accept(nonce: string, atMs: number): boolean {
    const inFlight = this.#inFlight;
    if (inFlight === undefined || inFlight.nonce !== nonce) return false;
    this.#inFlight = undefined;
    this.#forgetRefusals(inFlight);
    for (const resource of inFlight.resources) {
      const { name } = resource;
      if (!this.wants(name)) continue;
      this.#accepted.add(name);
      // Dropped and wanted again while it was under way: the client has it after all.
      if (!this.#known.has(name)) this.#known.set(name, resource);
    }
    this.acknowledged = { version: inFlight.version, atMs };
    return true;
  }

  /** The client rejected the response with this nonce; undefined when no such response awaits a verdict. */
  reject(nonce: string, reason: string, atMs: number): Rejection | undefined {
    const inFlight = this.#inFlight;
    if (inFlight === undefined || inFlight.nonce !== nonce) return undefined;
    this.#inFlight = undefined;
    this.#forgetRefusals(inFlight);
    for (const { name } of inFlight.resources) if (this.wants(name)) this.#refused.add(name);
    this.rejection = { version: inFlight.version, atMs, reason };
    this.rejections++;
    return this.rejection;
  }

  /** What was refused before is superseded by a response that carries it; a full one carries everything. */
  #forgetRefusals({ resources, removed }: Answer): void {
    if (this.fullState && this.protocol === 'sotw') this.#refused.clear();
    for (const { name } of resources) this.#refused.delete(name);
    // A removal counts as done, refused or not: it has no content that could be better next time.
    for (const name of removed) this.#refused.delete(name);
  }

  /** A reconnecting client that wants everything and has this very version needs nothing. */
  #resume(collection: Collection): void {
    const isCurrent = this.#resumedVersion === collection.version && this.wildcard && this.names.size === 0;
    this.#resumedVersion = undefined;
    if (!isCurrent) return;
    for (const resource of collection.resources.values()) this.#known.set(resource.name, resource);
    this.#answerDue = false;
  }

  *#wanted(collection: Collection): Iterable<Resource> {
    if (this.wildcard) {
      yield* collection.resources.values();
      return;
    }
    for (const name of this.names) {
      const resource = collection.resources.get(name);
      if (resource !== undefined) yield resource;
    }
  }

  #differs(resource: Resource): boolean {
    return this.#known.get(resource.name)?.version !== resource.version;
  }

  #gone(collection: Collection): string[] {
    if (this.kept) return [];
    return [...this.#known.keys()].filter((name) => !collection.resources.has(name));
  }

  /** Everything, as soon as anything changed. */
  #fullAnswer(collection: Collection, { onlyDue, holdRemovals }: TakeOptions): Answer | undefined {
    const content: Resource[] = [...this.#wanted(collection)];
    const gone = this.#gone(collection);
    const isDue = this.#answerDue || this.#due.size > 0;
    const isChanged =
      content.some((resource) => this.#differs(resource)) || (gone.length > 0 && !holdRemovals);
    if (!isDue && (onlyDue || !isChanged)) return undefined;
    this.#due.clear();
    this.#answerDue = false;
    if (holdRemovals) content.push(...gone.map((name) => this.#known.get(name)).filter(isResource));
    else if (content.length === collection.resources.size) {
      return { version: collection.version, resources: content, removed: [] };
    }
    content.sort(byName);
    return { version: versionOf(content), resources: content, removed: [] };
  }

  /** Only what changed: absence means nothing. */
  #changedAnswer(collection: Collection, options: TakeOptions): Answer | undefined {
    for (const name of this.#gone(collection)) {
      // Should it come back, the client must be told again.
      this.#known.delete(name);
      this.#refused.delete(name);
    }
    const resources = this.#changed(collection, options);
    this.#forgetDue(options);
    this.#answerDue = false;
    return resources.length > 0 ? { version: collection.version, resources, removed: [] } : undefined;
  }

  #deltaAnswer(collection: Collection, options: TakeOptions): Answer | undefined {
    const { onlyDue, holdRemovals } = options;
    const resources = this.#changed(collection, options);
    // By themselves, after what is new: a client that rejects that would reject the removals with it.
    const isAlone = resources.length === 0 && !onlyDue && !holdRemovals;
    const removed = new Set(isAlone ? this.#gone(collection) : []);
    for (const name of this.#due) {
      if (!collection.resources.has(name) && !(this.kept && this.#known.has(name))) removed.add(name);
    }
    const isDue = this.#answerDue;
    this.#forgetDue(options);
    this.#answerDue = false;
    if (!isDue && resources.length === 0 && removed.size === 0) return undefined;
    return { version: collection.version, resources, removed: [...removed] };
  }

  #changed(collection: Collection, { onlyDue, heldBack }: TakeOptions): Resource[] {
    const wanted = [...this.#wanted(collection)].filter(({ name }) => !heldBack.has(name));
    const changed = wanted.filter(
      (resource) => this.#due.has(resource.name) || (!onlyDue && this.#differs(resource)),
    );
    // The rejected response may have held good resources besides the bad one; with new content they get a new chance.
    const retry = changed.some((resource) => this.#refused.has(resource.name) && this.#differs(resource));
    if (!retry) return changed;
    return wanted.filter((resource) => changed.includes(resource) || this.#refused.has(resource.name));
  }

  /** All that was due is sent, but for what must wait. */
  #forgetDue({ heldBack }: TakeOptions): void {
    for (const name of this.#due) if (!heldBack.has(name)) this.#due.delete(name);
  }
}

function isResource(held: Held | undefined): held is Resource {
  return held?.any !== undefined;
}
